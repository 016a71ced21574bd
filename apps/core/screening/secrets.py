"""Secrets in text: cloud, forge, chat and model keys, private keys, tokens, passwords in URLs and assignments.

What is found is a kind and a position. The value is in no result, no representation and no message.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from apps.core.screening.answers import find_answers
from apps.core.screening.assignments import find_assignments
from apps.core.screening.encoded import decoded
from apps.core.screening.folding import JOINT, Folded, fold, joined, long_runs, rewrite, unescaped_lines, wrapped_runs
from apps.core.screening.headers import find_header_credentials
from apps.core.screening.private_keys import find_private_keys
from apps.core.screening.secret_rules import PHRASE_RULES, TOKEN_RULES, TokenRule
from apps.core.screening.told import find_told
from apps.core.screening.urls import find_url_passwords
from apps.core.screening.values import is_description, is_placeholder, is_random

SECRETS: Final = "secrets-personal-data"

# A mark that masking left reads as one placeholder character, so that masking twice changes nothing.
_MARK: Final = re.compile(r"\[secret: [a-z0-9][a-z0-9 ._-]{0,40}\]")
_BLANK: Final = "<"
_TAG: Final = re.compile("[\U000e0020-\U000e007e]")
_DRAWN: Final = re.compile(r"\d|[a-z][A-Z]")
_NEXT_PIECE: Final = re.compile(rf"(?=[\"']){JOINT.pattern}([\w+/=.~!@#$%^&*-]{{4,400}})(?=[\"'])")
_MOST_PIECES: Final = 20
# No value reaches over it from one text into the next.
_BETWEEN: Final = f"\n{_BLANK}\n"
_ROUNDS: Final = 4
# Of what has a name, only what is called a password counts where all of it is encoded.
_NAMED: Final = frozenset({"password", "passphrase"})
_TAIL: Final = 10


@dataclass(frozen=True, slots=True)
class Finding:
    """Where a secret stands, as a half-open interval, and what it is. Its value is not kept."""

    kind: str
    start: int
    end: int


def find_secrets(text: str) -> list[Finding]:
    """Every secret in ``text``, in order and without overlap."""
    view = _view(text)
    found = _found_in(view)
    if "%" in text or "\\" in text:
        found += [
            Finding(each.kind, *view.span(each.start, each.end)) for each in _found_in(unescaped_lines(view.text))
        ]
    if _TAG.search(text):  # tag characters spell ASCII that nobody sees
        found += _found_in(rewrite(Folded(text), _TAG, lambda tag: chr(ord(tag) - 0xE0000)))
    return _disjoint(found)


def _found_in(view: Folded) -> list[Finding]:
    found: list[Finding] = []
    matched = view.text
    for _ in range(_ROUNDS):  # what stands right beside a secret may show itself only when that one is gone
        fresh = _disjoint(_all_rules(matched))
        if not fresh:
            break
        fresh = [_to_the_end(matched, finding) for finding in fresh]
        matched = _blanked(matched, fresh)
        found.extend(fresh)
    return [Finding(finding.kind, *view.span(finding.start, finding.end)) for finding in found]


def _to_the_end(text: str, finding: Finding) -> Finding:
    """With the other pieces of a string that is put together: ``"…" + "…"``."""
    end = finding.end
    for _ in range(_MOST_PIECES):
        piece = _NEXT_PIECE.match(text, end)
        if not piece or not is_random(piece[1]):
            break
        end = piece.end(1)
    return Finding(finding.kind, finding.start, end)


def mask(text: str, findings: Iterable[Finding]) -> str:
    """``text`` with every finding replaced by ``[secret: <kind>]``; overlapping findings become one mark."""
    pieces: list[str] = []
    position = 0
    for finding in _disjoint(findings):
        pieces += text[position : finding.start], f"[secret: {finding.kind}]"
        position = finding.end
    return "".join(pieces) + text[position:]


def _blanked(text: str, findings: list[Finding]) -> str:
    pieces: list[str] = []
    position = 0
    for finding in findings:
        pieces += text[position : finding.start], _BLANK * (finding.end - finding.start)
        position = finding.end
    return "".join(pieces) + text[position:]


def _view(text: str) -> Folded:
    view = fold(text)
    if "[secret: " in view.text:
        view = rewrite(view, _MARK, lambda _: _BLANK)
    return view


def _all_rules(text: str) -> Iterator[Finding]:
    """Specific rules first: where two findings overlap, the first one's kind counts."""
    # One byte a character, at the same positions: searching that is several times as fast.
    plain = text if text.isascii() else text.encode("ascii", "replace").decode("ascii")
    for start, end in find_private_keys(plain):
        yield Finding("private key", start, end)
    yield from _tokens(plain)
    for start, end in find_url_passwords(plain):
        yield Finding("password in url", start, end)
    lowered = text.lower()
    for kind, start, end in find_header_credentials(plain, lowered):
        yield Finding(kind, start, end)
    for kind, start, end in find_assignments(text, lowered):
        yield Finding(kind, start, end)
    for kind, start, end in (*find_told(text, lowered), *find_answers(text, lowered)):
        yield Finding(kind, start, end)


def _tokens(text: str) -> Iterator[Finding]:
    runs = long_runs(text)
    if runs.anchors:
        for finding in _matches(TOKEN_RULES, runs.text):
            yield Finding(finding.kind, *runs.span(finding.start, finding.end))
    yield from _matches(PHRASE_RULES, text)
    for finding in _encoded(runs.text):
        yield Finding(finding.kind, *runs.span(finding.start, finding.end))
    if "\n" in text:
        yield from _wrapped_tokens(text)
    if JOINT.search(text):
        yield from _joined_tokens(text)


def _encoded(text: str) -> Iterator[Finding]:
    """Secrets in base64, each with all that stands encoded around it: a part of that is of use to nobody."""
    stretches = list(decoded(text))
    if not stretches:
        return
    # Each rule looks once at all of them together, which costs as much as to look at one.
    begins = list(accumulate((len(each.text) + len(_BETWEEN) for each in stretches), initial=0))
    kinds: dict[int, str] = {}
    for finding in _of_known_form(_BETWEEN.join(each.text for each in stretches)):
        kinds.setdefault(bisect_right(begins, finding.start) - 1, finding.kind)
    for at, kind in kinds.items():
        yield Finding(f"{kind} in base64", stretches[at].start, stretches[at].end)


def _of_known_form(text: str) -> Iterator[Finding]:
    """The rules that need no more than the text itself, and neither a sentence nor a dialogue around it."""
    for start, end in find_private_keys(text):
        yield Finding("private key", start, end)
    yield from _matches(TOKEN_RULES, text)
    yield from _matches(PHRASE_RULES, text)
    for start, end in find_url_passwords(text):
        yield Finding("password in url", start, end)
    for kind, start, end in find_assignments(text, text.lower()):
        if kind in _NAMED:
            yield Finding(kind, start, end)


def _matches(rules: Iterable[TokenRule], text: str) -> Iterator[Finding]:
    for rule in rules:
        if any(word in text for word in rule.words):
            pattern = rule.pattern
            group = pattern.groups
            for match in pattern.finditer(text):
                if not _is_filler(match[group]):
                    yield Finding(rule.kind, *match.span(group))


def _wrapped_tokens(text: str) -> Iterator[Finding]:
    """Tokens that a line break splits, with the indentation or quoting of the next line."""
    runs = wrapped_runs(text)
    if not runs.anchors:
        return
    for finding in (*_matches(TOKEN_RULES, runs.text), *_encoded(runs.text)):
        start, end = runs.span(finding.start, finding.end)
        end = _end_over_lines(text, start, end)
        if "\n" in text[start:end]:
            yield Finding(finding.kind, start, end)


def _end_over_lines(text: str, start: int, end: int) -> int:
    """With the padding behind it, or without a word of prose on the next line, which is not the rest of a key."""
    while text.startswith("=", end):
        end += 1
    broken = text.rfind("\n", start, end)
    if broken < 0 or text[end - 1] == "=" or _DRAWN.search(text, broken, end):
        return end
    return start + len(text[start:broken].rstrip())


def _joined_tokens(text: str) -> Iterator[Finding]:
    """Tokens that are put together of several strings, or broken by a tag or a hyphen."""
    view = joined(text)
    for finding in (*_matches(TOKEN_RULES, view.text), *_encoded(view.text)):
        start, end = view.span(finding.start, finding.end)
        joints = list(JOINT.finditer(text, start, end))
        if joints and _DRAWN.search(text, joints[-1].end(), end):
            yield Finding(finding.kind, start, end)


def _is_filler(token: str) -> bool:
    """The shape of a key that documentation gives: of one character, or with an invitation to fill it in."""
    tail = token[-_TAIL:]
    return (len(tail) == _TAIL and len(set(tail)) < 4) or is_placeholder(token) or is_description(token)


def _disjoint(findings: Iterable[Finding]) -> list[Finding]:
    """Overlapping findings joined into one that has the kind of the first found."""
    ranked = sorted(enumerate(findings), key=lambda pair: (pair[1].start, pair[0]))
    joined: list[tuple[int, Finding]] = []
    for rank, finding in ranked:
        if joined and finding.start < joined[-1][1].end:
            other_rank, other = joined[-1]
            kind = other.kind if other_rank <= rank else finding.kind
            merged = Finding(kind, other.start, max(other.end, finding.end))
            joined[-1] = (min(rank, other_rank), merged)
        elif finding.end > finding.start:
            joined.append((rank, finding))
    return [finding for _, finding in joined]
