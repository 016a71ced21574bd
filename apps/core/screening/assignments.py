"""Secrets that can only be told from the name they are given: ``password = …``, ``"api_key": "…"``, ``PGPASSWORD=…``.

The names are found by substring search. A pattern anchored behind the name reads what stands between it and the
value; how much the value has to look like a secret then depends on how much the name and the writing promise one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from apps.core.screening import values

# --- Names -------------------------------------------------------------------------------------------------

_PASSWORD, _KEY, _WEAK = 3, 2, 1  # what a name promises; the less, the more the value itself has to show

_PASSWORD_NAMES: Final = (
    *("password", "passwd", "passphrase", "passcode", "pwd", "identified by"),
    *("passwort", "kennwort", "wachtwoord", "lösenord", "hasło", "heslo", "şifre", "parola", "senha"),
    *("mot de passe", "motdepasse", "mot_de_passe", "contraseña", "contrasena", "пароль"),
    *("密码", "密碼", "口令", "パスワード", "비밀번호", "패스워드", "비번"),
    *("pswd", "passwrd", "paswd", "pasword", "passwod", "passowrd", "paasword"),  # as it is misspelt
)
# Common words, which name a secret together with what stands before them, or by their value.
_SHORT_NAMES: Final = (
    *("pass", "pw", "userpwd", "clave", "암호"),
    *("secret", "token", "jeton", "토큰", "key", "pat", "auth", "credential"),
    *("sessionid", "session_id", "sessid"),
)
_KINDS: Final = {
    **dict.fromkeys(("clave", "pw", "pass", "userpwd", "암호"), "password"),
    **dict.fromkeys(("sessionid", "session_id", "sessid"), "session"),
    **dict.fromkeys(("jeton", "토큰"), "token"),
    "auth": "authorisation",
}
_QUALIFIERS: Final = {
    name: re.compile(rf"({words})[ _.-]?$")
    for name, words in (
        (
            "key",
            r"\bp|priv|api|access|secret[ _.-]?access|secret|private|auth|authentication|account|encryption|encrypt"
            "|signing|master|shared|storage|service|subscription|license|deploy|app|application|admin|root|consumer"
            "|client|webhook|hmac|jwt|cipher|crypto",
        ),
        ("secret", "client|app|application|api|webhook|shared|signing|consumer|jwt|auth|oauth|session|cookie|aws"),
        (
            "token",
            "api|auth|access|refresh|bot|bearer|personal[ _-]access|deploy|session|security|registry|private|oauth|id"
            "|ci|job|agent|service|vault|npm|git(?:hub|lab)?|slack|hf|root|admin|user",
        ),
        (
            "pass",
            "db|database|smtp|e?mail|imap|user|usr|ftp|sftp|ssh|redis|mysql|pg|postgres|sql|mongo|admin|root|http"
            "|basic[ _-]?auth|my|ldap|rabbitmq|mqtt|wifi|key|store|login|(?:id|user|username|login|account)\\s?[/,]",
        ),
    )
}
_HARMLESS_QUALIFIER: Final = re.compile(
    r"(?:csrf|xsrf|next|page|paging|continuation|cursor|eos|bos|pad|unk|sep|cls|mask|stop|special|max|(?<!ad)min|num"
    r"|cancellation|cancel|input|output|prompt|completion|lexer|syntax|design|sync|public|proxy|by|sort|primary"
    r"|foreign|partition|idempotency|cache|websocket|object|s3|route|routing|host|hash|map|dedup|lookup|natural"
    r"|surrogate|composite|unique|project|issue|ticket|jira|translation|message|event|shard|range|row|column|document"
    r"|figure|ssh[ _-]pub|tests?|suite|build|first|second|third|single|compiler|band|low|high|all)[ _.-]?\Z"
)
_LOOKBACK: Final = 26

# --- What stands between a name and its value --------------------------------------------------------------

_SUFFIX: Final = (
    r"(?:[_.\- ]?(?:prod|production|staging|stage|dev|test|live|value|base|text|plain|old|new|current|default|primary"
    r"|secondary|main|admin|root|db|\d)\b)?\d{0,3}(?P<plural>s\b)?"
)
_OF: Final = (
    r"(?:[ \t](?:for|of|in|on|to|von|für|de|du)(?:[ \t](?:the|user|account|database|our|my|your|this|den|die|der)){0,2}"
    r"[ \t][\"'`]?[\w@./-]{1,40}[\"'`]?(?:[ \t](?!(?:is|was|ist|war|lautet)\b)\w{1,20})??)?"
)
_CLOSE: Final = r"(?P<closed>\\{0,3}[\"'`])?[\])}]{0,2}[*_]{0,3}"
_INNER: Final = r"[ \t]{0,20}"
_WRAPPER: Final = (
    r"(?:(?:new\s)?(?:[A-Za-z]\w{0,20}\.){0,2}\w{0,20}(?:[sS]ecret|[sS]tring|Str|Some|[pP]assword|encode|bytes|from)"
    r"\w{0,10}\(\s{0,4}(?=[\"'`]))?"
)
_TYPE: Final = r"[A-Za-z_&*\[][\w.\[\]|&*?]{0,40}"
_BETWEEN: Final = re.compile(
    rf"{_SUFFIX}{_CLOSE}{_OF}(?:"
    rf"(?P<typed>(?:{_INNER}:{_INNER}|[ \t])(?P<type>{_TYPE})(?:{_INNER}\|{_INNER}\w{{1,20}})?"
    rf"{_INNER}=(?![=>]){_INNER})"
    rf"|(?P<pair>[,\s]{{1,40}}\\?[\"']?[vV]alue\\?[\"']?{_INNER}[:=]{_INNER})"
    r"|(?P<list>[:：][*_]{0,2}[ \t]{0,4}(?:\r?\n[ \t]{0,20}){1,3}(?:[-*+•][ \t]{1,3})?(?=\S))"
    rf"|(?P<assign>{_INNER}(?::{{1,3}}=|\.=|=>|->|={{1,3}}|!={{1,2}}|:-|\|\||\?\?|:|=|：|%3[dD])[*_]{{0,3}}{_INNER}"
    rf"(?P<below>(?:[|>][+-]?[ \t]{{0,4}})?\r?\n[ \t]{{0,40}})?)"
    r"|(?P<phrase>[ \t]{1,4}(?:is|was|lautet|ist|war|est|es|era|é)[ \t]{1,4}"
    r"(?:(?:now|still|set to|just|currently|jetzt)[ \t])?:?[ \t]?|[ \t]or[ \t](?=[\"'`]))"
    r"|(?P<topic>(?:は|는|은|설정은)[、 ]?)"
    r"|(?P<call>\(\s{0,4}(?:default[:=]\s?)?|\s{0,3},\s{0,10}(?=[bBrRuU]?\\{0,3}[\"'`]))"
    r"|(?P<tag>>\s{0,60})"
    rf"|(?P<cell>{_INNER}\|{_INNER})"
    r"|(?P<space>[ \t]{1,4}(?:as[ \t])?|-(?=\w))"
    rf"){_WRAPPER}"
)
# The same where what looks like a type with a value behind it is the value: `password: dzVEUUwwNUhBMDY0R2k=`.
_WITHOUT_TYPE: Final = re.compile(_BETWEEN.pattern.replace("(?P<typed>", "(?P<typed>(?!)", 1))
_QUOTE: Final = re.compile(r"[bBrRuUfF@$]{0,2}(\\{0,3})(\"\"\"|'''|[\"'`])")
_BARE: Final = re.compile(r"[^\s\"'`<>]{1,400}")
_BARE_END: Final = re.compile(r"[;,](?=[\w .-]{1,40}=|$|[\"'})\]])|\\[nrt\"']|\*\*$|%26")
_MAX_VALUE: Final = 400
# How much of a value is looked at, and how many names within one unbroken run: both bound the work on hostile text.
_JUDGED: Final = 120
_NAMES_IN_ONE_VALUE: Final = 16

_LETTERS: Final = re.compile(r"[^\W\d_]{4,}")
_LINE_START: Final = re.compile(r"[\s\-*>\"'{(]{0,40}(?:export |set |ENV |ARG |-e )?[\w.-]{0,60}$")
_NOTHING_MORE: Final = re.compile(
    r"[\"'`,;)}\]\\*|.]{0,6}[ \t]{0,20}(?:$|#|//|\r|\n)|[ \t]{1,4}(?:-{1,2}[A-Za-z]|&&|\|)"
)
_SETTING: Final = re.compile(r"[\w.-]{1,60}[:=]")
_PARAMETER: Final = re.compile(r"&[\w.-]{1,40}=")
# The quote that was taken for the first one of a value was the last one of a label.
_STRING_ENDED: Final = re.compile(r"\s|[,);]|\s?[.+&]\s?[$\w(]")
_ATTRIBUTE_FOLLOWS: Final = re.compile(r"[\"']\s{1,4}value\s?=")
_ONE_TOKEN: Final = re.compile(r"[\w!@#$%^&*+~?.=-]+|[\w.-]{1,40}/[\w!@#$%^&*+~?.=-]+")
_OPTION: Final = re.compile(r"(?:^|\s|[\"'`\[,])-{1,2}[\w-]{0,30}$")
_SENTENCE_ENDS: Final = re.compile(
    r"[\"'`)]{0,2}(?:[.,;:!?)]{1,3}(?:\s|$)|\s{0,4}$|\s{0,4}\n|\s(?:and|or|for|on|in|at|but|und|et"
    r"|y)\b|[ \t]\(|<)"
)


@dataclass(frozen=True, slots=True)
class _Named:
    """One name in a text and what it promises."""

    kind: str
    level: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Value:
    text: str
    start: int
    end: int
    quoted: bool


def find_assignments(text: str, lowered: str) -> Iterator[tuple[str, int, int]]:
    """Kind, start and end of every value; ``lowered`` is ``text`` in lower case, of the same length."""
    reached = judged = 0
    for named in _names(text, lowered):
        again = reached - _MAX_VALUE <= named.start < reached
        if again and judged >= _NAMES_IN_ONE_VALUE:
            continue
        between = _between(text, named.end)
        value = _value(text, named, between) if between else None
        if not between or not value:
            continue
        reached, judged = (reached, judged + 1) if again else (value.end, 1)
        if _is_secret(text, named, between, value):
            yield named.kind, value.start, value.end


def _between(text: str, position: int) -> re.Match[str] | None:
    between = _BETWEEN.match(text, position)
    if between and between["typed"] and not between["typed"][-1].isspace() and values.is_drawn(between["type"]):
        return _WITHOUT_TYPE.match(text, position)
    return between


def _names(text: str, lowered: str) -> Iterator[_Named]:
    for name in _PASSWORD_NAMES:
        for start in _occurrences(lowered, name):
            if len(name) > 5 or not name.isascii() or _begins_word(text, start):
                yield _Named("passphrase" if name == "passphrase" else "password", _PASSWORD, start, start + len(name))
    for name in _SHORT_NAMES:
        for start in _occurrences(lowered, name):
            named = _short_name(text, lowered, name, start)
            if named:
                yield named


def _occurrences(lowered: str, name: str) -> Iterator[int]:
    start = lowered.find(name)
    while start >= 0:
        yield start
        start = lowered.find(name, start + len(name))


def _short_name(text: str, lowered: str, name: str, start: int) -> _Named | None:
    end = start + len(name)
    if lowered[end : end + 1].isalpha() and lowered[end] != "s" and name.isascii():
        return None  # the beginning of another word
    before = lowered[max(0, start - _LOOKBACK) : start]
    if _HARMLESS_QUALIFIER.search(before):
        return None
    kind = _KINDS.get(name, name)
    if qualifier := _qualifier(before, "pass" if name == "pw" else name):
        if kind == "password":
            return _Named(kind, _PASSWORD, start, end)
        return _Named(f"{qualifier} {name}", _KEY, start, end)
    if name.isascii() and not _begins_word(text, start):
        return None
    if name in ("pw", "userpwd", "암호") or (name == "pass" and text[start:end].isupper()):
        return _Named(kind, _PASSWORD, start, end)
    return _Named(kind, _WEAK, start, end)


def _qualifier(before: str, name: str) -> str:
    pattern = _QUALIFIERS.get(name)
    match = pattern.search(before) if pattern else None
    return re.sub("[ _.-]+", " ", match[1]) if match else ""


def _begins_word(text: str, start: int) -> bool:
    """At a boundary, or at a capital after a small letter as in ``dbPassword``."""
    before = text[start - 1 : start]
    capitalised = text[start].isupper() and (before.islower() or text[start + 1 : start + 2].islower())
    return not before.isalpha() or capitalised


# --- Values ------------------------------------------------------------------------------------------------


def _value(text: str, named: _Named, between: re.Match[str]) -> _Value | None:
    start = between.end()
    quote = _QUOTE.match(text, start)
    if quote:
        return _quoted(text, quote)
    bare = _BARE.match(text, start)
    if not bare:
        return None
    end = start + _bare_length(text, named.start, bare[0])
    return _Value(text[start:end], start, end, quoted=False) if end > start else None


def _quoted(text: str, quote: re.Match[str]) -> _Value | None:
    mark, start = quote[1] + quote[2], quote.end()
    limit = min(len(text), start + _MAX_VALUE)
    end = text.find(mark, start, limit)
    while end > 0 and not quote[1] and text[end - 1] == "\\" and text[end - 2 : end] != "\\\\":
        end = text.find(mark, end + 1, limit)
    if end < 0 or "\n" in text[start:end]:  # cut off, or wrapped: what stands on this line is the value
        bare = _BARE.match(text, start)
        end = bare.end() if bare else -1
    return _Value(text[start:end], start, end, quoted=True) if end > start else None


def _bare_length(text: str, name_start: int, run: str) -> int:
    """How much of an unquoted run of characters belongs to the value."""
    before = text[max(0, name_start - _MAX_VALUE) : name_start].split()
    if before and ("?" in before[-1] or "&" in before[-1]):  # a query string
        run = re.split("[&#]", run, maxsplit=1)[0]
    if end := _BARE_END.search(run):
        run = run[: end.start()]
    for closing, opening in ((")", "("), ("}", "{"), ("]", "[")):
        while run.endswith(closing) and run.count(closing) > run.count(opening):
            run = run[:-1]
    return len(run.rstrip(".,;:*"))


# --- Judgement ---------------------------------------------------------------------------------------------


def _is_secret(text: str, named: _Named, between: re.Match[str], value: _Value) -> bool:
    content = value.text[:_JUDGED]
    if between["phrase"] and not value.quoted:
        content = _PARAMETER.split(content, maxsplit=1)[0]  # a sentence in a query ends with its parameter
    if len(content) < 4 or values.is_placeholder(content) or values.is_description(content):
        return False
    if named.kind == "session" and between["assign"] != "=":
        return False  # the number of a session in a log opens nothing; one in a cookie does
    if between["plural"] and not (values.is_varied(content) or (len(content) >= 20 and values.is_random(content))):
        return False
    if value.quoted:
        beside = _STRING_ENDED.match(content) or (between["typed"] and between["closed"])
        return not beside and _is_quoted_secret(text, named, between, value)
    if content.isdecimal():
        return len(content) >= 6 and named.level == _PASSWORD and _is_alone(text, named, value)
    if values.is_expression(content) or values.is_quantity(content):
        return False
    if named.kind == "key":
        return bool(between["assign"]) and _is_keylike(text, named, between, content)
    if between["phrase"] or between["topic"]:
        told = named.level == _PASSWORD and values.is_mixed(content) and bool(_SENTENCE_ENDS.match(text, value.end))
        return told or values.is_random(content)
    if between["space"]:
        return not between["closed"] and _is_argument(text, named, value)
    if between["call"]:
        return _stands_out(named, content)
    if between["tag"]:
        closed = bool(re.compile(r"\s{0,60}</").match(text, value.end))
        return closed and (named.level == _PASSWORD or values.is_random(content))
    if between["list"]:
        return _is_alone_below(text, named, value)
    if between["below"] and _SETTING.match(content):
        return False
    if named.level < _PASSWORD:
        return values.is_random(content)
    if between["assign"] and not between["below"]:
        return _is_assigned_password(text, named, between, value)
    in_its_place = between["pair"] or between["typed"] or between["cell"] or _is_alone(text, named, value)
    return bool(in_its_place) and values.is_mixed(content)


def _is_quoted_secret(text: str, named: _Named, between: re.Match[str], value: _Value) -> bool:
    content = value.text[:_JUDGED]
    if any(character.isspace() for character in content):  # a passphrase, unless it reads as a sentence or a label
        told = bool(between["assign"] or between["phrase"] or between["typed"] or between["pair"])
        words = len(content.split())
        return named.level == _PASSWORD and told and 3 <= words <= 10 and not values.is_sentence(content)
    if named.kind == "key":
        return _is_keylike(text, named, between, content) and not _ATTRIBUTE_FOLLOWS.match(text, value.end)
    if named.level == _WEAK:
        written_to = bool(between["assign"] or between["typed"] or between["pair"] or between["phrase"])
        one_word = values.is_single_word(content) and values.is_mixed(content) and len(content) >= 6
        if not written_to:
            return _stands_out(named, content)
        many_digits = named.kind == "token" and content.isdecimal() and len(content) >= 12
        return values.is_random(content) or many_digits or (one_word and named.kind in ("secret", "password"))
    if named.level == _KEY:
        return values.is_random(content) or (
            len(content) >= 8 and values.is_single_word(content) and not between["call"] and not between["space"]
        )
    if between["call"] or between["cell"]:
        return values.is_mixed(content) or values.is_random(content)
    if between["space"]:
        written = text[named.start : named.end]
        return written.isupper() or written.lower() == "identified by" or values.is_mixed(content)
    return True


def _is_keylike(text: str, named: _Named, between: re.Match[str], content: str) -> bool:
    """Anything may be called a key; this one is taken for a secret only where it can hardly be anything else."""
    if "/" in content and not ("+" in content or content.endswith("=")):
        return False
    before = text[max(0, named.start - 1) : named.start]
    if (
        (before.isalnum() or before == "_")
        and (between["assign"] or "").strip() == "="
        and values.is_long_drawn(content)
    ):
        return True
    return len(content) >= 16 and values.is_random(content) and values.is_varied(content)


def _is_assigned_password(text: str, named: _Named, between: re.Match[str], value: _Value) -> bool:
    if values.is_mixed(value.text) or values.is_scrambled(value.text):
        return True
    as_environment = between["assign"] == "=" and text[named.start : named.end].isupper()
    return as_environment or (_is_alone(text, named, value) and bool(_LETTERS.fullmatch(value.text)))


def _is_argument(text: str, named: _Named, value: _Value) -> bool:
    """Name and value with nothing but a space between them: an option of a command, SQL, or a note to a colleague."""
    if value.text.startswith("-"):
        return False
    if text[named.start : named.end].lower() == "identified by":
        return values.is_mixed(value.text)
    if not _OPTION.search(text[max(0, named.start - 34) : named.start]):
        return _stands_out(named, value.text)
    if named.level < _PASSWORD:
        return values.is_random(value.text)
    return values.is_mixed(value.text) or bool(_NOTHING_MORE.match(text, value.end))


def _stands_out(named: _Named, content: str) -> bool:
    if not _ONE_TOKEN.fullmatch(content):
        return False
    if named.level == _PASSWORD:
        return values.is_varied(content)
    return values.is_random(content) and len(content) >= (12 if values.is_varied(content) else 32)


def _is_alone(text: str, named: _Named, value: _Value) -> bool:
    """Name and value fill a line of their own, as in a settings file."""
    before = text[max(0, named.start - 100) : named.start].rpartition("\n")[2]
    return bool(_LINE_START.match(before)) and bool(_NOTHING_MORE.match(text, value.end))


def _is_alone_below(text: str, named: _Named, value: _Value) -> bool:
    """A value that fills the line, or the first item of the list, under a name that ends its line."""
    if text[value.end : value.end + 1] == ":" or not _NOTHING_MORE.match(text, value.end):
        return False
    if named.level < _PASSWORD:
        return values.is_random(value.text)
    right_below = (
        text.count("\n", named.end, value.start) == 1 and text[value.start - 2 : value.start - 1] not in "-*+•"
    )
    return values.is_drawn(value.text) or (right_below and values.is_mixed(value.text))
