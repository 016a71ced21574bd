"""The identifier arm: memories that hold a name of the question letter by letter, or whose source has that name.

A name is found as a phrase of the stored documents, so that `a/b-c`, `a_b_c` and “a b c” are one name and
`HTTP 504` is not “504 … HTTP”. A name counts by how rare it is (the idf of its rarest word); a memory's score is the
share of all names of the question, so weighed, that it holds. Names on too many memories lead nowhere.
"""

from __future__ import annotations

import logging
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.db import DatabaseError, InterfaceError, connection

from apps.core.logs import without_words
from apps.core.time_limits import is_timeout, reading_within
from apps.retrieval.filters import Admission
from apps.retrieval.identifiers import identifiers_in, memory_numbers
from apps.retrieval.pipeline import Hit, Search, Shortfall, Stage
from apps.retrieval.terms import BY_INDEXES, idf
from apps.scopes.models import Repository
from apps.sources.models import SourceKind

SECONDS: Final = 1.0
MAX_MATCHES: Final = 2_000
MAX_FOUND: Final = 100

_SHORT_REFERENCE: Final = re.compile(r"[!#]\d{1,9}")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Name:
    text: str
    query: str  # a tsquery
    weight: float


def run(search: Search) -> None:
    if not search.recipe.identifier_weight:
        search.skip("identifier", f"The recipe {search.recipe.name} does not use it.")
        return
    named = identifiers_in(search.question)
    if not named:
        search.skip("identifier", "The question holds no identifier.")
        return
    with search.stage("identifier") as stage:
        try:
            found = exact(search.admission, named)
        except (DatabaseError, InterfaceError) as error:
            _could_not_look(search, stage, error)
            return
        stage.detail = f"{len(found)} hold {_listed(named)}."
        if found:
            search.arms["identifier"] = [Hit(each.memory_id, each.scores()) for each in found]


def _listed(named: Sequence[str]) -> str:
    return "one of: " + ", ".join(f"“{name}”" for name in named) if len(named) > 1 else f"“{named[0]}”"


def _could_not_look(search: Search, stage: Stage, error: Exception) -> None:
    note = "Identifiers of the question were not looked for letter by letter"
    if is_timeout(error):
        logger.warning("The identifier arm was stopped after %s s.", SECONDS)
        stage.detail = f"It was stopped after {SECONDS:g} s."
        search.degrade(Shortfall.IDENTIFIERS_LATE, f"{note}, because that took too long.")
        return
    logger.error("The identifier arm could not look: %s", without_words(error))
    stage.detail = "It could not look."
    search.degrade(Shortfall.IDENTIFIERS_FAILED, f"{note}, because the database could not do it.")


@dataclass(frozen=True, slots=True)
class Exact:
    """``share`` of the names that it holds, in (0, 1]; whether it, or a source of it, is called by one of them."""

    memory_id: UUID
    share: float
    is_called: bool

    def scores(self) -> dict[str, float]:
        return {"identifier": self.share} | ({"called": 1.0} if self.is_called else {})


def exact(admission: Admission, named: Sequence[str]) -> list[Exact]:
    """Best first."""
    with reading_within(SECONDS, **BY_INDEXES):
        names = _names(admission.workspace_id, named)
        called = _by_source(admission, named)
        holders = defaultdict(set, {text: set(memory_ids) for text, memory_ids in called.items()})
        for at, memory_ids in _by_words(admission, names).items():
            holders[names[at].text] |= memory_ids
    weights = {name.text: name.weight for name in names}
    # What only sources are called stands in no memory, and is as rare as can be.
    rarest = max([*weights.values(), 1.0])
    total = sum(weights.get(text, rarest) for text in {*weights, *holders})
    shares: dict[UUID, float] = defaultdict(float)
    for text, memory_ids in holders.items():
        for memory_id in memory_ids:
            shares[memory_id] += weights.get(text, rarest) / total
    of_that_name = set().union(*called.values())
    found = [Exact(memory_id, share, memory_id in of_that_name) for memory_id, share in shares.items()]
    return sorted(found, key=lambda each: (not each.is_called, -each.share, str(each.memory_id)))[:MAX_FOUND]


_NAMES: Final = """
SELECT named.text, phrase.query::text, min(coalesce(known.ndoc, 0)),
    (SELECT documents FROM memories_corpus WHERE workspace_id = %(workspace)s)
FROM unnest(%(named)s::text[]) AS named(text)
CROSS JOIN LATERAL phraseto_tsquery(
    'pg_catalog.english', regexp_replace(named.text, '[^[:alnum:]]+', ' ', 'g')
) AS phrase(query)
CROSS JOIN LATERAL unnest(fm_search_document(named.text)) AS asked
LEFT JOIN memories_lexeme known ON known.workspace_id = %(workspace)s AND known.word = asked.lexeme
WHERE numnode(phrase.query) > 0
GROUP BY named.text, phrase.query
"""


def _names(workspace_id: int, named: Sequence[str]) -> list[Name]:
    """Those that may lead somewhere."""
    # "#12" is the name of a source, and in a text any twelve.
    telling = [name for name in named if not _SHORT_REFERENCE.fullmatch(name)]
    with connection.cursor() as cursor:
        cursor.execute(_NAMES, {"named": telling, "workspace": workspace_id})
        rows = cursor.fetchall()
    return [Name(text, query, idf(ndoc, all_ or 0)) for text, query, ndoc, all_ in rows if ndoc <= MAX_MATCHES]


def _by_words(admission: Admission, names: Sequence[Name]) -> dict[int, set[UUID]]:
    """By place in ``names``, the memories whose text holds it."""
    if not names:
        return {}
    statement, values = words_statement(admission, names)
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        rows = cursor.fetchall()
    return {at: {row[0] for row in rows if row[1][at]} for at in range(len(names))}


def words_statement(admission: Admission, names: Sequence[Name]) -> tuple[str, dict[str, Any]]:
    admitted, values = admission.sql(with_replaced=True)
    holds = ", ".join(f"memory.search_vector @@ %(name{at})s::tsquery" for at in range(len(names)))
    worth = " + ".join(
        f"CASE WHEN memory.search_vector @@ %(name{at})s::tsquery THEN %(weight{at})s::float8 ELSE 0 END"
        for at in range(len(names))
    )
    values |= {f"name{at}": name.query for at, name in enumerate(names)}
    values |= {f"weight{at}": name.weight for at, name in enumerate(names)}
    values |= {"any": " | ".join(f"({name.query})" for name in names), "limit": MAX_FOUND}
    statement = (
        f"SELECT memory.id, ARRAY[{holds}] FROM memories_memory AS memory "
        f"WHERE memory.search_vector @@ %(any)s::tsquery AND {admitted} "
        f"ORDER BY {worth} DESC, memory.id LIMIT %(limit)s"
    )
    return statement, values


_NUMBERED: Final = """
SELECT memory.id, NULL, memory.number FROM memories_memory AS memory
WHERE memory.number = ANY(%(numbers)s) AND {admitted}
"""
_CITED: Final = """
(SELECT memory.id, source.reference, NULL::bigint FROM sources_source AS source
 JOIN memories_memoryevidence AS evidence ON evidence.source_id = source.id
 JOIN memories_memory AS memory ON memory.id = evidence.memory_id
 WHERE source.workspace_id = %(workspace)s AND source.kind = ANY(%(kinds)s)
   AND source.reference = ANY(%(references)s) AND {admitted}
 ORDER BY memory.number DESC LIMIT %(limit)s)
"""


def _by_source(admission: Admission, named: Sequence[str]) -> dict[str, set[UUID]]:
    """By name, the memories that are called so, and those that come from a source that is."""
    called = {reference: name for name in named for reference in _references(admission, name)}
    numbers = memory_numbers(named)
    admitted, values = admission.sql(with_replaced=True)
    values |= {
        "references": list(called),
        "numbers": list(numbers),
        "kinds": SourceKind.values,
        "limit": MAX_FOUND,
    }
    # To plan the half that no name is for takes longer than to find that there is nothing.
    statement = f"{_NUMBERED} UNION ALL {_CITED}" if numbers else _CITED
    with connection.cursor() as cursor:
        cursor.execute(statement.format(admitted=admitted), values)
        rows = cursor.fetchall()
    holders: dict[str, set[UUID]] = defaultdict(set)
    for memory_id, reference, number in rows:
        holders[numbers[number] if reference is None else called[reference]].add(memory_id)
    return holders


def _references(admission: Admission, name: str) -> Iterable[str]:
    """How sources may be called that go by this name; `!17` is one of each repository that is asked about."""
    yield name
    if _SHORT_REFERENCE.fullmatch(name) and admission.scope.repo_ids:
        for slug in Repository.objects.filter(pk__in=admission.scope.repo_ids).values_list("slug", flat=True):
            yield f"{slug}{name}"
