"""What a workspace remembers and what it leaves out, as extractors are told."""

from __future__ import annotations

from apps.accounts.models import Workspace
from apps.capture.extractors.base import TypeChoice, Vocabulary
from apps.taxonomy.models import Exclusion, MemoryType


def vocabulary_of(workspace: Workspace) -> Vocabulary:
    types = MemoryType.objects.filter(workspace=workspace, is_active=True).order_by("pk")
    exclusions = Exclusion.objects.filter(workspace=workspace, is_active=True).order_by("pk")
    return Vocabulary(
        types=tuple(TypeChoice(type_.name, type_.slug, type_.description) for type_ in types),
        exclusions=tuple((exclusion.slug, exclusion.description) for exclusion in exclusions),
    )
