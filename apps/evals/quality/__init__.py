"""How good the answers are: suites of questions with known answers, several ways to search, and what is measured."""
