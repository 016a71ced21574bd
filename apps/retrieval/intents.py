"""What somebody is after who asks, told from the wording by rules: fast, and each with its reason."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from django.conf import settings

DEFAULT: Final = "look-up"
_READ: Final = 2_000


@dataclass(frozen=True, slots=True)
class Rule:
    intent: str
    pattern: re.Pattern[str]


def _rule(intent: str, *wordings: str) -> Rule:
    return Rule(intent, re.compile(rf"(?<!\w)(?:{'|'.join(wordings)})(?!\w)", re.IGNORECASE))


# The first that matches decides: what is asked about outweighs how. English, and German where it is as plain.
RULES: Final = (
    _rule(
        "terminology",
        r"what (?:does|do) .{1,60}? (?:mean|stand for)",
        r"(?:meaning|definition) of",
        "stands for",
        "abbreviation",
        "acronym",
        "glossary",
        r"what do we call",
        r"was (?:bedeutet|heißt)",
    ),
    _rule(
        "ownership",
        r"who (?:owns|maintains|is responsible|looks after|runs|should i (?:ask|talk to|contact)|to ask|is on call)",
        r"(?:which|what) team",
        r"owned by",
        r"owners? of",
        r"code ?owners?",
        r"whose (?:service|code|component|repo)",
        r"wem gehört",
        r"wer (?:ist zuständig|betreut)",
    ),
    _rule(
        "history",
        r"history of",
        r"used to",
        r"(?:previously|formerly|originally|historically)",
        r"what (?:did|was|were) .{0,60}?\b(?:before|earlier|back then|at the time)",
        r"(?:when|since when) (?:did|was|were|have|do)",
        r"chang(?:e|ed) (?:our|their) minds?",
        r"(?:evolved|evolution of)",
        r"how did .{1,80}? (?:change|come about|get here)",
        r"früher",
        r"seit wann",
    ),
    _rule(
        "explain-why",
        "why",
        r"reasons?(?: (?:for|behind|to|that))?",
        "rationale",
        "motivation",
        r"how come",
        r"what (?:made|led) us",
        r"justif(?:y|ied|ication)",
        "trade-?offs?",
        r"warum",
        r"wieso",
        r"weshalb",
    ),
    _rule(
        "incident",
        "incidents?",
        "outages?",
        r"post-?mortems?",
        r"root cause",
        r"(?:went|goes|is|was) down",
        r"on-?call",
        r"sev-?[0-4]",
        r"HTTP[ /]?5\d\d",
        r"(?:crash(?:es|ed|ing)?|hangs?|times? out|timed out|deadlocks?|data loss)",
        "alerts?",
        r"störung(?:en)?",
        r"ausfall",
    ),
    _rule(
        "implement",
        r"how (?:do|should|can|must|would) (?:i|we|you|one)",
        r"how to",
        r"(?:implement|implementing|add|adding|create|creating|write|writing|build|building|refactor|refactoring)",
        r"(?:migrate|migrating|replace|replacing|extend|extending|introduce|introducing|rename|renaming) ",
        r"(?:convention|conventions|guidelines?|best practices?|style)",
        r"(?:should|may|must) (?:i|we) (?:use|call|store|name|put)",
        r"before (?:i|we) (?:change|touch|write|start)",
        r"wie (?:soll|muss|macht|baue|schreibe)\w*",
    ),
)


@dataclass(frozen=True, slots=True)
class Detected:
    intent: str
    because: str


# Of rooms above: a language model that is asked where no rule matches, for the id of a workspace and a question.
second_opinions: Final[list[Callable[[int, str], Detected]]] = []


def detected(question: str, *, workspace_id: int | None = None) -> Detected:
    """The intent and a sentence that says what it was told by.

    Where no rule matches a model is asked, if the settings say so and ``workspace_id`` names who asks.
    """
    read = question[:_READ]
    for rule in RULES:
        if match := rule.pattern.search(read):
            words = " ".join(match[0].split())
            return Detected(rule.intent, f"“{words[:60]}” in the question tells of it.")
    if workspace_id is not None and second_opinions and settings.FIRM_MEMORY_INTENT == "model":
        return second_opinions[0](workspace_id, read)
    return Detected(DEFAULT, "No wording of the question tells of more.")
