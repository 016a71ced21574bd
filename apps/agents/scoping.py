"""Where a tool looks, and where what it brings holds, when the agent does not say.

A repository brings its domains and the firm with it. The one that is named counts; else the one checked out where the
agent works; else those that the token is limited to. An agent that has none of these searches the whole workspace, and
is told so.
"""

from __future__ import annotations

from dataclasses import dataclass

from apps.accounts.principal import Principal
from apps.accounts.selectors import repository_slugs
from apps.candidates.proposal import ScopeInput
from apps.core.screening import quotable
from apps.scopes.identity import repository_identity
from apps.scopes.selectors import SearchScope, find_repository

ONLY_THE_FIRM = "Only what holds for the whole firm was looked at."


@dataclass(frozen=True, slots=True)
class Looking:
    """``repos`` as a search takes them; ``why`` says where they come from where the agent has not named them."""

    repos: tuple[str, ...] | None = None
    why: str = ""

    def note(self, scope: SearchScope) -> str:
        """Where a search has looked, whose scope turned out to be this."""
        if self.repos is None:
            return self.why
        if not scope.repos:
            return ONLY_THE_FIRM
        return f"Searched: {self.why}{', '.join(scope.repos)}, its domains and what holds for the whole firm."


def looking(
    principal: Principal, *, repo: str | None, checkout: str | None, domains: tuple[str, ...] | None = None
) -> Looking:
    if repo is not None:
        return Looking((repo,))
    if domains is not None:
        return Looking()
    if checkout is not None:
        return _in_checkout(principal, checkout)
    if principal.repository_limit:
        return Looking(why=f"{_limit(principal)} Searched: these, their domains and what holds for the whole firm.")
    return Looking()


def _in_checkout(principal: Principal, checkout: str) -> Looking:
    if limit := principal.repository_limit:
        row = find_repository(principal.workspace, checkout)
        if row is None or row.pk not in limit:
            return Looking(why=f"{_limit(principal)} The one checked out here, {_shown(checkout)}, is not among them.")
    return Looking((checkout,), "The repository checked out here, ")


def _limit(principal: Principal) -> str:
    return f"This token is limited to {', '.join(repository_slugs(principal))}."


def _shown(checkout: str) -> str:
    return quotable(repository_identity(checkout))


def holding(principal: Principal, given: ScopeInput, *, checkout: str | None) -> tuple[ScopeInput, str]:
    """Where a statement holds, with a note where the agent did not say. Empty where nothing tells."""
    if given.firm or given.domains or given.repos:
        return given, ""
    if checkout is not None:
        return ScopeInput(repos=(checkout,)), f"It is proposed for the repository checked out here, {_shown(checkout)}."
    limit = repository_slugs(principal)
    if len(limit) == 1:
        return ScopeInput(repos=(limit[0],)), f"It is proposed for {limit[0]}, which this token is limited to."
    return given, ""
