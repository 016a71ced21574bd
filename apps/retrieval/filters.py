"""What a search admits. Both arms filter inside their own query, by the same rule."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from apps.memories.models import MemoryStatus, Tier
from apps.memories.providers.base import PoolQuery, Vector
from apps.scopes.selectors import SearchScope
from apps.taxonomy.models import MemoryType

SERVED = frozenset({MemoryStatus.ACTIVE.value, MemoryStatus.DISPUTED.value})


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """The filter of one search; ``PoolQuery`` defines what each part means."""

    workspace_id: int
    scope: SearchScope
    audiences: frozenset[int]
    now: datetime
    tiers: frozenset[str] = frozenset(Tier.values)
    types: tuple[MemoryType, ...] | None = None
    as_of: datetime | None = None
    known_at: datetime | None = None

    @property
    def is_about_the_past(self) -> bool:
        return self.as_of is not None or self.known_at is not None

    @property
    def statuses(self) -> frozenset[str]:
        """Today's answers are in force today; about the past the intervals alone decide."""
        return frozenset(MemoryStatus.values) if self.is_about_the_past else SERVED

    @property
    def valid_instant(self) -> datetime:
        return self.as_of or self.now

    @property
    def known_instant(self) -> datetime:
        return self.known_at or self.now

    def pool_query(self, vector: Vector, *, limit: int) -> PoolQuery:
        """What the arm looks for: what holds, and what was replaced, which leads to what holds instead."""
        return PoolQuery(
            vector=vector,
            workspace=self.workspace_id,
            now=self.now,
            everything=self.scope.everything,
            domain_ids=frozenset(self.scope.domain_ids),
            repo_ids=frozenset(self.scope.repo_ids),
            audiences=self.audiences,
            tiers=self.tiers,
            types=None if self.types is None else frozenset(row.slug for row in self.types),
            as_of=self.as_of,
            known_at=self.known_at,
            with_replaced=True,
            limit=limit,
        )

    def sql(self, alias: str = "memory", *, with_replaced: bool = False) -> tuple[str, dict[str, Any]]:
        """The same filter over the ledger's table: a condition, and the values its placeholders name.

        ``with_replaced`` is as in ``PoolQuery``; without it the condition says what may be served.
        """
        scope, values = self.scope_sql(alias)
        statuses = self.statuses | {MemoryStatus.SUPERSEDED.value} if with_replaced else self.statuses
        replaced = f" OR {alias}.status = '{MemoryStatus.SUPERSEDED.value}'" if with_replaced else ""
        conditions = [
            scope,
            f"{alias}.tier = ANY(%(tiers)s)",
            f"{alias}.status = ANY(%(statuses)s)",
            f"{alias}.audience_ids <@ %(audiences)s::bigint[]",
            f"{alias}.recorded_at <= %(known)s",
            f"({alias}.retired_at IS NULL OR {alias}.retired_at > %(known)s)",
            f"({alias}.valid_from IS NULL OR {alias}.valid_from <= %(valid)s)",
            f"({alias}.valid_to IS NULL OR {alias}.valid_to > %(valid)s OR {alias}.closed_at > %(known)s{replaced})",
        ]
        return " AND ".join(conditions), values | {
            "tiers": sorted(self.tiers),
            "statuses": sorted(statuses),
            "audiences": sorted(self.audiences),
            "known": self.known_instant,
            "valid": self.valid_instant,
        }

    def scope_sql(self, alias: str = "memory") -> tuple[str, dict[str, Any]]:
        """The part of the filter that indexes answer and that stays as it is while memories come and end.

        What is not named is left out, so that no index is read for it.
        """
        conditions = [f"{alias}.workspace_id = %(workspace)s"]
        if not self.scope.everything:
            alternatives = [f"{alias}.firm"]
            if self.scope.domain_ids:
                alternatives.append(f"{alias}.domain_ids && %(domains)s::bigint[]")
            if self.scope.repo_ids:
                alternatives.append(f"{alias}.repo_ids && %(repos)s::bigint[]")
            conditions.append(f"({' OR '.join(alternatives)})")
        if self.types is not None:
            conditions.append(f"{alias}.type_id = ANY(%(types)s)")
        return " AND ".join(conditions), {
            "workspace": self.workspace_id,
            "domains": list(self.scope.domain_ids),
            "repos": list(self.scope.repo_ids),
            "types": [row.pk for row in self.types or ()],
        }
