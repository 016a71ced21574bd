"""Packages that only measurements need, imported when they are needed."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


class MissingPackage(RuntimeError):
    """A package of requirements/dev.txt is not installed; the message says which, and what to do."""


def require(module: str, *, package: str = "") -> ModuleType:
    try:
        return import_module(module)
    except ImportError:
        raise MissingPackage(
            f"Evaluating needs {package or module}, which is not installed: the running service does without it. "
            "`make check` and `make test` install it, as does `pip install -r requirements/dev.txt`."
        ) from None
