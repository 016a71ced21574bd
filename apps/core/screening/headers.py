"""Credentials in HTTP headers: basic and bearer authorisation, and raw ``Authorization`` values."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Final

from apps.core.screening.values import is_placeholder, is_random

_BEARER: Final = re.compile(r"bearer[\s:=]{1,4}[\"'`]?([A-Za-z0-9._~+/-]{8,4000}={0,2})", re.IGNORECASE)
_BASIC: Final = re.compile(r"basic\s{1,4}[\"'`]?([A-Za-z0-9+/]{6,400}={0,2})(?![\w+/=])", re.IGNORECASE)
_RAW: Final = re.compile(
    r"authorization[\"'`]?\s{0,4}[:=,]\s{0,4}[\"'`]?(?:(?:token|apikey|api-key|key|digest|bot|oauth|ntlm|negotiate"
    r"|ssws)[\s=]{1,4})?[\"'`]?([A-Za-z0-9._~+/-]{8,4000}={0,2})",
    re.IGNORECASE,
)


def find_header_credentials(text: str, lowered: str) -> Iterator[tuple[str, int, int]]:
    for kind, word, pattern in (
        ("bearer token", "bearer", _BEARER),
        ("basic authorisation", "basic", _BASIC),
        ("authorisation header", "authorization", _RAW),
    ):
        position = lowered.find(word)
        while position >= 0:
            match = pattern.match(text, position)
            if match and _is_credential(kind, match[1]):
                yield kind, *match.span(1)
            position = lowered.find(word, position + len(word))


def _is_credential(kind: str, value: str) -> bool:
    if kind == "basic authorisation":
        return _decodes_to_pair(value)
    return is_random(value) and not is_placeholder(value)


def _decodes_to_pair(value: str) -> bool:
    """``user:password`` behind base64; the word after *basic* in a sentence decodes to nothing of the kind."""
    try:
        decoded = base64.b64decode(value + "=" * (-len(value) % 4), validate=True)
        user, colon, password = decoded.decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return False
    return bool(colon and password) and (user + password).isprintable() and not is_placeholder(password)
