"""Telling rooms above what happened below, without importing them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Generic, TypeVar

from apps.core.logs import without_words

T = TypeVar("T")

logger = logging.getLogger(__name__)


class Observers(Generic[T]):
    """Functions that want to know of each event. Rooms add theirs in ``ready()``."""

    def __init__(self) -> None:
        self._observers: list[Callable[[T], None]] = []

    def add(self, observer: Callable[[T], None]) -> None:
        self._observers.append(observer)

    def tell(self, event: T) -> None:
        """Call them all. What goes wrong with one is logged, and costs neither the others nor the one who tells."""
        for observer in self._observers:
            try:
                observer(event)
            except Exception as error:
                logger.error("An observer failed: %s", without_words(error))
