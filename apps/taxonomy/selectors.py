from __future__ import annotations

from collections.abc import Sequence

from django.db.models import Q

from apps.accounts.models import Workspace
from apps.core.errors import Invalid
from apps.core.screening import quotable
from apps.taxonomy.models import MemoryType


def memory_types(workspace: Workspace) -> list[MemoryType]:
    """All types of the workspace with their categories, retired ones too, by slug."""
    return list(MemoryType.objects.filter(workspace=workspace).select_related("category"))


def find_types(
    workspace: Workspace,
    values: list[str],
    *,
    field: str,
    active_only: bool,
    known: Sequence[MemoryType] | None = None,
) -> list[MemoryType]:
    """Resolve names or wire slugs, whatever their case, with spaces around them allowed.

    Raises ``Invalid`` naming ``field`` and listing what may be used. A search may name a retired type, a
    proposal may not. ``known`` are the workspace's types where the caller has them already.
    """
    known = memory_types(workspace) if known is None else known
    by_spelling = {spelling.lower(): row for row in known for spelling in (row.slug, row.name)}
    usable = [row for row in known if row.is_active or not active_only]
    found = []
    for value in values:
        row = by_spelling.get(value.strip().lower())
        if row is None or row not in usable:
            listed = ", ".join(choice.slug for choice in usable)
            shown = quotable(value)
            why = "is retired and takes no new memories" if row else "is not a type"
            raise Invalid.field(field, f"“{shown}” {why}. Use one of: {listed}.", code="unknown_type")
        found.append(row)
    return found


def resolve_type(workspace: Workspace, value: str, *, field: str = "type") -> MemoryType:
    """The one live type that ``value`` spells. Raises ``Invalid``."""
    spelt = value.strip()
    asked = Q(slug__iexact=spelt) | Q(name__iexact=spelt)
    rows = MemoryType.objects.filter(asked, workspace=workspace, is_active=True).select_related("category")[:2]
    if len(rows) == 1:
        return rows[0]
    # Only an error needs all types, to list what may be used.
    return find_types(workspace, [value], field=field, active_only=True)[0]
