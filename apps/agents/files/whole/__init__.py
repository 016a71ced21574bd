"""Everything that was approved in a workspace as lines of JSON, and such lines brought into an empty workspace.

``docs/export.md`` says what each line holds. Nothing of it is a backup: that is the database's.
"""

from __future__ import annotations

from typing import Final

FORMAT: Final = "firm-memory-export"
VERSION: Final = 1
# The order in which records stand in a file: each names only what stands before it.
ORDER: Final = (
    *("header", "category", "type", "exclusion", "domain", "repository", "audience"),
    *("source", "memory", "edge", "trailer"),
)
