"""What a text says, as far as its words tell: stems, numbers, names and whether it denies something.

Good enough to tell whether two texts say nearly the same, and whether one says what another does. Who does what to
whom is not seen.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

# Scripts that are written without spaces: there, two characters beside each other count as a word.
UNSPACED: Final = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_TOKEN: Final = re.compile(
    rf"[{UNSPACED}]+"
    r"|\d+(?:[.,]\d+)*"
    rf"|[^\W\d_{UNSPACED}]+(?:['’][^\W\d_]+)?"
)
# How far back it is looked for what a word follows on.
_LOOK_BACK: Final = 8
_IDENTIFIER: Final = re.compile(r"(?<!\w)(?:[^\W\d]\w*+(?:[./:]++\w++)++|[^\W\d_]++_\w++)")
_CLAUSE: Final = re.compile(
    r"(?<=[.!?;:])\s+|\n+|(?<=[。！？；，、])|,\s+|(?<!\s)\s++[—–-]\s+"
    r"|\b(?:because|since|so that|but|unless|although|whereas|and|weil|aber|sondern|damit|und|et|car|mais)\b",
    re.IGNORECASE,
)

_STOP_WORDS: Final = """
a an the this that these those it its they them their there here he she we our us you your i my who which what when
where how why be is are was were been being am do does did done doing have has had having will would shall should can
could may might must need needs needed of in on at by for from to into onto with within over under about as than then
and or if so such only also just very more most some any all each every both either other another same own one once
per via while during after before until till up out off again further too yes now ever because since
der die das den dem des ein eine einer eines einem einen und oder wenn als auf aus bei mit nach von vor zu zum zur im
in am an ist sind war waren wird werden wurde wurden hat haben hatte es sie er wir ihr sich auch nur noch schon so dass
wie was wer wo durch fur uber unter bis seit weil damit
le la les un une des du de et ou en au aux est sont pour par sur dans que qui ce cette
el los las una y o es son para por con se su
"""
_STOP: Final = frozenset(_STOP_WORDS.split())
_NEGATIONS_WORDS: Final = """
not never no none nobody nothing nowhere neither nor without cannot cant wont dont doesnt didnt isnt arent wasnt
shouldnt mustnt wouldnt hasnt havent avoid forbid forbidden prohibited refuse refuses refused disallowed instead
nicht statt anstatt nie niemals kein keine keinen keiner keinem keines ohne nichts niemand verboten
ne pas jamais sans aucun aucune rien
nunca jamás jamas sin ningún ningun ninguna ninguno nada
"""
NEGATIONS: Final = frozenset(_NEGATIONS_WORDS.split())
_BEFORE_A_NEGATION: Final = re.compile(rf"(?<!\s)\s++(?=(?:{'|'.join(sorted(NEGATIONS))})\b)", re.IGNORECASE)
UNSPACED_NEGATION: Final = re.compile("[不沒没无無未非禁]|ない|ません|せず|なし|ไม่")
_TO_TWELVE: Final = "two three four five six seven eight nine ten eleven twelve"
_TO_TWELVE_IN_GERMAN: Final = "zwei drei vier fünf sechs sieben acht neun zehn elf zwölf"
QUANTITIES: Final = {
    **{
        word: number
        for words in (_TO_TWELVE, _TO_TWELVE_IN_GERMAN)
        for number, word in enumerate(words.split(), start=2)
    },
    **{"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "ninety": 90, "hundred": 100},
    **{"zwanzig": 20, "dreißig": 30, "hundert": 100, "twice": 2, "thrice": 3, "zweimal": 2, "dreimal": 3},
}


@dataclass(frozen=True, slots=True)
class Contents:
    """``words`` are stems without those that mean nothing by themselves; ``names`` are those of them that are written
    with a capital within a sentence, ``identifiers`` paths, addresses and the like as a whole. ``denies``: there is a
    negation in it.
    """

    words: frozenset[str]
    numbers: frozenset[str]
    names: frozenset[str]
    identifiers: frozenset[str]
    denies: bool


def contents_of(text: str) -> Contents:
    words: set[str] = set()
    numbers: set[str] = set()
    denies = False
    for token in _TOKEN.findall(text):
        folded = _folded(token)
        if token[0].isdigit():
            numbers.add(number_of(token))
        elif _is_unspaced(token):
            denies = denies or bool(UNSPACED_NEGATION.search(token))
            words.update(_pairs(token))
        elif folded in NEGATIONS or folded.endswith("n't"):
            denies = True
        elif (quantity := QUANTITIES.get(token.casefold())) is not None:
            numbers.add(str(quantity))
        elif folded not in _STOP:
            words.add(_stem(folded))
    identifiers = frozenset(match[0].casefold() for match in _IDENTIFIER.finditer(text))
    return Contents(frozenset(words), frozenset(numbers), frozenset(_names(text)), identifiers, denies)


def clauses_of(text: str) -> list[str]:
    """Stretches within which a negation reaches."""
    return [clause for clause in _CLAUSE.split(text) if clause.strip()]


def denials_apart(text: str) -> list[str]:
    """The same, cut before each negation as well: in most languages it is what follows that is denied."""
    return [part for clause in clauses_of(text) for part in _BEFORE_A_NEGATION.split(clause) if part.strip()]


def likeness(one: Contents, other: Contents) -> float:
    """Sørensen–Dice over stems and numbers, from 0 to 1."""
    mine, theirs = one.words | one.numbers, other.words | other.numbers
    total = len(mine) + len(theirs)
    return 2 * len(mine & theirs) / total if total else 0.0


def _names(text: str) -> Iterator[str]:
    for match in re.finditer(r"[^\W\d_]+", text):
        word = match[0]
        before = text[max(0, match.start() - _LOOK_BACK) : match.start()].rstrip(" \"'“‘«(`*|")
        begins = not before or before[-1] in ".!?:\n。！？"
        named = any(map(str.isupper, word[1:])) or (word[0].isupper() and not begins)
        if named and _means_something(word):
            yield _stem(_folded(word))


def _means_something(word: str) -> bool:
    folded = _folded(word)
    return len(word) > 1 and folded not in _STOP and folded not in NEGATIONS and word.casefold() not in QUANTITIES


def _folded(token: str) -> str:
    decomposed = unicodedata.normalize("NFKD", token.replace("’", "'")).casefold()
    return "".join(character for character in decomposed if not unicodedata.combining(character))


def number_of(token: str) -> str:
    """1,000 and 1000 are one number; 3.10 and 3.1 are two, since versions are written like that."""
    plain = re.sub(r",(?=\d{3}(?:\D|$))", "", unicodedata.normalize("NFKC", token))
    return plain if "." in plain else plain.lstrip("0") or "0"


def _is_unspaced(token: str) -> bool:
    return re.match(f"[{UNSPACED}]", token) is not None


def _pairs(run: str) -> Iterator[str]:
    if len(run) == 1:
        yield run
    yield from (run[at : at + 2] for at in range(len(run) - 1))


_ENDINGS: Final = ("ations", "ation", "ments", "ment", "ings", "ing", "edly", "ed", "ers", "er", "es", "ly", "s", "e")


def _stem(word: str) -> str:
    """Cut so that the forms of one word are mostly one; what else then looks alike does so in both texts."""
    word = word.removesuffix("'s").replace("'", "")
    if word.endswith(("ies", "ied")) and len(word) > 4:
        return f"{word[:-3]}i"
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 2:
            word = word.removesuffix(ending)
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiouls":
        word = word[:-1]
    return f"{word[:-1]}i" if word.endswith("y") and len(word) > 3 else word
