"""Text that stands in base64, standard or URL-safe, as manifests, logs and shells carry what they should not.

Only what decodes to printable ASCII is taken for text, and one level is taken off. A run may begin and end with what
is no part of it (a folder, a name, the first word of the next line), so it is read from each of its first four places.
"""

from __future__ import annotations

import re
from binascii import a2b_base64
from collections.abc import Iterator
from typing import Final, NamedTuple

SHORTEST: Final = 20
_RUN: Final = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{18,}+={0,2}")
# Four groups in a row whose first two bytes can be printable. Paths, digests and drawn keys hardly hold them, so that
# nearly nothing is decoded that is no text.
_PLAUSIBLE: Final = re.compile(r"(?:[CDI-Za-f][AC-HQS-Xgi-nwyz0-3][A-Za-z0-9+/_-]{2}){4}")
_STANDARD: Final = str.maketrans("-_", "+/")
_PRINTABLE: Final = re.compile(rb"[\t\n\r\x20-\x7e]{13,}+")


class Decoded(NamedTuple):
    """What stands in base64 in the half-open interval."""

    text: str
    start: int
    end: int


def decoded(text: str) -> Iterator[Decoded]:
    """Every stretch of printable ASCII that stands in base64 in ``text``."""
    for run in _RUN.finditer(text):
        if len(run[0]) >= SHORTEST and _PLAUSIBLE.search(run[0]):
            yield from _stretches(run[0], run.start())


def _stretches(run: str, at: int) -> Iterator[Decoded]:
    body = run.rstrip("=").translate(_STANDARD)
    for skipped in range(4):
        for stretch in _PRINTABLE.finditer(_bytes_of(body[skipped:])):
            # Three bytes stand in four characters.
            start = skipped + stretch.start() * 4 // 3
            end = skipped - (-stretch.end() * 4 // 3)
            yield Decoded(stretch[0].decode(), at + start, at + (len(run) if end == len(body) else end))


def _bytes_of(body: str) -> bytes:
    if len(body) % 4 == 1:  # one character more than any bytes make
        body = body[:-1]
    return a2b_base64(body + "=" * (-len(body) % 4))
