"""How many of some rows share a type, a repository, a domain and so on: what a list can be narrowed by.

Rows of the queue and of the ledger carry the same scope arrays, so both are counted here. No more than ``MOST`` rows
are looked at, the first ones of the list: past that a count costs more than the page beside it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import IntegerField, QuerySet, Subquery

from apps.accounts.models import Workspace
from apps.accounts.principal import Principal
from apps.core.pagination import MAX_COUNTED

MOST: Final = MAX_COUNTED
VALUES: Final = 8

# Each counts the rows of ``counted`` by one thing, under the name of the parameter that narrows by it.
_BY: Final = {
    "type": (
        "SELECT 'type', type.slug, count(*) FROM counted JOIN taxonomy_memorytype type ON type.id = counted.type_id"
        " GROUP BY type.slug"
    ),
    "repo": (
        "SELECT 'repo', repository.slug, count(*) FROM counted CROSS JOIN LATERAL unnest(counted.repo_ids) listed(id)"
        " JOIN scopes_repository repository ON repository.id = listed.id GROUP BY repository.slug"
    ),
    "domain": (
        "SELECT 'domain', domain.slug, count(*) FROM counted CROSS JOIN LATERAL unnest(counted.domain_ids) listed(id)"
        " JOIN scopes_domain domain ON domain.id = listed.id GROUP BY domain.slug"
    ),
    "tier": "SELECT 'tier', counted.tier, count(*) FROM counted GROUP BY counted.tier",
    "status": "SELECT 'status', counted.status, count(*) FROM counted GROUP BY counted.status",
    "origin": "SELECT 'origin', counted.origin_name, count(*) FROM counted GROUP BY counted.origin_name",
    # Whether a target is still in force is looked at now; what was flagged about it then says nothing.
    "flag": (
        "SELECT 'flag', flag ->> 'kind', count(DISTINCT counted.pk) FROM counted"
        " CROSS JOIN LATERAL jsonb_array_elements(counted.flags) flag"
        " WHERE flag ->> 'kind' <> 'target-not-in-force' GROUP BY flag ->> 'kind'"
    ),
}
_COLUMNS: Final = {
    "type": "type_id",
    "repo": "repo_ids",
    "domain": "domain_ids",
    "tier": "tier",
    "status": "status",
    "origin": "origin_name",
    "flag": "flags",
}


@dataclass(frozen=True, slots=True)
class Value:
    value: str
    count: int


@dataclass(frozen=True, slots=True)
class Facets:
    """Values by what they are of, the most frequent first. ``complete`` says whether every row was counted."""

    counted: int = 0
    complete: bool = True
    values: Mapping[str, Sequence[Value]] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """How many rows there are; one past ``MOST`` where there are more."""
        return self.counted if self.complete else MOST + 1


class _Counted(Subquery):
    template = "(SELECT count(*) FROM (%(subquery)s) AS counted)"
    output_field = IntegerField()


def counts_of(principal: Principal, rows: Mapping[str, QuerySet[Any]]) -> dict[str, int]:
    """How many rows there are under each name, in one query. None is counted further than ``MOST`` + 1.

    In the order that the rows have, so that an index may lead to the first ones.
    """
    counted = [_Counted(each.values("pk")[: MOST + 1]) for each in rows.values()]
    found = Workspace.objects.filter(pk=principal.workspace.pk).values_list(*counted).get()
    return {name: count or 0 for name, count in zip(rows, found, strict=True)}


def facets_of(rows: QuerySet[Any], by: Sequence[str], *, order: Sequence[str]) -> Facets:
    """Count ``rows`` by each of ``by``, in one query; ``order`` says which are the first ones."""
    columns = ["pk", *dict.fromkeys(_COLUMNS[name] for name in by)]
    try:
        sql, parameters = rows.order_by(*order).values(*columns)[: MOST + 1].query.sql_with_params()
    except EmptyResultSet:
        return Facets()
    parts = " UNION ALL ".join(f"({_BY[name]} ORDER BY 3 DESC, 2 LIMIT {VALUES})" for name in by)
    with connection.cursor() as cursor:
        cursor.execute(
            f"WITH counted AS MATERIALIZED ({sql}) SELECT '', '', count(*) FROM counted UNION ALL {parts}", parameters
        )
        found = cursor.fetchall()
    values: dict[str, list[Value]] = defaultdict(list)
    for name, value, count in found[1:]:
        values[name].append(Value(value, count))
    total = found[0][2]
    return Facets(counted=min(total, MOST), complete=total <= MOST, values=dict(values))
