"""What is checked before anything is served: the functions named in ``settings.STARTUP_CHECKS``."""

from __future__ import annotations

from django.conf import settings
from django.utils.module_loading import import_string


def run_startup_checks() -> None:
    """Run every check; each raises a ``DomainError`` whose detail says what to do."""
    for name in settings.STARTUP_CHECKS:
        import_string(name)()
