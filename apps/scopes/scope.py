from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scope:
    """Where a statement holds. Independent attributes; at least one is set. Ids are sorted and distinct."""

    firm: bool = False
    domain_ids: tuple[int, ...] = ()
    repo_ids: tuple[int, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not (self.firm or self.domain_ids or self.repo_ids)


@dataclass(frozen=True, slots=True)
class ResolvedScope:
    scope: Scope
    new_domains: tuple[str, ...] = ()
    new_repos: tuple[str, ...] = ()
