"""The working notes of one task, by meaning and by words, beside the memories and never among them.

Every note of the task is read, since there are few: which of them may be shown says their own table, by the rules that
hold for memories, and the pool only says how near they are. They are fused as memories are, so that the scores of both
can be compared, and count a little less, because nobody has reviewed them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, Final
from uuid import UUID

from django.db import connection

from apps.accounts.principal import Principal
from apps.memories.models import TaskNote
from apps.memories.notes import MAX_OF_TASK, UNREVIEWED, notes_shown
from apps.memories.providers.base import NoteQuery
from apps.memories.providers.registry import get_provider
from apps.retrieval.ledger import ledger_in_time
from apps.retrieval.pipeline import Hit, Search, Shortfall, Stage
from apps.retrieval.stages import fuse
from apps.retrieval.stages.text import MAX_TERMS
from apps.retrieval.stages.vector import embedded, looked_up
from apps.retrieval.terms import idf

NAME: Final = "episodic"
UNREVIEWED_FACTOR: Final = 0.9

_NO_VECTOR: Final = frozenset({Shortfall.EMBEDDER_LATE, Shortfall.EMBEDDER_FAILED})

_WORDS: Final = "SELECT lexeme FROM unnest(fm_search_document(%s)) ORDER BY length(lexeme) DESC, lexeme LIMIT %s"

# The index over task leads to the notes; what they hold of the question's words is read off their stored vectors.
_NOTES: Final = """
SELECT note.id, ARRAY(SELECT lexeme FROM unnest(note.search_vector) WHERE lexeme = ANY(%(words)s::text[]))
FROM memories_tasknote AS note
WHERE {scope} AND note.task = %(task)s AND note.expires_at > %(now)s AND note.audience_ids <@ %(audiences)s::bigint[]
"""


def run(search: Search, principal: Principal, task: str) -> list[dict[str, Any]]:
    """The notes of ``task`` that answer, as answers show them, best first.

    Raises ``Unavailable`` when their table does not answer in time, since it says who may see them.
    """
    with search.stage(NAME) as stage:
        query = _query(search, stage, task)
        with ledger_in_time():
            words = _words(search.question) if search.recipe.text_weight else []
            held = _notes(search, task, words)
            hits = _fused(search, _by_meaning(search, stage, query, held), _by_words(held, words))
            for hit in hits:
                hit.scores["unreviewed"] = UNREVIEWED_FACTOR
                hit.score *= UNREVIEWED_FACTOR
            stage.detail = f"{stage.detail} {len(hits)} of the {len(held)} notes of this task answer.".strip()
            return _results(principal, hits[: search.limit])


def _query(search: Search, stage: Stage, task: str) -> NoteQuery | None:
    """``None`` where meaning cannot be looked at; what was found out about that before is not tried again."""
    if not search.recipe.vector or not search.pool_answers or _NO_VECTOR & set(search.shortfalls):
        return None
    provider = get_provider()
    vector = embedded(search, stage, provider) if provider.reads(search.question) else None
    if vector is None:
        return None
    return NoteQuery(vector=vector, workspace=search.admission.workspace_id, task=task, limit=MAX_OF_TASK)


def _words(question: str) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(_WORDS, [question, MAX_TERMS])
        return [word for (word,) in cursor.fetchall()]


def _notes(search: Search, task: str, words: list[str]) -> dict[UUID, list[str]]:
    """What this search may show of the task, each with the words that it has of the question's."""
    scope, values = search.admission.scope_sql("note")
    values |= {
        "task": task,
        "now": search.admission.now,
        "audiences": sorted(search.admission.audiences),
        "words": words,
    }
    with connection.cursor() as cursor:
        cursor.execute(_NOTES.format(scope=scope), values)
        return dict(cursor.fetchall())


def _by_words(held: Mapping[UUID, list[str]], words: list[str]) -> list[Hit]:
    """Scored by the sum of idf over the words that a note has: within a task, what all notes have says little."""
    ndoc = Counter(word for found in held.values() for word in found)
    weights = {word: idf(ndoc[word], len(held)) for word in words}
    total = sum(weights.values())
    worth = {note_id: sum(weights[word] for word in found) for note_id, found in held.items() if found}
    return [Hit(note_id, {"text": each, "coverage": each / total}) for note_id, each in worth.items()]


def _by_meaning(search: Search, stage: Stage, query: NoteQuery | None, held: Collection[UUID]) -> list[Hit] | None:
    if query is None:
        return None
    provider = get_provider()
    found = looked_up(search, stage, lambda: provider.search_notes(query))
    search.unrelated_below = provider.unrelated_below
    return None if found is None else [Hit(hit.note_id, {"vector": hit.score}) for hit in found if hit.note_id in held]


def _fused(search: Search, meaning: list[Hit] | None, words: list[Hit]) -> list[Hit]:
    arms = {"text": words} if meaning is None else {"vector": meaning, "text": words}
    apart = replace(search, arms=arms, hits=[], stages=[])
    fuse.run(apart)
    return apart.hits


def _results(principal: Principal, hits: list[Hit]) -> list[dict[str, Any]]:
    """In the shape of every result. What a note has not, a number above all, is null."""
    rows = TaskNote.objects.select_related("type__category", "origin_token").in_bulk([hit.memory_id for hit in hits])
    there = [hit for hit in hits if hit.memory_id in rows]
    shown = notes_shown(principal, [rows[hit.memory_id] for hit in there])
    return [
        note
        | {
            "number": None,
            "status": UNREVIEWED,
            "confidence": None,
            "valid_from": None,
            "valid_to": None,
            "recorded_at": note["created_at"],
            "retired_at": None,
            "amended_by": [],
            "instead_of": [],
            "score": round(hit.score, 6),
            "scores": {name: round(value, 6) for name, value in hit.scores.items()},
        }
        for note, hit in zip(shown, there, strict=True)
    ]
