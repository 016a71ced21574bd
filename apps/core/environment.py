"""Numbers from the environment, refused with a sentence where they are none."""

from __future__ import annotations

import os

from django.core.exceptions import ImproperlyConfigured


def number(name: str, default: int, *, least: int = 0, most: int | None = None) -> int:
    text = os.environ.get(name, "").strip()
    if not text:
        return default
    if text.isascii() and text.isdecimal() and least <= int(text) and (most is None or int(text) <= most):
        return int(text)
    allowed = f"from {least} to {most}" if most is not None else f"of at least {least}"
    raise ImproperlyConfigured(f"{name} is {text!r}. Write a whole number {allowed}.")
