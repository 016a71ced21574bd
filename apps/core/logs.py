from __future__ import annotations

import logging
import traceback

from django.db import OperationalError

from apps.core import request_id
from apps.core.database import is_down


class RequestIdFilter(logging.Filter):
    """Gives every record the id of the request it was written in, or a dash outside of requests."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.request_id = request_id.current.get() or "-"
        return True


class AddressFilter(logging.Filter):
    """Django names the address of each request that fails, and in an address there is what somebody wrote there."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name.startswith(("django.request", "django.security")):
            from apps.core.screening import masked

            record.msg, record.args = masked(record.getMessage()), None
        return True


class DatabaseDownFilter(logging.Filter):
    """While no server answers, one line says so in place of a traceback from every loop and request."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, OperationalError) and is_down(error):
            reason = next(iter(str(error).splitlines()), "")
            record.msg, record.args = f"{record.getMessage()}: the database does not answer: {reason}", None
            record.exc_info = record.exc_text = None
        return True


def quieten(*names: str) -> None:
    """Keep libraries from writing what they send and receive, or addresses that may carry a key, at any level."""
    for name in names:
        log = logging.getLogger(name)
        log.setLevel(max(log.level, logging.WARNING))


def without_words(error: BaseException) -> str:
    """What an error is and where it happened, without its message, which may quote what somebody wrote or asked."""
    state = getattr(error.__cause__ or error, "sqlstate", None)
    name = type(error).__name__ if state is None else f"{type(error).__name__} {state}"
    return f"{name}\n{''.join(traceback.format_tb(error.__traceback__))}".rstrip()
