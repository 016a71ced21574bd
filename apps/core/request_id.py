"""The id of the request in progress, which ties an answer to its log lines, verdicts and audit rows."""

from __future__ import annotations

import re
import uuid
from contextvars import ContextVar

from apps.core.screening.secrets import find_secrets

HEADER = "X-Request-ID"
MAX_LENGTH = 64
_ACCEPTABLE = re.compile(rf"[A-Za-z0-9._-]{{1,{MAX_LENGTH}}}")

current: ContextVar[str] = ContextVar("request_id", default="")


def accept(proposed: str | None) -> str:
    """A caller's own id when it is sane, else a new one: what is logged must not be of the caller's making."""
    if proposed and _ACCEPTABLE.fullmatch(proposed) and not find_secrets(proposed):
        return proposed
    return uuid.uuid4().hex
