"""How many memories a search may look at, by workspace, scope and type: bounded, and remembered for a minute.

It chooses between two ways to the same answer, so a stale size costs time and changes nothing.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final

from django.db import connection

from apps.retrieval.filters import Admission
from apps.retrieval.terms import corpus_of

SECONDS: Final = 60.0
REMEMBERED: Final = 1_024


def scope_size(admission: Admission, *, limit: int) -> int:
    """The number of memories in scope, or ``limit + 1`` where there are more."""
    key = (
        admission.workspace_id,
        admission.scope.everything,
        admission.scope.domain_ids,
        admission.scope.repo_ids,
        None if admission.types is None else tuple(sorted(row.pk for row in admission.types)),
        limit,
    )
    return _sizes.get(key, lambda: _count(admission, limit))


def forget_sizes() -> None:
    """For tests, which make another database of the same one."""
    _sizes.clear()


class _Remembered:
    """Values that are made again once they are a minute old; the least recently made one goes first."""

    def __init__(self) -> None:
        self._known: OrderedDict[Hashable, tuple[float, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], int]) -> int:
        moment = time.monotonic()
        with self._lock:
            made_at, value = self._known.get(key, (float("-inf"), 0))
        if moment - made_at < SECONDS:
            return value
        value = make()
        with self._lock:
            self._known[key] = moment, value
            self._known.move_to_end(key)
            while len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        return value

    def clear(self) -> None:
        with self._lock:
            self._known.clear()


_sizes: Final = _Remembered()


def _count(admission: Admission, limit: int) -> int:
    if admission.scope.everything and admission.types is None:
        return min(corpus_of(admission.workspace_id).documents, limit + 1)
    condition, values = admission.scope_sql()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM "
            f"(SELECT FROM memories_memory AS memory WHERE {condition} LIMIT %(bound)s) AS admitted",
            values | {"bound": limit + 1},
        )
        (size,) = cursor.fetchone()
    return int(size)
