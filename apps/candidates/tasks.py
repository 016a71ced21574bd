"""What the worker does for the queue. Tasks take ids, may run twice, and change nothing that a decision depends on."""

from __future__ import annotations

from uuid import UUID

from apps.candidates.models import OPEN, Candidate
from apps.candidates.near import merged, near_by_vector
from apps.memories.providers.registry import get_provider


def find_near_by_vector(candidate_id: str) -> str:
    """Embed an open candidate and note what is near it. Its version stays: a reviewer's decision is not disturbed."""
    candidate = Candidate.objects.filter(pk=UUID(candidate_id), status__in=OPEN).first()
    if candidate is None:
        return "It is no longer open."
    vector = get_provider().prepare(candidate.content).passages[0].vector
    near = merged(candidate, near_by_vector(candidate, vector))
    updated = Candidate.objects.filter(pk=candidate.pk, status__in=OPEN, content=candidate.content).update(
        vector=list(vector), near=near
    )
    return f"{len(near)} near." if updated else "It changed meanwhile."
