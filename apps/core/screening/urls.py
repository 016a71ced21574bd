"""Passwords in URLs and connection strings of any scheme."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from apps.core.screening.values import is_placeholder

_AUTHORITY: Final = re.compile(r"://([^\s/?#:\"'`<>\\|]{0,128}):([^\s\"'`<>]{1,300})")
_BARE: Final = re.compile(
    r"(?<![\w.+:/@-])[A-Za-z][\w.-]{0,63}:([^\s\"'`<>@/:]{3,128})@[A-Za-z0-9](?:[\w-]{0,62}\.?){1,8}(?::\d{2,5}"
    r"|/\w)"
)
_HOST: Final = re.compile(r"[\w.\[%{$*-]")
_SCHEME_END: Final = re.compile(r"[A-Za-z0-9+.\-_}]")
_STRONG: Final = re.compile(r"(?=[^\s]{0,127}[A-Za-z])[^\s]{0,127}[\d!#$%^&*=+~]")


def find_url_passwords(text: str) -> Iterator[tuple[int, int]]:
    """The password alone: who the user is and where the service runs may be told."""
    position = text.find("://")
    while position >= 0:
        match = _AUTHORITY.match(text, position)
        if match and position and _SCHEME_END.match(text[position - 1]):
            length = _password_length(match[2])
            if length and not is_placeholder(match[2][:length]):
                yield match.start(2), match.start(2) + length
        position = text.find("://", position + 3)
    if "@" in text:
        for match in _BARE.finditer(text):
            if _STRONG.match(match[1]) and not is_placeholder(match[1]):
                yield match.span(1)


def _password_length(rest: str) -> int:
    """Up to the last ``@`` of the authority; a password with an unescaped slash ends at the first one."""
    following = rest.find("://")
    rest = rest if following < 0 else rest[:following]
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    at = authority.rfind("@")
    if at < 0 and not re.match(r"\d{1,5}(?:[/?#,]|$)", rest):
        at = rest.find("@")
    return at if at > 0 and _HOST.match(rest[at + 1 : at + 2]) else 0
