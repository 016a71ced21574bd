"""Whether a text can be stored at all, what in it cannot be seen, and what in it talks to its reader."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from apps.core.errors import FieldError
from apps.core.screening import folding

MAX_FLAGGED: Final = 100
_EXCERPT: Final = 120

_SURROGATE_PAIR: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_TERMINAL_SEQUENCE: Final = re.compile("\x1b(?:\\[[0-?]{0,32}[ -/]{0,8}[@-~]|\\][^\x07\x1b]{0,512}(?:\x07|\x1b\\\\))")
_CONTROL: Final = re.compile("[\x01-\x08\x0b\x0c\x0e-\x1f]")
_LINE_BREAK: Final = re.compile("[\n\r\u2028\u2029]")


@dataclass(frozen=True, slots=True)
class TextProblem(FieldError):
    """Why a text cannot be stored. ``kind`` is one of nul, surrogate, control, line-break, blank, short, long."""

    kind: str = ""


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a text that a reviewer should see, with a printable rendering of it."""

    kind: str
    start: int
    end: int
    shown: str


def line_and_column(value: str, index: int) -> tuple[int, int]:
    """Both counted from one, as editors do."""
    return value.count("\n", 0, index) + 1, index - value.rfind("\n", 0, index)


def _where(value: str, index: int, *, multiline: bool) -> str:
    line, column = line_and_column(value, index)
    return f"line {line}, column {column}" if multiline else f"position {index + 1}"


def _forbidden(value: str, multiline: bool) -> Iterator[tuple[str, re.Pattern[str], str]]:
    yield "nul", re.compile("\x00"), "a NUL character"
    yield "surrogate", _SURROGATE, "half of a surrogate pair, which is no character by itself"
    yield "control", _CONTROL, "a control character"
    if not multiline:
        yield "line-break", _LINE_BREAK, "a line break, and this field is a single line"


def check_text(
    value: str, *, field: str, max_length: int, min_length: int = 1, multiline: bool = True
) -> list[FieldError]:
    """Every reason why ``value`` cannot be stored in ``field``; lengths are in characters (code points).

    A text of which nothing can be seen counts as blank. With ``min_length=0`` a blank text is accepted.
    """
    problems: list[FieldError] = []
    for kind, pattern, what in _forbidden(value, multiline):
        if found := pattern.search(value):
            where = _where(value, found.start(), multiline=multiline)
            message = f"There is {what}, at {where} (U+{ord(found[0]):04X}). Remove it and send the text again."
            problems.append(TextProblem(field, message, kind))
    visible = len(folding.HIDDEN_RUN.sub("", value).strip()) if len(value) <= max_length else len(value)
    if not visible and min_length > 0:
        problems.append(TextProblem(field, "This is blank. Write at least one visible character.", "blank"))
    elif visible < min_length:
        message = f"This is too short: at least {min_length:,} characters are needed, and it has {visible:,}."
        problems.append(TextProblem(field, message, "short"))
    if len(value) > max_length:
        message = f"This is too long: at most {max_length:,} characters are allowed, and it has {len(value):,}."
        problems.append(TextProblem(field, message, "long"))
    return problems


def _counted(count: int, what: str) -> str:
    return f"Removed {count:,} {what}{'' if count == 1 else 's'}."


def clean_text(value: str) -> tuple[str, list[str]]:
    """Raw material made storable: what no column can hold is taken out, and each kind leaves a note."""
    notes: list[str] = []
    value = _SURROGATE_PAIR.sub(lambda pair: pair[0].encode("utf-16", "surrogatepass").decode("utf-16"), value)
    for pattern, what in (
        (re.compile("\x00"), "NUL character"),
        (_SURROGATE, "lone surrogate"),
        (_TERMINAL_SEQUENCE, "terminal control sequence"),
        (_CONTROL, "control character"),
    ):
        value, count = pattern.subn("", value)
        if count:
            notes.append(_counted(count, what))
    return value, notes


# --- Hidden characters -------------------------------------------------------------------------------------

_KIND_CHARACTERS: Final = {
    "zero-width": folding.ZERO_WIDTH,
    "soft-hyphen": folding.SOFT_HYPHEN,
    "bidi": folding.BIDI,
    "tag": folding.TAGS,
    "variation-selector": folding.VARIATION_SELECTORS,
    "invisible-operator": folding.INVISIBLE_OPERATORS,
    "filler": folding.FILLERS,
    "private-use": folding.PRIVATE_USE,
    "format": folding.FORMAT_CONTROLS,
    "control": folding.CONTROLS,
}
_KINDS: Final = tuple(_KIND_CHARACTERS)
_RUN_OF_ONE_KIND: Final = re.compile("|".join(f"([{chars}]+)" for chars in _KIND_CHARACTERS.values()))
_EMOJI: Final = re.compile(
    "[#*0-9\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u2460-\u24ff\u25a0-\u27bf"
    "\u2900-\u297f\u2b00-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
)
_PICTURE: Final = re.compile("[\u2190-\u21ff\u2300-\u23ff\u2600-\u27bf\u2b00-\u2bff\ufe0f\U0001f000-\U0001faff]")
_JOINING: Final = re.compile(  # Arabic, Syriac, N'Ko, Indic, Tibetan, Mongolian and their extensions
    "[\u0600-\u07ff\u0840-\u08ff\u0900-\u0dff\u0f00-\u0fff\u1000-\u109f\u1780-\u18af\ua840-\ua8ff\ua980-\ua9df"
    "\ufb50-\ufdff\ufe70-\ufefc\U00011000-\U000116cf]"
)
_UNSPACED: Final = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1950-\u19df\u1a20-\u1aaf]")
_RIGHT_TO_LEFT: Final = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff]")
_IDEOGRAPH: Final = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_VARIED: Final = re.compile(  # letters and signs that have standardised variation sequences
    "[0\u1000-\u109f\u1820-\u18aa\u2200-\u22ff\u2a00-\u2aff\u3001\u3002\uff01-\uff1f\ua840-\ua87f]"
)
_BRAILLE: Final = re.compile("[\u2801-\u28ff]")
_JAMO: Final = re.compile("[\u1100-\u11ff]")
_FLAGS: Final = frozenset(f"{nation}\x7f" for nation in ("gbeng", "gbsct", "gbwls"))


def hidden_characters(value: str) -> list[Span]:
    """Characters that are in the text but not to be seen in it, apart from those its script or an emoji needs.

    Neighbours of one kind make one span. At most ``MAX_FLAGGED`` spans are returned, the first ones.
    """
    if value.isascii() and "\x7f" not in value:
        return []
    spans: list[Span] = []
    for found in _runs_of_one_kind(value):
        kind, (start, end) = _KINDS[(found.lastindex or 1) - 1], found.span()
        if _belongs(kind, found[0], value[start - 1 : start], value[end : end + 1]):
            continue
        spans.append(Span(kind, start, end, _rendered(kind, found[0])))
        if len(spans) == MAX_FLAGGED:
            break
    return spans


def _runs_of_one_kind(value: str) -> Iterator[re.Match[str]]:
    for run in folding.HIDDEN_RUN.finditer(value):
        yield from _RUN_OF_ONE_KIND.finditer(value, run.start(), run.end())


def _belongs(kind: str, run: str, left: str, right: str) -> bool:
    """Whether an emoji or the script of its neighbours needs this run of one kind of hidden characters."""
    if kind == "tag":
        return left == "\U0001f3f4" and spelled_by_tags(run, with_end=True) in _FLAGS
    if kind == "filler" and set(run) == {"\u2800"}:
        return bool(_BRAILLE.match(left) or _BRAILLE.match(right))
    if len(run) > 1:
        return False
    match kind:
        case "zero-width" if run == "\u200d":
            return bool(_PICTURE.match(left) and _PICTURE.match(right)) or _both(_JOINING, left, right)
        case "zero-width" if run == "\u200c":
            return _both(_JOINING, left, right)
        case "zero-width" if run == "\u200b":
            return _both(_UNSPACED, left, right)
        case "bidi" if run in "\u061c\u200e\u200f":
            return bool(_RIGHT_TO_LEFT.match(left) or _RIGHT_TO_LEFT.match(right))
        case "variation-selector" if run in "\ufe0e\ufe0f":
            return bool(_EMOJI.match(left)) and (not left.isascii() or right == "\u20e3")
        case "variation-selector" if run > "\ufe0f":
            return bool(_IDEOGRAPH.match(left))
        case "variation-selector":
            return bool(_VARIED.match(left) or _IDEOGRAPH.match(left))
        case "filler" if run in "\u115f\u1160":
            return bool(_JAMO.match(left) or _JAMO.match(right))
    return False


def _both(pattern: re.Pattern[str], left: str, right: str) -> bool:
    return bool(pattern.match(left) and pattern.match(right))


def spelled_by_tags(run: str, *, with_end: bool = False) -> str:
    """The ASCII text that tag characters spell without showing it."""
    last = 0x7F if with_end else 0x7E
    return "".join(chr(code) for code in (ord(c) - 0xE0000 for c in run) if 0x20 <= code <= last)


def _rendered(kind: str, run: str) -> str:
    first = f"U+{ord(run[0]):04X} {unicodedata.name(run[0], kind.replace('-', ' ').upper())}"
    if len(run) == 1:
        return f"[{first}]"
    if kind == "tag" and (spelled := spelled_by_tags(run[:_EXCERPT])):
        return f'[{len(run)} tag characters spelling "{spelled}"]'
    return f"[{first} and {len(run) - 1:,} more]"


# --- Instructions to the reader ----------------------------------------------------------------------------

_NOT_WORD: Final = r"[\s,.;:!'\"*_`-]{1,4}"


def _phrase(*parts: str) -> str:
    return rf"\b{_NOT_WORD.join(parts)}"


_FILLING: Final = rf"(?:(?:all|any|every|each|the|these|those|this|of|your|my|our|its){_NOT_WORD}){{0,3}}"
_EARLIER: Final = "(?:previous|prior|above|earlier|preceding|foregoing|past|existing|other|former|system|initial)"
_RULES: Final = (
    "(?:instructions?|prompts?|rules?|directives?|guidelines?|guidance|context|messages?|memor(?:y|ies)|commands?"
    "|decisions?|polic(?:y|ies)|conventions?|orders|constraints?|restrictions?|entries|statements?|knowledge)"
)
_READER: Final = "(?:ai|llm|model|language model|assistant|agent|coding agent|chatbot|reviewer|copilot|claude|gpt|gemini)s?"

# Each rule runs only where one of its words, all lower case, stands in the text.
_INSTRUCTIONS: Final = tuple(
    (kind, words, re.compile(pattern, re.MULTILINE))
    for kind, words, pattern in (
        (
            "override",
            ("ignor", "disregard", "forget", "overlook", "bypass", "override", "do not follow", "don't follow"),
            _phrase(
                "(?:ignor(?:e|es|ing)|disregard|forget|overlook|bypass|override|do not follow|don't follow)",
                rf"{_FILLING}(?:{_EARLIER}{_NOT_WORD}){{1,2}}(?:\w{{1,20}}{_NOT_WORD})?{_RULES}\b",
            )
            + "|"
            + _phrase("(?:ignore|disregard|forget)", "(?:everything|anything|all|what)", r"(?:\w{1,20}\s){0,3}(?:above|before|earlier|said)\b")
            + "|"
            + _phrase("(?:ignore|disregard|forget|bypass|override)", "(?:your|all)", rf"(?:\w{{1,20}}\s)?{_RULES}\b"),
        ),
        (
            "override",
            ("ignorier", "vergiss", "ignore", "oubli", "ignora", "olvida", "忽略", "無視", "忘记", "игнорируй"),
            r"\b(?:ignoriere?n?|vergiss|missachte)\s(?:sie\s)?(?:alle\s)?(?:vorherigen|bisherigen|früheren|obigen|vorangehenden)\s\w{3,30}"
            r"|\b(?:ignore[zr]?|oublie[zr]?)\s(?:toutes\s)?(?:les\s)?(?:instructions|consignes|règles)\s(?:précédentes|antérieures)"
            r"|\b(?:ignora|olvida|ignore)\s(?:todas\s)?(?:las\s)?(?:instrucciones|reglas)\s(?:anteriores|previas)"
            r"|(?:忽略|忘记|无视)[^\n。]{0,12}(?:指令|指示|规则|说明)|(?:指示|命令|ルール)[^\n。]{0,6}無視"
            r"|игнорируй(?:те)?\s(?:все\s)?предыдущие\s\w{3,20}",
        ),
        (
            "authority",
            (" by ", "approve", "review", "trusted", "genehmigt", "aprobado", "approuvé"),
            _phrase(
                "(?:pre)?(?:approved|authori[sz]ed|cleared|verified|endorsed|signed off|sanctioned|vetted|whitelisted)",
                "by",
                r"(?:(?:the|our|your)\s)?(?:\w{1,20}\s)?(?:security|legal|compliance|cto|ceo|ciso|management|admins?"
                r"|administrators?|reviewers?|maintainers?|leadership|anthropic|openai|google|it department)\b",
            )
            + r"|\b(?:no|without|skip(?:ping)?|bypass(?:ing)?)\s(?:the\s|any\s|further\s|human\s){0,2}(?:review|approval)"
            r"\s(?:is\s)?(?:needed|required|necessary)\b|\bskip\s(?:the\s)?(?:human\s)?(?:review|approval)\b"
            r"|\b(?:auto[\s-]?approve|approve)\s(?:this|these|it)\s(?:candidate|memory|proposal|entry|immediately|now|without|automatically)"
            r"|\b(?:pre-?approved|already approved)\b|\bthis\s(?:is|comes from)\sa\s(?:trusted|verified|authoritative)\ssource"
            r"|\bgenehmigt\s(?:von|durch)\s|\baprobado\spor\s|\bapprouvé\spar\s",
        ),
        (
            "supersession",
            ("supersede", "replace", "override", "overrule", "precedence", "priority over", "invalidate"),
            _phrase(
                "(?:supersed(?:e|es|ing)|replaces?|overrid(?:e|es|ing)|overrules?|invalidates?"
                "|(?:takes?|has|have)\\s(?:precedence|priority)\\sover)",
                rf"(?:(?:all|any|every)\s(?:of\s)?(?:the\s|your\s|our\s)?)(?:{_EARLIER}\s){{0,2}}(?:\w{{1,20}}\s)?{_RULES}\b",
            ),
        ),
        (
            "prompt",
            ("system", "assistant", "developer", "instruction", "im_start", "inst]", "<<sys", "endoftext", "eot_id"),
            r"^[\s>*#\"'`\[(<]{0,6}(?:system|developer)(?:\s(?:prompt|message|instructions?|note|override))?[\]>)*]{0,3}\s?:"
            r"|^[\s>*#]{0,6}assistant\s?:\s|<\|[a-z_]{2,20}\|>|\[/?inst\]|<</?sys>>"
            r"|</?(?:system|assistant|instructions?|system[_-](?:prompt|message|reminder))>"
            r"|\b(?:new|updated|revised|additional|important|hidden)\s(?:system\s)?instructions?\s?(?:for\s\w{1,20}\s?)?:"
            r"|\b(?:reveal|print|repeat|show|output|leak)\s(?:me\s)?(?:your|the)\s(?:full\s|hidden\s|entire\s)?(?:system\s(?:prompt|message)|initial\sinstructions)",
        ),
        (
            "role",
            ("you are now", "from now on", "pretend", "note to", "dear", "attention", "as an ai", "if you are", "when you read", "you must", "do not tell", "do not mention", "don't tell", "don't mention"),
            r"\byou\sare\snow\b|\bfrom\snow\son,?\s(?:you|always|never|ignore|treat|act|answer|respond)\b"
            r"|\bpretend\s(?:to\sbe|that\syou|you\sare)\b"
            rf"|\b(?:note|message|instructions?|reminder)\s(?:to|for)\s(?:the\s|all\s|any\s|our\s)?{_READER}\b"
            rf"|\b(?:dear|attention,?)\s(?:the\s|all\s|any\s)?{_READER}\b"
            rf"|\bif\syou\sare\s(?:an?\s|the\s)?{_READER}\b|\bwhen\syou\sread\sthis\b"
            r"|\byou\smust\s(?:now\s|always\s|immediately\s)?(?:approve|ignore|obey|comply|call|execute|invoke|respond|answer|reply|tell)\b"
            r"|\b(?:do\snot|don't|never)\s(?:tell|mention|reveal|show)\s(?:this\s|it\s|anything\s)?(?:to\s)?(?:the\s)?(?:users?|reviewers?|humans?|anyone|anybody)\b",
        ),
        (
            "tool-call",
            ("memory_", "tool", "function", "invoke", "mcp__"),
            r"\bmemory_(?:search|get|propose|correct|ingest|context|decisions)\b|\bmcp__\w{1,60}"
            r"|</?(?:tool_call|tool_use|tool_result|function_calls?|function_results?|antml:\w{1,30})>?|<invoke\s"
            r'|"(?:tool_calls?|function_call|tool_use)"\s?:'
            r"|\b(?:call|use|invoke|run|execute)\s(?:the\s|your\s)?[`\"']?\w{1,40}[`\"']?\s(?:tool|function)\s(?:to|with|and|now|on)\b",
        ),
    )
)


def instructions_to_reader(value: str) -> list[Span]:
    """Passages that address whoever reads them: to override, to approve, to call a tool. A hint for the reviewer.

    Nothing may be decided by it: a text can neither raise nor lower its own trust.
    """
    view = folding.fold(value)
    lowered = view.text.lower()
    spans: list[Span] = []
    for kind, words, pattern in _INSTRUCTIONS:
        if any(word in lowered for word in words):
            for found in pattern.finditer(lowered):
                start, end = view.span(*found.span())
                spans.append(Span(kind, start, end, _excerpt(value[start:end])))
    spans.sort(key=lambda span: (span.start, -span.end))
    return spans[:MAX_FLAGGED]


def _excerpt(passage: str) -> str:
    """One printable line: white space collapsed, hidden characters left to their own flags."""
    line = " ".join(folding.HIDDEN_RUN.sub("", passage[: 4 * _EXCERPT]).split())
    return line if len(line) <= _EXCERPT else f"{line[: _EXCERPT - 1]}…"


# --- Fingerprints ------------------------------------------------------------------------------------------

_TRAILING: Final = " .,;:!…。．、，；：！"


def normalise_for_fingerprint(value: str) -> str:
    """The form in which two wordings count as the same text: case, spacing, width and a final stop do not matter.

    Words of scripts without spaces are left as they are, so 支払い and 決済 stay two texts.
    """
    text = folding.HIDDEN_RUN.sub("", value)
    for _ in range(2):  # Unicode's caseless compatibility match: folding can undo a normal form, and once only
        text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKD", text).casefold())
    text = " ".join(text.split())
    return text.rstrip(_TRAILING) or text
