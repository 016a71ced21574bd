"""The extractor that ``FIRM_MEMORY_EXTRACTOR`` names. Whatever is heavy is imported when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from django.conf import settings

from apps.capture.extractors.base import Extractor


def _llm() -> Extractor:
    from apps.capture.extractors.llm import LlmExtractor

    return LlmExtractor()


def _provider() -> Extractor:
    from apps.capture.extractors.provider import ProviderExtractor

    return ProviderExtractor()


def _rules() -> Extractor:
    from apps.capture.extractors.rules import RulesExtractor

    return RulesExtractor()


NONE: Final = "none"
_MAKERS: Final[dict[str, Callable[[], Extractor]]] = {"llm": _llm, "provider": _provider, "rules": _rules}
_override: list[Extractor | None] = []


def get_extractor() -> Extractor | None:
    """``None`` where material is kept and nothing looks for facts in it."""
    if _override:
        return _override[-1]
    name: str = settings.FIRM_MEMORY_EXTRACTOR
    return None if name == NONE else _MAKERS[name]()


@contextmanager
def override(extractor: Extractor | None) -> Iterator[None]:
    """Use another one within the block; for tests and measurements."""
    _override.append(extractor)
    try:
        yield
    finally:
        _override.pop()
