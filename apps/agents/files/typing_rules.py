"""Of which type a statement of a rules file is: what capture's rules say, among the types that such files hold."""

from __future__ import annotations

from typing import Final

from apps.accounts.models import Workspace
from apps.agents.files.reading import RULES_FILE, Found
from apps.capture.extractors.rule_types import types_for
from apps.capture.statements import Statement
from apps.capture.vocabulary import vocabulary_of
from apps.core.screening.signals import meanings_of

# A rules file says what to do; what a sentence of it reports of a bug or a measurement is said for the sake of that.
RULE_LIKE: Final = (
    *("coding_conventions", "tooling_setup", "architecture_decisions", "dependency_decisions", "anti_patterns"),
    *("review_feedback", "business_rules", "ownership", "terminology"),
)
_WORDS_LOOKED_AT: Final = 2_000


class Types:
    """The types in use in a workspace, looked up once."""

    def __init__(self, workspace: Workspace) -> None:
        self._vocabulary = vocabulary_of(workspace)

    def of(self, found: Found) -> str:
        """The slug of the first type that fits and is in use."""
        text = found.body[:_WORDS_LOOKED_AT]
        said = Statement(text, 0, len(text), 0, heading=found.heading.casefold().strip(" :."), bullet=found.is_bullet)
        fitting = list(types_for(said, meanings_of(text, ()), RULES_FILE, text))
        # What comes nearest to a report is no better guess than what such files mostly hold.
        told = bool(fitting) and fitting[0] in RULE_LIKE
        return self._first([slug for slug in fitting if told and slug in RULE_LIKE])

    def of_decision(self, *, is_turned_down: bool) -> str:
        return self._first(["anti_patterns" if is_turned_down else "architecture_decisions"])

    def _first(self, wanted: list[str]) -> str:
        in_use = (self._vocabulary.slug_of(name) for name in [*wanted, *RULE_LIKE])
        return next((slug for slug in in_use if slug), self._vocabulary.types[0].slug)
