"""Passages that talk to whoever reads them: to override rules, to approve, to call a tool.

A hint for the reviewer, in the languages that such texts are mostly written in. Nothing is decided by it: a text
can neither raise nor lower its own trust.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from apps.core.screening import folding
from apps.core.screening.spans import EXCERPT, MAX_SPANS, Span

_GAP: Final = r"[\s,.;:!'\"*_`-]{1,4}"
_EARLIER: Final = (
    r"(?:(?:previous|prior|above|earlier|preceding|foregoing|past|existing|other|former|system|initial|original)"
    rf"{_GAP}){{1,2}}"
)
_FILLING: Final = rf"(?:(?:all|any|every|each|the|these|those|this|of|your|my|our|its){_GAP}){{0,3}}"
_WORD: Final = rf"(?:\w{{1,20}}{_GAP})?"
_RULES: Final = (
    r"(?:instructions?|prompts?|rules?|directives?|guidelines?|guidance|context|messages?|memor(?:y|ies)"
    r"|commands?"
    r"|decisions?|polic(?:y|ies)|conventions?|orders|constraints?|restrictions?|entries|statements?"
    r"|knowledge)\b"
)
_READER: Final = (
    r"(?:ai|llm|model|language\smodel|assistant|agent|coding\sagent|chatbot|bot|reviewer|copilot|claude|gpt|gemini)s?\b"
)
_AUTHORITY: Final = (
    r"(?:security|legal|compliance|cto|ceo|ciso|management|admins?|administrators?|reviewers?|maintainers?"
    r"|leadership"
    r"|anthropic|openai|google|microsoft|it\sdepartment)\b"
)
_TOOLS: Final = r"(?:search|get|propose|correct|ingest|context|decisions)\b"

# Kind, the words that a passage begins with (in lower case, with single spaces) and the pattern that follows them.
_RuleTable = tuple[tuple[str, tuple[str, ...], str], ...]

_ENGLISH: Final[_RuleTable] = (
    (
        "override",
        (
            "ignore",
            "ignores",
            "ignoring",
            "disregard",
            "forget",
            "overlook",
            "bypass",
            "override",
            "do not follow",
            "don't follow",
        ),
        rf"{_GAP}{_FILLING}{_EARLIER}{_WORD}{_RULES}|{_GAP}(?:everything|anything|all|what)\s(?:\w{{1,20}}\s){{0,3}}"
        rf"(?:above|before|earlier|said)\b|{_GAP}(?:all|your|any)\s(?:of\s)?(?:the\s|your\s)?(?:\w{{1,20}}\s)?{_RULES}",
    ),
    (
        "authority",
        (
            "approved",
            "authorised",
            "authorized",
            "cleared",
            "verified",
            "endorsed",
            "signed off",
            "vetted",
            "sanctioned",
        ),
        rf"{_GAP}by{_GAP}(?:(?:the|our|your){_GAP})?(?:\w{{1,20}}{_GAP})?{_AUTHORITY}",
    ),
    (
        "authority",
        ("pre-approved", "preapproved", "already approved", "auto-approve", "auto approve", "autoapprove"),
        r"\b",
    ),
    (
        "authority",
        ("approve",),
        r"\s(?:this|these|it)\s(?:candidate|memory|proposal|entry|immediately|now|without|automatically)",
    ),
    (
        "authority",
        ("no review", "no approval", "no human review", "no further review", "without review", "without approval"),
        rf"(?:{_GAP}(?:is|are)?\s?(?:needed|required|necessary))?\b",
    ),
    ("authority", ("skip review", "skip the review", "skip approval", "skip the approval", "skip human review"), r"\b"),
    ("authority", ("this is a", "comes from a"), r"\s(?:trusted|verified|authoritative)\ssource\b"),
    (
        "supersession",
        ("supersedes", "supersede", "superseding", "replaces", "overrides", "overriding", "overrules", "invalidates"),
        rf"{_GAP}(?:all|any|every){_GAP}(?:of{_GAP})?(?:(?:the|your"
        rf"|our){_GAP})?(?:{_EARLIER})?{_WORD}{_RULES}",
    ),
    (
        "supersession",
        (
            "takes precedence over",
            "take precedence over",
            "takes priority over",
            "has priority over",
            "has precedence over",
        ),
        rf"{_GAP}(?:all|any|every|your){_GAP}(?:of{_GAP})?(?:(?:the|your"
        rf"|our){_GAP})?(?:{_EARLIER})?{_WORD}{_RULES}",
    ),
    (
        "prompt",
        ("new", "updated", "revised", "additional", "hidden"),
        r"\s(?:system\s)?instructions?\s?(?:for\s\w{1,20}\s?)?:",
    ),
    (
        "prompt",
        ("reveal", "print", "repeat", "show", "output", "leak"),
        r"\s(?:me\s)?(?:your|the)\s(?:full\s|hidden\s|entire\s)?(?:system\s(?:prompt|message)"
        r"|initial\sinstructions)",
    ),
    ("role", ("you are now", "when you read this", "as an ai", "as a language model"), r"\b"),
    ("role", ("from now on",), r",?\s(?:you|always|never|ignore|treat|act|answer|respond)\b"),
    ("role", ("pretend",), r"\s(?:to\sbe|that\syou|you\sare)\b"),
    (
        "role",
        ("note to", "message to", "message for", "instruction for", "instructions for", "reminder for", "note for"),
        rf"\s(?:the\s|all\s|any\s|our\s)?{_READER}",
    ),
    ("role", ("dear", "attention", "if you are", "hey"), rf",?\s(?:an?\s|the\s|all\s|any\s)?{_READER}"),
    (
        "role",
        ("you must", "you should", "you have to"),
        r"\s(?:now\s|always\s|immediately\s)?(?:approve|ignore|obey|comply|execute|invoke|respond|answer"
        r"|reply|tell)\b",
    ),
    (
        "role",
        ("do not", "don't", "never"),
        r"\s(?:tell|mention|reveal|show|flag"
        r"|report)\s(?:this\s|it\s|that\s|anything\s)?(?:to\s)?(?:the\s|any\s)?"
        r"(?:users?|reviewers?|humans?|anyone|anybody|operators?)\b",
    ),
    (
        "tool-call",
        ("call", "use", "invoke", "run", "execute"),
        r"\s(?:the\s|your\s)?[`\"']?\w{1,40}[`\"']?\s(?:tool|function)\s(?:to|with|and|now|on)\b",
    ),
    ("tool-call", ("memory_",), _TOOLS),
    ("tool-call", ("mcp__",), r"\w{1,60}"),
)
# These may follow a letter or stand at punctuation, so no word has to begin there.
_MARKUP: Final[_RuleTable] = (
    ("prompt", ("<|",), r"[a-z_]{2,20}\|>"),
    ("prompt", ("[inst]", "[/inst]", "<<sys>>", "<</sys>>"), ""),
    (
        "prompt",
        ("<system", "</system", "<assistant", "</assistant", "<instructions", "</instructions"),
        r"[\w-]{0,20}>",
    ),
    (
        "tool-call",
        ("<tool_call", "<tool_use", "<tool_result", "<function_call", "<function_result", "<invoke "),
        r"[\w:-]{0,30}",
    ),
    ("tool-call", ('"tool_calls"', '"tool_call"', '"function_call"', '"tool_use"'), r"\s?:"),
)
_LINE_STARTS: Final[_RuleTable] = (
    ("prompt", ("system", "developer"), r"(?:\s(?:prompt|message|instructions?|note|override))?[\]>)*]{0,3}\s?:"),
    ("prompt", ("assistant",), r"[\]>)*]{0,3}\s?:\s"),
)
_OTHER_LANGUAGES: Final[_RuleTable] = (
    (
        "override",
        ("ignoriere", "ignorieren", "ignoriert", "vergiss", "missachte"),
        r"\s(?:sie\s)?(?:bitte\s)?(?:alle\s)?(?:vorherigen|bisherigen|früheren|obigen"
        r"|vorangehenden)\s\w{3,30}",
    ),
    (
        "override",
        ("ignore", "ignorez", "ignorer", "oublie", "oubliez"),
        r"\s(?:toutes\s)?(?:les\s)?(?:instructions|consignes|règles)\s(?:précédentes|antérieures)",
    ),
    (
        "override",
        ("ignora", "olvida", "ignore"),
        r"\s(?:todas\s)?(?:las\s)?(?:instrucciones|reglas)\s(?:anteriores|previas)",
    ),
    ("override", ("ignora", "dimentica"), r"\s(?:tutte\s)?(?:le\s)?(?:istruzioni|regole)\sprecedenti"),
    ("override", ("игнорируй", "игнорируйте", "забудь"), r"\s(?:все\s)?предыдущие\s\w{3,20}"),
    (
        "authority",
        ("genehmigt von", "genehmigt durch", "freigegeben von", "freigegeben durch", "aprobado por", "approuvé par"),
        r"\s\w",
    ),
)
_WITHOUT_SPACES: Final[_RuleTable] = (
    ("override", ("忽略", "忘记", "无视"), r"[^\n。]{0,12}(?:指令|指示|规则|说明)"),
    ("override", ("指示を", "命令を", "ルールを", "指示は", "命令は"), r"[^\n。]{0,6}無視"),
)

_COMPILED: Final = {
    name: tuple((kind, words, re.compile(rest)) for kind, words, rest in table)
    for name, table in (
        ("english", _ENGLISH),
        ("markup", _MARKUP),
        ("line", _LINE_STARTS),
        ("other", _OTHER_LANGUAGES),
        ("unspaced", _WITHOUT_SPACES),
    )
}
_WHITE_SPACE: Final = re.compile(r"[^\S ]\s*| \s+")
_LINE_OPENING: Final = re.compile(r"\n[\s>*#\"'`\[(<]{0,6}$")
# Letters of other alphabets, in lower case, that look like a Latin one in this or the upper case.
_LOOK_ALIKES: Final = str.maketrans("аеорсухіјѕһԁԛѡмткнвοανιρκτυη", "aeopcyxijshdqwmtkhboavipktun")


def instructions_to_reader(value: str) -> list[Span]:
    """At most ``MAX_SPANS`` passages, the first ones; of passages within each other the longest."""
    view = folding.fold(value)
    view = folding.rewrite(view, _WHITE_SPACE, lambda run: "\n" if "\n" in run else " ")
    lowered = view.text.lower()
    latin = lowered if lowered.isascii() else lowered.translate(_LOOK_ALIKES)
    found = sorted(
        {
            *_passages("english", latin, _begins_word),
            *_passages("markup", latin, _anywhere),
            *_passages("line", latin, _begins_line),
            *_passages("other", lowered, _begins_word),
            *_passages("unspaced", lowered, _anywhere),
        },
        key=lambda passage: (passage[0], -passage[1]),
    )
    spans: list[Span] = []
    reached = -1
    for start, end, kind in found:
        if end > reached and len(spans) < MAX_SPANS:
            reached = end
            first, last = view.span(start, end)
            spans.append(Span(kind, first, last, _excerpt(value[first:last])))
    return spans


def _passages(table: str, text: str, may_begin: Callable[[str, int], bool]) -> Iterator[tuple[int, int, str]]:
    for kind, words, rest in _COMPILED[table]:
        for word in words:
            start = text.find(word)
            while start >= 0:
                match = rest.match(text, start + len(word)) if may_begin(text, start) else None
                if match:
                    yield start, match.end(), kind
                start = text.find(word, start + len(word))


def _anywhere(_text: str, _start: int) -> bool:
    return True


def _begins_word(text: str, start: int) -> bool:
    return not start or not text[start - 1].isalnum()


def _begins_line(text: str, start: int) -> bool:
    before = text[max(0, start - 8) : start]
    return bool(_LINE_OPENING.search(before if start > 8 else f"\n{before}"))


def _excerpt(passage: str) -> str:
    """One printable line: white space collapsed, hidden characters left to their own flags."""
    line = " ".join(folding.HIDDEN_RUN.sub("", passage[: 4 * EXCERPT]).split())
    return line if len(line) <= EXCERPT else f"{line[: EXCERPT - 1]}…"
