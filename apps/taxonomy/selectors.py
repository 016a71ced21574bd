from __future__ import annotations

from apps.accounts.models import Workspace
from apps.core.errors import Invalid
from apps.taxonomy.models import MemoryType


def memory_types(workspace: Workspace) -> list[MemoryType]:
    """All types of the workspace with their categories, retired ones too, by slug."""
    return list(MemoryType.objects.filter(workspace=workspace).select_related("category"))


def find_types(workspace: Workspace, values: list[str], *, field: str, active_only: bool) -> list[MemoryType]:
    """Resolve names or wire slugs, whatever their case, with spaces around them allowed.

    Raises ``Invalid`` naming ``field`` and listing what may be used. A search may name a retired type, a
    proposal may not.
    """
    known = memory_types(workspace)
    by_spelling = {spelling.lower(): row for row in known for spelling in (row.slug, row.name)}
    usable = [row for row in known if row.is_active or not active_only]
    found = []
    for value in values:
        row = by_spelling.get(value.strip().lower())
        if row is None or row not in usable:
            listed = ", ".join(choice.slug for choice in usable)
            shown = value.strip()[:60]
            why = "is retired and takes no new memories" if row else "is not a type"
            raise Invalid.field(field, f"“{shown}” {why}. Use one of: {listed}.", code="unknown_type")
        found.append(row)
    return found


def resolve_type(workspace: Workspace, value: str, *, field: str = "type") -> MemoryType:
    """The one live type that ``value`` spells. Raises ``Invalid``."""
    return find_types(workspace, [value], field=field, active_only=True)[0]
