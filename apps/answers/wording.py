"""Whether a text says something in so many words: whole clauses of one of its sentences, in their order.

Words count in their order and form, function words included; only articles, numbers written as words, an “s” at the
end and punctuation may differ. What is left out must stand outside of a clause, or be the first of two that “and”
joins, and what is left out must not deny, restrict or condition what is kept.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from apps.retrieval.contents import NEGATIONS, QUANTITIES, UNSPACED, UNSPACED_NEGATION, number_of

_PIECE: Final = re.compile(
    rf"(?P<unspaced>因为|[{UNSPACED}])"
    r"|(?P<number>(?:(?<![\w)])[-−](?=\d))?\d+(?:[.,]\d+)*)"
    rf"|(?P<word>[^\W\d_{UNSPACED}]+(?:['’][^\W\d_]+)?)"
    r"|(?P<sign>[%‰$€£¥<>≥≤≠=±&]|(?<=\w)[+#]+)"
    r"|(?P<break>[,;:()\[\]—–…、，；：!?。！？\n\"“”]|(?<=\s)-(?=\s))"
)
_SENTENCE: Final = re.compile(r"(?<=[.!?;…])[\"”')\]]*\s+|(?<=[。！？；])")
_BULLET: Final = re.compile(r"\s*(?:[-*•–]|\d{1,3}[.)])\s")
# What is longer is no sentence that anybody takes clauses from, and the time that it takes is bounded.
_MOST_WORDS: Final = 300
_MOST_ANDS: Final = 6
# Where a sentence of a model may be two, each of which is said elsewhere.
_JOINED: Final = re.compile(r"[,;]\s+(?:and|und|et|y)\s+|;\s+", re.IGNORECASE)

_ARTICLES: Final = frozenset({"a", "an", "the"})
_AND: Final = frozenset({"and", "und", "et", "y"})
_BECAUSE: Final = frozenset({"because", "so that", "weil", "denn", "damit", "car", "porque", "因为"})
_BUT: Final = frozenset({"but", "however", "although", "though", "whereas", "otherwise", "aber", "sondern", "mais"})
_TAKES_BACK: Final = frozenset(
    {"except", "excepting", "unless", "otherwise", "however", "but", "ausser", "sauf", "salvo"}
)
# Whatever stands beside one of these holds only under it.
_CONDITIONS_WORDS: Final = """
if unless except excepting only until till provided providing otherwise but whenever
wenn falls ausser nur bis sofern solange si sauf seulement jusqu salvo excepto solo solamente hasta
"""
_CONDITIONS: Final = frozenset(_CONDITIONS_WORDS.split())
# The same where it begins what is left out.
_BEGINS_A_CONDITION_WORDS: Final = """
when while where before after once during in on at for with within under over above below between from as by to
among outside inside beyond per about against like than given assuming whether or nor
als bevor nachdem wahrend bei vor nach unter uber mit fur in im am oder
quand lorsque avant apres pendant pour dans sous ou cuando antes despues durante para en sin o
"""
_BEGINS_A_CONDITION: Final = _CONDITIONS | _BUT | frozenset(_BEGINS_A_CONDITION_WORDS.split())
_MORE_NEGATIONS_WORDS: Final = """
hardly scarcely barely rarely seldom few little neither nor no none without against false wrong untrue incorrect
myth outdated deprecated obsolete or oder
"""
_MORE_NEGATIONS: Final = frozenset(_MORE_NEGATIONS_WORDS.split())
_REFUSES: Final = re.compile(
    r"(?:refus|reject|avoid|forbid|forbad|prohibit|disallow|prevent|fail|declin|deni|deny|abandon|dismiss|oppos|"
    r"instead|propos|consider|plan|want|discuss|disabl|ban(?:s|ned)?$|claim|suggest|think|thought|assum)"
)
_HELPERS_WORDS: Final = """
is are was were be has have had can could may might must shall should will would do does did need needs cannot
ist sind war waren hat haben kann darf muss est sont es son
"""
_HELPERS: Final = frozenset(_HELPERS_WORDS.split())

# They end in an “s” of their own.
_KEPT: Final = NEGATIONS | _HELPERS | _CONDITIONS | _MORE_NEGATIONS | _BEGINS_A_CONDITION


@dataclass(frozen=True, slots=True)
class _Words:
    """``breaks[i]``: there is punctuation before the word, and behind the last there is always. ``articles[i]``: it has
    an article.
    """

    words: tuple[str, ...]
    breaks: tuple[bool, ...]
    articles: tuple[bool, ...]
    asks: bool


def says_in_one_of(texts: Sequence[str], sentence: str) -> bool:
    """Each sentence by one of the texts."""
    units = [list(_units(text)) for text in texts]
    parts = [part for part in _split(sentence) if _words(part).words]
    if not parts:
        return False
    whole = _words(sentence).words
    return any(_words(text).words == whole for text in texts) or all(_said(part, units) for part in parts)


def _said(part: str, texts: Sequence[Sequence[_Words]]) -> bool:
    if _one_says(_words(part), texts):
        return True
    halves = [_words(half) for half in _JOINED.split(part)]
    if len(halves) < 2 or any(_CONDITIONS & {*half.words} or not half.words for half in halves):
        return False
    return all(_one_says(half, texts) for half in halves)


def _one_says(said: _Words, texts: Sequence[Sequence[_Words]]) -> bool:
    return any(
        _holds(unit, said) and not (_takes_back(units[at + 1]) if at + 1 < len(units) else False)
        for units in texts
        for at, unit in enumerate(units)
    )


def _takes_back(following: _Words) -> bool:
    """“Retries are safe. Except for captures.”"""
    first = following.words[0] if following.words else ""
    return first in _TAKES_BACK


# --- Reading -----------------------------------------------------------------------------------------------


def _split(text: str) -> list[str]:
    return [each for each in _SENTENCE.split(text) if each.strip()]


def _units(text: str) -> Iterator[_Words]:
    """Its sentences; each entry of a list with what introduces the list."""
    introduction = ""
    for paragraph in _paragraphs(text):
        is_entry = _BULLET.match(paragraph) is not None
        if not is_entry:
            introduction = ""
        for sentence in _split(_BULLET.sub("", paragraph, count=1) if is_entry else paragraph):
            words = _words(f"{introduction} {sentence}" if is_entry else sentence)
            if words.words:
                yield words
            if not is_entry and sentence.rstrip().endswith((":", "：")):
                introduction = sentence


def _paragraphs(text: str) -> Iterator[str]:
    """Lines that go on in the next are one."""
    lines: list[str] = []
    for line in text.splitlines():
        if lines and (not line.strip() or _BULLET.match(line) or lines[-1].rstrip().endswith(":")):
            yield "\n".join(lines)
            lines = []
        if line.strip():
            lines.append(line)
    if lines:
        yield "\n".join(lines)


def _words(text: str) -> _Words:
    words: list[str] = []
    breaks: list[bool] = []
    articles: list[bool] = []
    broken = article = False
    for found in _PIECE.finditer(text):
        if found.lastgroup == "break":
            broken = True
            continue
        word = _word(found, broken=broken)
        if word in _ARTICLES:
            article = True
        elif word == "that" and words and words[-1] == "so" and not broken:
            words[-1] = "so that"
        else:
            words.append(word)
            breaks.append(broken and len(words) > 1)
            articles.append(article)
            broken = article = False
    asks = text.rstrip(" \"”')").endswith(("?", "？"))
    return _Words(tuple(words), (*breaks, True), tuple(articles), asks)


def _word(found: re.Match[str], *, broken: bool) -> str:
    text = found[0]
    if found.lastgroup == "number":
        return number_of(text.replace("−", "-"))
    if found.lastgroup != "word":
        return text
    if (quantity := QUANTITIES.get(text.casefold())) is not None:
        return str(quantity)
    folded = unicodedata.normalize("NFKD", text.replace("’", "'")).casefold()
    folded = "".join(character for character in folded if not unicodedata.combining(character))
    if folded == "since" and broken:
        return "because"
    return _singular(folded)


def _singular(word: str) -> str:
    """Retries are retry, and so is what somebody does who retries."""
    if len(word) < 4 or not word.isascii() or word.endswith(("ss", "us", "is")) or word in _KEPT:
        return word
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    return word[:-1] if word.endswith("s") else word


# --- Comparing ---------------------------------------------------------------------------------------------


def _holds(text: _Words, said: _Words) -> bool:
    too_long = len(text.words) > _MOST_WORDS or len(said.words) > len(text.words)
    if too_long or (text.asks and not said.asks) or not {*said.words} <= {*text.words}:
        return False
    return any(
        word == said.words[0] and _begins(text, start, said) and _goes_on(text, start, said)
        for start, word in enumerate(text.words)
    )


def _begins(text: _Words, start: int, said: _Words) -> bool:
    """Whether a clause begins there, of which nothing before denies, restricts or conditions anything."""
    if start == 0:
        return True
    before = text.words[start - 1]
    own_subject = text.articles[start] or text.breaks[start - 1] or bool(_HELPERS & {*said.words})
    joined = (before in _AND and own_subject) or (before == "so" and text.breaks[start - 1])
    hard = _hard_boundary(text, start)
    if not (text.breaks[start] or joined or start == hard or text.words[start] in _BECAUSE):
        return False
    left = text.words[hard:start]
    if text.words[0] in _BEGINS_A_CONDITION or (left and left[0] in _BEGINS_A_CONDITION):
        return False
    return not any(_denies(word) or word in _CONDITIONS for word in left) and not _denies_unspaced(left)


def _hard_boundary(text: _Words, start: int) -> int:
    """Behind the last reason or objection before ``start``: a denial does not reach across it."""
    for at in range(start, 0, -1):
        word = text.words[at - 1]
        if word in _BECAUSE or (word in _BUT and text.breaks[at - 1]):
            return at
    return 0


def _goes_on(text: _Words, start: int, said: _Words) -> bool:
    """Whether the words follow one another from there on to the end of a clause, one half of an “and” left out."""
    count = len(said.words)
    plain = _run(text, start, said, 0)
    if plain == count and _ends(text, start, start + count, said, 0):
        return True
    if sum(word in _AND for word in text.words) > _MOST_ANDS:
        return False
    # The last words that can follow immediately; “and” joins what is left out to what comes next.
    for kept in range(1, min(plain, count - 1) + 1):
        behind = start + kept
        for resumed in _behind_and(text, behind):
            if text.words[behind - 1] == "between" or _run(text, resumed, said, kept) < count - kept:
                continue
            if _ends(text, start, resumed + count - kept, said, resumed - behind):
                return True
    return False


def _run(text: _Words, at: int, said: _Words, first: int) -> int:
    """How many words of ``said`` from ``first`` on stand there."""
    length = 0
    while (
        first + length < len(said.words)
        and at + length < len(text.words)
        and text.words[at + length] == said.words[first + length]
    ):
        length += 1
    return length


def _behind_and(text: _Words, behind: int) -> Iterator[int]:
    """Where it may go on if the first half is left out: it holds no punctuation, and nothing that is no plain word."""
    for at in range(behind, len(text.words) - 1):
        word = text.words[at]
        if text.breaks[at] or _denies(word) or word in _CONDITIONS:
            return
        if word in _AND and at > behind and not text.breaks[at + 1]:
            yield at + 1


def _ends(text: _Words, start: int, end: int, said: _Words, skipped: int) -> bool:
    """Whether a clause ends there, and nothing behind it denies, restricts or conditions it."""
    whole = start == 0 and end == len(text.words) and not skipped
    if not whole and not _breaks_alike(text, start, end, said, skipped):
        return False
    if end == len(text.words):
        return True
    following = text.words[end]
    joined = following in _AND
    if not (text.breaks[end] or joined or following in _BECAUSE) or following in _BEGINS_A_CONDITION:
        return False
    right = text.words[end:]
    reason = next((at for at, word in enumerate(right) if word in _BECAUSE), len(right))
    # Behind a reason, what begins with a comma may belong to what the reason is for.
    late = (word for at, word in enumerate(right) if at > reason and text.breaks[end + at])
    if any(word in _CONDITIONS for word in (*right[:reason], *late)):
        return False
    own = _own_denial(right) if joined else 0
    return not any(_denies(word) for word in right[own:reason]) and not _denies_unspaced(right[:reason])


def _own_denial(right: Sequence[str]) -> int:
    """“… and are not allowed”: what “and” joins may deny something of its own."""
    at = 1
    while at < min(len(right), 3) and right[at] in _HELPERS:
        at += 1
    return at + 1 if at < len(right) and right[at] in NEGATIONS else 0


def _breaks_alike(text: _Words, start: int, end: int, said: _Words, skipped: int) -> bool:
    """“In staging, retries are off, in production, they are on” does not say “retries are off in production”."""
    if skipped:
        return True not in (
            text.breaks[at] for at in range(start + 1, end) if text.words[at] not in _BECAUSE
        ) or text.breaks[start + 1 : end].count(True) == said.breaks[1 : len(said.words)].count(True)
    return all(
        text.breaks[start + at] == said.breaks[at] or said.words[at] in _BECAUSE for at in range(1, len(said.words))
    )


def _denies(word: str) -> bool:
    return word in NEGATIONS or word in _MORE_NEGATIONS or word.endswith("n't") or _REFUSES.match(word) is not None


def _denies_unspaced(words: Sequence[str]) -> bool:
    return UNSPACED_NEGATION.search("".join(words)) is not None
