"""What a candidate is near to, among memories in force and open candidates. Shown to people; decides nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Q

from apps.candidates.detection import NAMED, Statement, Suggestion, suggestion
from apps.candidates.models import OPEN, Candidate, CandidateEvidence
from apps.core.clock import now
from apps.memories.models import IN_FORCE, Memory, MemoryEvidence, Tier
from apps.memories.providers.base import PoolQuery, Vector
from apps.memories.providers.registry import get_provider
from apps.retrieval.identifiers import acronyms_in, identifiers_in, memory_numbers
from apps.retrieval.terms import Term, any_of, rarest_terms, within
from apps.sources.models import Source, SourceKind

MAX_NEAR = 5
MIN_SHARED_WORDS = 0.35  # Sørensen–Dice over stemmed words
# With the local model the same fact in other words has 0.6 to 0.9, another fact on the same subject up to 0.6.
MIN_COSINE = 0.6
_TERMS = 24
_MATCHES = 2_000  # so many memories are compared, however many share a common word
_NEWEST = 500  # so many open candidates are, since nobody counts their words
_MAX_ACRONYMS = 50
_PRESELECTED = 20
_COMPARED_CHARACTERS = 4_000
_CARDED = (SourceKind.ISSUE, SourceKind.MERGE_REQUEST)
_ONE_CARD = "Both are cards of the same issue or merge request, of which one is kept."
_MAX_ACRONYM_NDOC = 20


@dataclass(frozen=True, slots=True)
class Near:
    what: str  # memory | candidate
    id: UUID
    similarity: float
    how: str  # words | term | name | card | vector

    def as_dict(self) -> dict[str, Any]:
        return {
            "what": self.what,
            "id": str(self.id),
            "similarity": round(self.similarity, 3),
            "how": self.how,
        }


def near_by_text(candidate: Candidate, sources: Sequence[Source] = ()) -> list[dict[str, Any]]:
    """Share of stemmed words in common, rare acronyms in common, however else they are explained, and being named.

    ``sources`` are those of a candidate that is not stored yet. Cards of the same issue are near whatever they say.
    """
    named = [*near_by_card(candidate, sources), *near_by_name(candidate)]
    rarest = rarest_terms(candidate.workspace_id, candidate.content, limit=_TERMS)
    terms = within(rarest, matches=_MATCHES)
    acronyms = _rare_acronyms(candidate)
    if not terms:
        return suggested(candidate, named)
    query = any_of([*terms, *acronyms.values()])
    found = [
        near
        for what, row_id, shared, content in _share_words(candidate, query)
        if (near := _judge(what, row_id, float(shared), content, acronyms.keys())) is not None
    ]
    return suggested(candidate, _best([*named, *found]))


def near_by_name(candidate: Candidate) -> list[Near]:
    """Memories in force that the text names: by number, or by the reference of a source that they come from."""
    named = identifiers_in(candidate.content)
    if not named:
        return []
    # Apart, and with every kind of source named: each is then looked up by an index.
    here = Memory.objects.filter(workspace=candidate.workspace_id, status__in=IN_FORCE)
    sources = Source.objects.filter(workspace=candidate.workspace_id, kind__in=SourceKind.values, reference__in=named)
    numbered = here.filter(number__in=memory_numbers(named).keys())
    sourced = here.filter(pk__in=MemoryEvidence.objects.filter(source__in=sources).values("memory"))
    found = numbered.order_by().values_list("pk", "number").union(sourced.order_by().values_list("pk", "number"))
    return [Near("memory", pk, MIN_SHARED_WORDS, "name") for pk, _ in found.order_by("-number")[:MAX_NEAR]]


def near_by_card(candidate: Candidate, sources: Sequence[Source] = ()) -> list[Near]:
    """For a card: others in force or open of the same issue or merge request, of which there is one for each."""
    if candidate.tier != Tier.INDEX:
        return []
    named = sources or [each.source for each in candidate.evidence.select_related("source")]
    same = Q()
    for kind, reference in {(source.kind, source.reference) for source in named if source.kind in _CARDED}:
        same |= Q(kind=kind, reference=reference)
    if not same:
        return []
    ids = list(Source.objects.filter(same, workspace=candidate.workspace_id).values_list("pk", flat=True))
    cards = Memory.objects.filter(workspace=candidate.workspace_id, tier=Tier.INDEX, status__in=IN_FORCE)
    known = cards.filter(pk__in=MemoryEvidence.objects.filter(source__in=ids).values("memory")).order_by("-number")
    waiting = Candidate.objects.filter(workspace=candidate.workspace_id, tier=Tier.INDEX, status__in=OPEN)
    waiting = waiting.filter(pk__in=CandidateEvidence.objects.filter(source__in=ids).values("candidate"))
    others = waiting.exclude(pk=candidate.pk).order_by("-created_at", "-id")
    return [
        *(Near("memory", pk, 1.0, "card") for pk in known.values_list("pk", flat=True)[:MAX_NEAR]),
        *(Near("candidate", pk, 1.0, "card") for pk in others.values_list("pk", flat=True)[:MAX_NEAR]),
    ]


def suggested(candidate: Candidate, near: Sequence[Near]) -> list[dict[str, Any]]:
    """As rows keep them, each with what it suggests: that the candidate replaces or repeats it, and by which cues."""
    rows: dict[UUID, Memory | Candidate] = {
        **_rows(Memory, [each.id for each in near if each.what == "memory"]),
        **_rows(Candidate, [each.id for each in near if each.what == "candidate"]),
    }
    new = _statement(candidate) if near else None
    told = []
    for each in near:
        found = None
        if new is not None and each.id in rows:
            is_card = each.how == "card"
            found = _card_suggested(candidate, rows[each.id]) if is_card else _suggested(candidate, new, rows[each.id])
        told.append(each.as_dict() | ({"suggests": found.as_dict()} if found is not None else {}))
    return told


def _rows(model: type[Any], ids: Sequence[UUID]) -> dict[UUID, Any]:
    rows = model._default_manager.filter(pk__in=ids).prefetch_related("evidence__source") if ids else ()
    return {row.pk: row for row in rows}


def _statement(row: Memory | Candidate) -> Statement:
    # One that is not stored yet has its sources stored after it.
    references = [] if row._state.adding else [each.source.reference for each in row.evidence.all()]
    return Statement(row.content, (*([row.label] if isinstance(row, Memory) else []), *dict.fromkeys(references)))


def _suggested(candidate: Candidate, new: Statement, row: Memory | Candidate) -> Suggestion | None:
    """A replacement has to hold wherever the old one does, and not to begin before it; else it is said what is amiss.

    Without a name only what fits is suggested: the same sentence about another repository replaces nothing.
    """
    found = suggestion(_statement(row), new)
    if found is None or found.what != "replaces" or (amiss := _amiss(candidate, row)) is None:
        return found
    return replace(found, cues=(*found.cues, amiss)) if found.score >= NAMED else None


def _card_suggested(candidate: Candidate, row: Memory | Candidate) -> Suggestion:
    """The later card says how it ended; what is amiss with that is said as well."""
    amiss = _amiss(candidate, row)
    return Suggestion("replaces", NAMED, (_ONE_CARD, *([amiss] if amiss else [])))


def _amiss(candidate: Candidate, row: Memory | Candidate) -> str | None:
    if not covers(candidate, row):
        return "It does not hold everywhere where the other one does, which would be missing there."
    if candidate.valid_from is not None and row.valid_from is not None and candidate.valid_from <= row.valid_from:
        return "It begins to hold no later than the other one."
    return None


def covers(new: Memory | Candidate, old: Memory | Candidate) -> bool:
    """Whether one holds wherever the other does. A domain is not taken apart into its repositories."""
    if new.firm:
        return True
    return not old.firm and set(old.domain_ids) <= set(new.domain_ids) and set(old.repo_ids) <= set(new.repo_ids)


def _rare_acronyms(candidate: Candidate) -> dict[str, Term]:
    """Acronyms that few memories use, with the word they are indexed by.

    Looked for whatever their rank: where nothing was counted yet, all words are equally rare.
    """
    named = sorted(_acronyms(candidate.content))[:_MAX_ACRONYMS]
    if not named:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT named.acronym, asked.lexeme, coalesce(known.ndoc, 0)
            FROM unnest(%s::text[]) AS named(acronym)
            CROSS JOIN LATERAL unnest(fm_search_document(named.acronym)) AS asked
            LEFT JOIN memories_lexeme known ON known.workspace_id = %s AND known.word = asked.lexeme
            """,
            [named, candidate.workspace_id],
        )
        return {acronym: Term(word, ndoc) for acronym, word, ndoc in cursor.fetchall() if ndoc <= _MAX_ACRONYM_NDOC}


def _judge(what: str, row_id: UUID, shared: float, content: str, acronyms: Set[str]) -> Near | None:
    if acronyms & _acronyms(content):
        return Near(what, row_id, max(shared, MIN_SHARED_WORDS), "term")
    return Near(what, row_id, shared, "words") if shared >= MIN_SHARED_WORDS else None


def _acronyms(text: str) -> set[str]:
    return acronyms_in(text[:_COMPARED_CHARACTERS])


_SHARED_WORDS = """
WITH asked AS (SELECT tsvector_to_array(fm_search_document(%(text)s)) AS words),
matched AS (
    (SELECT 'memory' AS what, id, left(content, %(cut)s) AS content, search_vector FROM memories_memory
     WHERE workspace_id = %(workspace)s AND status IN ('active', 'disputed') AND search_vector @@ %(query)s::tsquery
     ORDER BY ts_rank(search_vector, %(query)s::tsquery) DESC, id LIMIT %(limit)s)
    UNION ALL
    (SELECT 'candidate', newest.id, left(content, %(cut)s), search_vector
     FROM unnest(%(open)s::text[]) AS wanted(status) CROSS JOIN LATERAL (
         SELECT id, content, search_vector FROM candidates_candidate
         WHERE workspace_id = %(workspace)s AND status = wanted.status AND id <> %(self)s
           AND search_vector @@ %(query)s::tsquery
         ORDER BY created_at DESC, id DESC LIMIT %(newest)s
     ) AS newest
     ORDER BY ts_rank(search_vector, %(query)s::tsquery) DESC, id LIMIT %(limit)s)
),
worded AS (SELECT what, id, content, tsvector_to_array(search_vector) AS words FROM matched)
SELECT what, id,
    2.0 * cardinality(ARRAY(SELECT unnest(worded.words) INTERSECT SELECT unnest(asked.words)))
        / greatest(cardinality(worded.words) + cardinality(asked.words), 1),
    content
FROM worded, asked
"""


def _share_words(candidate: Candidate, query: str) -> list[tuple[str, UUID, float, str]]:
    with connection.cursor() as cursor:
        cursor.execute(
            _SHARED_WORDS,
            {
                "text": candidate.content[:_COMPARED_CHARACTERS],
                "cut": _COMPARED_CHARACTERS,
                "workspace": candidate.workspace_id,
                "query": query,
                "open": list(OPEN),
                "self": candidate.pk,
                "newest": _NEWEST,
                "limit": _PRESELECTED,
            },
        )
        return list(cursor.fetchall())


def near_by_vector(candidate: Candidate, vector: Vector) -> list[Near]:
    """Cosine similarity to memories in force and to open candidates that the worker has embedded."""
    hits = get_provider().search(
        PoolQuery(
            vector=vector,
            workspace=candidate.workspace_id,
            now=now(),
            everything=True,
            audiences=_all_audiences(candidate.workspace_id),
            limit=MAX_NEAR,
        )
    )
    near = [Near("memory", hit.memory_id, hit.score, "vector") for hit in hits if hit.score >= MIN_COSINE]
    return near + [row for row in _open_candidates_near(candidate, vector) if row.similarity >= MIN_COSINE]


def _all_audiences(workspace_id: int) -> frozenset[int]:
    """The worker looks at everything; who reads the list is shown only what they may see."""
    from apps.accounts.models import Audience

    return frozenset(Audience.objects.filter(workspace=workspace_id).values_list("pk", flat=True))


def _open_candidates_near(candidate: Candidate, vector: Vector) -> list[Near]:
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT id, greatest(0, 1 - (vector <=> %(vector)s::vector)) FROM candidates_candidate
            WHERE workspace_id = %(workspace)s AND status = ANY(%(open)s) AND id <> %(self)s
              AND vector IS NOT NULL AND vector_dims(vector) = %(dimensions)s
            ORDER BY vector <=> %(vector)s::vector, id LIMIT %(limit)s
            """,
            {
                "vector": "[" + ",".join(map(repr, vector)) + "]",
                "workspace": candidate.workspace_id,
                "open": list(OPEN),
                "self": candidate.pk,
                "dimensions": len(vector),
                "limit": MAX_NEAR,
            },
        )
        return [Near("candidate", row_id, similarity, "vector") for row_id, similarity in cursor.fetchall()]


def merged(candidate: Candidate, found: Sequence[Near]) -> list[dict[str, Any]]:
    """What text found and what vectors found, each once, with the higher similarity."""
    earlier = [Near(row["what"], UUID(row["id"]), row["similarity"], row["how"]) for row in candidate.near]
    return suggested(candidate, _best([*earlier, *found]))


def _best(found: Iterable[Near]) -> list[Near]:
    best: dict[UUID, Near] = {}
    for near in found:
        if near.id not in best or near.similarity > best[near.id].similarity:
            best[near.id] = near
    return sorted(best.values(), key=lambda near: (-near.similarity, str(near.id)))[:MAX_NEAR]
