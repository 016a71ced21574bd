"""What is checked before anything is served. Rooms above this one add to ``STARTUP_CHECKS`` in the settings."""

from __future__ import annotations

from django.conf import settings
from django.utils.module_loading import import_string


def run_startup_checks() -> None:
    """Run every check; each raises a ``DomainError`` whose detail says what to do."""
    for name in settings.STARTUP_CHECKS:
        import_string(name)()
