"""Secrets that can only be told from the name they are given: ``password = …``, ``"api_key": "…"``, ``PGPASSWORD=…``.

The names are found by substring search. A pattern anchored behind the name reads what stands between it and the
value, and ``_is_secret`` decides whether that is a secret or a placeholder, a reference, a type or plain prose.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

# --- Names -------------------------------------------------------------------------------------------------

_PASSWORD, _KEY, _WEAK = 3, 2, 1  # how little a value must look like one to be taken for a secret

_PASSWORD_NAMES: Final = (
    *("password", "passwd", "passphrase", "passcode", "passwort", "kennwort", "pwd", "mot de passe", "motdepasse"),
    *("mot_de_passe", "contraseña", "contrasena", "senha", "wachtwoord", "lösenord", "пароль", "密码", "パスワード"),
    "identified by",
)
# These are common words and name a secret only together with what stands before them, or by their value.
_SHORT_NAMES: Final = ("pass", "pw", "clave", "secret", "token", "key", "credential", "sessionid", "session_id", "sessid")
_QUALIFIERS: Final = {
    name: re.compile(rf"({words})[ _.-]?$")
    for name, words in (
        (
            "key",
            "api|access|secret[ _.-]?access|secret|private|auth|account|encryption|encrypt|signing|master|shared|storage"
            "|service|subscription|license|deploy|app|application|admin|root|consumer|client|webhook|hmac|jwt|cipher|crypto",
        ),
        ("secret", "client|app|application|api|webhook|shared|signing|consumer|jwt|auth|oauth|session|cookie|aws"),
        (
            "token",
            "api|auth|access|refresh|bot|bearer|personal[ _-]access|deploy|session|security|registry|private|oauth|id|ci|job"
            "|agent|service|vault|npm|git(?:hub|lab)?|slack|hf|root|admin|user",
        ),
        (
            "pass",
            "db|database|smtp|e?mail|imap|user|usr|ftp|sftp|ssh|redis|mysql|pg|postgres|sql|mongo|admin|root|http"
            "|basic[ _-]?auth|my|ldap|rabbitmq|mqtt|wifi|key|store|login",
        ),
    )
}
_HARMLESS_QUALIFIER: Final = re.compile(
    r"(?:csrf|xsrf|next|page|paging|continuation|cursor|eos|bos|pad|unk|sep|cls|mask|stop|special|max|min|num|cancellation"
    r"|cancel|input|output|prompt|completion|lexer|syntax|design|sync|public|proxy|by|sort|primary|foreign|partition)[ _.-]?$"
)
_KINDS: Final = {"clave": "password", "session_id": "session", "sessionid": "session", "sessid": "session"}
_LOOKBACK: Final = 24

# --- What stands between a name and its value --------------------------------------------------------------

_SUFFIX: Final = (
    r"(?:[_.\- ]?(?:prod|production|staging|stage|dev|test|live|value|base|text|plain|old|new|current|default|primary"
    r"|secondary|main|admin|root|db|1|2)\b)?\d{0,3}"
)
_CLOSE: Final = r"(?P<closed>\\{0,3}[\"'`”])?[\])}]{0,2}[*_]{0,3}"
_INNER: Final = r"[ \t]{0,20}"
_WRAPPER: Final = (
    r"(?:(?:new\s)?(?:[A-Za-z]\w{0,20}\.){0,2}\w{0,20}(?:[sS]ecret|[sS]tring|Str|Some|[pP]assword|encode|bytes|Buffer\.from)"
    r"\w{0,10}\(\s{0,4}(?=[\"'`]))?"
)
_BETWEEN: Final = re.compile(
    rf"{_SUFFIX}{_CLOSE}(?:"
    rf"(?P<typed>{_INNER}:{_INNER}[A-Za-z_&*][\w.\[\]|&*]{{0,40}}(?:{_INNER}\|{_INNER}\w{{1,20}})?{_INNER}=(?![=>]){_INNER})"
    rf"|(?P<pair>[,\s]{{1,40}}\\?[\"']?[vV]alue\\?[\"']?{_INNER}[:=]{_INNER})"
    rf"|(?P<assign>{_INNER}(?::=|=>|={{1,3}}|:-|\|\||\?\?|:|＝|：)[*_]{{0,3}}{_INNER}(?P<below>(?:[|>][+-]?[ \t]{{0,4}})?\r?\n[ \t]{{0,40}})?)"
    r"|(?P<phrase>[ \t]{1,4}(?:is|was|lautet|ist|war|est|es|era|é|=)[ \t]{1,4}(?:(?:now|still|set to|just|currently|jetzt)[ \t])?:?)"
    r"|(?P<topic>は[、 ]?)"
    r"|(?P<call>\(\s{0,4}(?=\\{0,3}[\"'`])|,\s{0,10}(?=\\{0,3}[\"'`]))"
    r"|(?P<tag>>)"
    rf"|(?P<cell>{_INNER}\|{_INNER})"
    r"|(?P<space>[ \t]{1,4}(?:as[ \t])?)"
    rf"){_WRAPPER}"
)
_QUOTE: Final = re.compile(r"(?:[bBrRuUfF@$]{0,2})(\\{0,3})(\"\"\"|'''|[\"'`])")
_BARE: Final = re.compile(r"[^\s\"'`<>]{1,400}")
_BARE_END: Final = re.compile(r"[;,](?=[\w .-]{1,40}=|$|[\"'})\]])|\\[nrt\"']|\*\*$")
_MAX_VALUE: Final = 400

# --- Values ------------------------------------------------------------------------------------------------

_REFERENCE: Final = re.compile(
    r"[<{\[]|\$[({]|\$\{?[A-Z_][A-Z0-9_]*\b|\$[a-z_]+\b(?![!@#%^&*])|%[({]|%\w+%|#\{|@\{|@@|\\\\|[&*][A-Za-z_]+$"
    r"|!(?:Ref|Sub|GetAtt|ImportValue|vault|secret|env\w*|reference|file|include|encrypted)\b|ENC\[|ENC\(|\{cipher\}"
    r"|(?i:vault|ssm|sm|gsm|kv|env|file|kms|op|bw|pass|keyring|keychain|secretsmanager|secrets?|ref|sops|doppler"
    r"|config|k8s|gcp|aws|azure|https?|arn|projects)(?:://|:[a-z/]|\.[a-z]|/[a-z])"
)
_MASKED: Final = re.compile(r"\*{3}|\.{3}|…|•{2}|_{4}|#{4}|[xX]{4}|x{3}-|(?i:redacted|masked|placeholder|removed|omitted|elided)")
_ONE_CHARACTER: Final = re.compile(r"(.)\1*")
_TO_FILL_IN: Final = re.compile(
    r"(?i)(?:(?:your|my|the|some|any|an?|new|old|enter|insert|put|set|add|paste|replace|change|change_?this)[-_. ]?)+"
    r"(?:\w{1,20}[-_. ]?){0,3}(?:password|passwd|passphrase|pwd|pass|secret|token|key|here|me|it|this|value|credentials?|goes[-_ ]here)"
    r"|(?i:example|sample|dummy|fake|changeme|change[-_ ]?(?:me|it|this)|replace[-_ ]?me|to[-_ ]?do|tbd|fixme|n/?a|none|null|nil|undefined)"
)
_EXPRESSION: Final = re.compile(
    r"(?:os|process|env|settings|config|cfg|conf|self|this|cls|request|req|ctx|context|args|options|opts|params|props|state"
    r"|secrets|vars|var|local|data|module|system|app|user|credentials|creds|session|response|res|form|values|each)"
    r"(?:\.|\[|->|::|\?\.)\w|ENV\[|[A-Za-z_][\w.]*\(|[\w.]+\[[\"'\w]|[A-Za-z_]\w*(?:(?:\.|->|::)[A-Za-z_]\w*)+$|\w+\(\)"
    r"|(?:await|new|not|lambda|typeof|async)$"
)
_TYPE: Final = re.compile(
    r"(?i)(?:optional|maybe|option|list|array|set|dict|map|union|literal|annotated|final|readonly|nullable)?[\[<(]?"
    r"(?:str|string|text|bytes?|char|varchar|int|integer|bool|boolean|float|number|object|any|uuid|blob|secretstr|secret"
    r"|securestring|password|token|hash|base64|hex|jwt|none|null|nil|true|false|undefined|void|self|char\*|\[\]byte|&str"
    r"|charfield|textfield|field)(?:[\])>]|\(\d*\)|\[\]|\?|!)?[;,]?"
)
_STATUS_WORDS: Final = frozenset(
    """
    required optional mandatory missing invalid valid wrong incorrect empty blank unset set encrypted hashed salted stored
    kept rotated expired expires never always must should may can could will would is are was were be been has have not no
    and or but if when where which that this the these those with without for from into onto of in on at to by as per via
    only also both either any all each every some own same other new old default defaults disabled enabled changed unchanged
    hidden visible masked redacted secret secrets password passwords token tokens key keys credential credentials private
    public shared internal external plain plaintext cleartext generated random unknown auto automatic manual inherited
    supplied provided passed read written loaded fetched injected mounted revoked refreshed issued signed verified checked
    validated ignored skipped dropped used unused reused allowed forbidden denied deprecated removed added deleted reset
    login logout authentication authorization bearer basic digest oauth oauth2 saml oidc sso mfa otp totp jwt bcrypt scrypt
    argon2 argon2id pbkdf2 sha1 sha256 sha512 md5 hmac base64 string text bytes number integer boolean object array see use
    uses using user users username name names field fields form header headers value values length size type types file
    files path paths policy rules rule manager vault keychain environment variable variables config configuration settings
    rotation rotate expiry expiration lifetime management storage handling protected sensitive confidential compromised leaked
    exposed weak strong long short yes none null nil true false undefined todo tbd n/a na unlimited monthly weekly daily yearly
    test example sample dummy fake foo bar baz foobar placeholder changeme abc xyz asdf qwerty? erforderlich optional? pflicht
    obligatoire requis manquant requerido obligatorio geheim privat öffentlich
    """.split()
)
_ALGORITHM: Final = re.compile(
    r"(?i)(?:sha|md|hs|rs|es|ps|aes|rsa|bcrypt|scrypt|argon|pbkdf|hmac|ed|x|tls|ssl|http|oauth|utf|base|ecdsa|p|ip|ipv|s|k)"
    r"[-_/]?\d{1,5}(?:[-_/]\w{1,12}){0,3}"
)
_QUANTITY: Final = re.compile(
    r"(?i)[~<>=≥≤±]{0,2}\d{1,4}(?:[.,:/–-]\d{1,4}){0,3}[-+%x]?(?:k|m|g|px|m?s|min|mins|minutes?|h|hours?|d|days?|weeks?|chars?"
    r"|characters?|bytes?|bits?|digits?|times?|[kmg]i?b|st|nd|rd|th|password)?(?:-[a-z]{1,12}){0,2}"
)
_WORDLIKE_PART: Final = re.compile(r"[A-Za-zÀ-ɏ]{1,19}\d{0,2}|[vV]?\d{1,4}")
_MIXED: Final = re.compile(r"(?=[^A-Za-z]{0,400}[A-Za-z])[^\d!@#$%^&*+~]{0,400}[\d!@#$%^&*+~]")
_LETTERS_ONLY: Final = re.compile(r"[^\W\d_]{4,}")
_OWN_NAME: Final = re.compile(
    r"(?i)(?:pass(?:word|wd|phrase|wort)?|pwd|pw|secret|token|key|apikey|cred(?:ential)?|auth|hash|env|var)s?\d{0,2}"
)
_WORD_STARTS: Final = re.compile(r"[-_.:]+|(?<=[a-z])(?=[A-Z])")
_LINE_START: Final = re.compile(r"[\s\-*>\"'{(]{0,40}(?:export |set |ENV |ARG |-e )?[\w.-]{0,60}$")
_NOTHING_MORE: Final = re.compile(r"[\"'`,;)}\]\\*|.]{0,6}[ \t]{0,20}(?:$|#|//|\r|\n)|[ \t]{1,4}(?:-{1,2}[A-Za-z]|&&|\|)")
_OPTION: Final = re.compile(r"(?:^|\s|[\"'`\[,])-{1,2}[\w-]{0,30}$")
_SENTENCE_ENDS: Final = re.compile(r"[\"'`)]{0,2}(?:[.,;:!?)]{1,3}(?:\s|$)|\s{0,4}$|\s{0,4}\n|\s(?:and|or|for|on|in|at|but|und|et|y)\b|[ \t]\()")
_PARTS: Final = re.compile(r"[-_./:@ ,+]+")
_CASE_CHANGE: Final = re.compile(r"[a-z][A-Z]|[A-Z]{2}[a-z]")
_SENTENCE: Final = re.compile(
    r"(?i)\b(?:the|is|are|must|should|may|be|an?|of|for|your|to|in|with|from|not|required|enter|please|invalid|missing|or|and|der|die|das"
    r"|le|la|el|un|une)\b"
)


def is_placeholder(value: str) -> bool:
    """Whether a value stands for a secret instead of being one: a variable, a mask, an invitation to fill in."""
    bare = value.strip(" \t*")
    return bool(
        not bare
        or _ONE_CHARACTER.fullmatch(bare)
        or _REFERENCE.match(bare)
        or _MASKED.search(bare)
        or _TO_FILL_IN.fullmatch(bare)
        or _is_path(bare)
    )


def _is_path(value: str) -> bool:
    return value.startswith(("/", "~/", "./", "../")) and _is_wordlike(value)


def _is_wordlike(value: str) -> bool:
    return all(_WORDLIKE_PART.fullmatch(part) for part in _PARTS.split(value) if part)


def is_random(value: str) -> bool:
    """Whether a value looks drawn rather than written: letters and digits that form no words."""
    if len(value) < 8 or not re.search("[A-Za-z]", value) or _ALGORITHM.fullmatch(value):
        return False
    if _is_wordlike(value):
        longest = max(_PARTS.split(value), key=len)
        return len(longest) >= 12 and len(_CASE_CHANGE.findall(longest)) * 4 >= len(longest)
    return bool(re.search(r"\d", value)) or len(value) >= 16


def _names_itself(value: str) -> bool:
    """An identifier such as ``user_password``, ``newToken`` or ``DB_PASSWORD`` names a variable, not a value."""
    parts = _WORD_STARTS.split(value)
    return any(_OWN_NAME.fullmatch(part) for part in parts) and all(_WORDLIKE_PART.fullmatch(part) for part in parts if part)


@dataclass(frozen=True, slots=True)
class _Named:
    """One name in a text and what is known about its place."""

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
    for named in _names(text, lowered):
        between = _BETWEEN.match(text, named.end)
        if not between:
            continue
        value = _value(text, named, between)
        if value and _is_secret(text, named, between, value):
            yield named.kind, value.start, value.end


def _names(text: str, lowered: str) -> Iterator[_Named]:
    for name in _PASSWORD_NAMES:
        for start in _occurrences(lowered, name):
            if name != "pwd" or _begins_word(text, start):
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
    before = lowered[max(0, start - _LOOKBACK) : start]
    if _HARMLESS_QUALIFIER.search(before):
        return None
    if qualifier := _qualifier(before, "pass" if name == "pw" else name):
        if name in ("pass", "pw"):
            return _Named("password", _PASSWORD, start, end)
        return _Named(f"{qualifier} {name}", _KEY, start, end)
    if name == "key" or not _begins_word(text, start):
        return None
    if name == "pw" or (name == "pass" and text[start:end].isupper()):
        return _Named("password", _PASSWORD, start, end)
    return _Named(_KINDS.get(name, name), _WEAK, start, end)


def _qualifier(before: str, name: str) -> str:
    pattern = _QUALIFIERS.get(name)
    match = pattern.search(before) if pattern else None
    return re.sub("[ _.-]+", " ", match[1]) if match else ""


def _begins_word(text: str, start: int) -> bool:
    """At a boundary, or at a capital after a small letter as in ``dbPassword``."""
    before = text[start - 1 : start]
    return not before.isalpha() or (before.islower() and text[start].isupper())


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
    if end < 0:  # cut off, or wrapped over lines: what stands on this line is the value
        bare = _BARE.match(text, start)
        end = bare.end() if bare else -1
    if end <= start or "\n" in text[start:end]:
        return None
    return _Value(text[start:end], start, end, quoted=True)


def _bare_length(text: str, name_start: int, run: str) -> int:
    """How much of an unquoted run of characters belongs to the value."""
    line = text[max(text.rfind(" ", 0, name_start), text.rfind("\n", 0, name_start)) + 1 : name_start]
    if "?" in line or "&" in line:  # a query string
        run = re.split("[&#]", run, maxsplit=1)[0]
    if end := _BARE_END.search(run):
        run = run[: end.start()]
    for closing, opening in ((")", "("), ("}", "{"), ("]", "[")):
        while run.endswith(closing) and run.count(closing) > run.count(opening):
            run = run[:-1]
    return len(run.rstrip(".,;:*"))


def _is_secret(text: str, named: _Named, between: re.Match[str], value: _Value) -> bool:
    content = value.text
    if len(content) < 4 or is_placeholder(content) or _TYPE.fullmatch(content) or _ALGORITHM.fullmatch(content):
        return False
    if content.lower().strip("!?.") in _STATUS_WORDS or _names_itself(content):
        return False
    if value.quoted:
        return _is_quoted_secret(text, named, between, content)
    if _EXPRESSION.match(content) or _QUANTITY.fullmatch(content):
        return content.isdecimal() and len(content) >= 6 and named.level == _PASSWORD and _is_alone(text, named, value)
    if between["phrase"] or between["topic"]:
        return (named.level == _PASSWORD and _ends_sentence(text, value) and bool(_MIXED.match(content))) or is_random(content)
    if between["space"]:
        return _is_argument(text, named, value)
    if between["tag"]:
        return text.startswith("</", value.end) and (named.level == _PASSWORD or is_random(content))
    if named.level < _PASSWORD:
        return is_random(content)
    if between["assign"] and not between["below"]:
        return _is_assigned_password(text, named, between, value)
    return bool(_MIXED.match(content)) and bool(between["pair"] or between["typed"] or _is_alone(text, named, value) or between["cell"])


def _is_quoted_secret(text: str, named: _Named, between: re.Match[str], content: str) -> bool:
    if re.search(r"\s", content):  # a passphrase, unless it reads as a sentence or a label
        words = content.split()
        told = bool(between["assign"] or between["phrase"] or between["typed"] or between["pair"])
        return named.level == _PASSWORD and told and 3 <= len(words) <= 10 and not _SENTENCE.search(content)
    if named.level == _WEAK:
        one_word = not _PARTS.search(content) and bool(_MIXED.match(content))
        return is_random(content) or (one_word and named.kind in ("secret", "password") and len(content) >= 6)
    if named.level == _KEY:
        return is_random(content) or (len(content) >= 8 and not _PARTS.search(content) and not between["call"])
    if between["call"] or between["cell"]:
        return bool(_MIXED.match(content))
    if between["space"]:
        written = text[named.start : named.end]
        return written.isupper() or named.kind != "password" or bool(_MIXED.match(content)) or written.lower() == "identified by"
    return True


def _is_assigned_password(text: str, named: _Named, between: re.Match[str], value: _Value) -> bool:
    if _MIXED.match(value.text):
        return True
    as_environment = between["assign"] == "=" and text[named.start : named.end].isupper()
    return as_environment or (_is_alone(text, named, value) and bool(_LETTERS_ONLY.fullmatch(value.text)))


def _is_argument(text: str, named: _Named, value: _Value) -> bool:
    if not _OPTION.search(text[max(0, named.start - 34) : named.start]) or value.text.startswith("-"):
        return False
    if named.level < _PASSWORD:
        return is_random(value.text)
    return bool(_MIXED.match(value.text)) or bool(_NOTHING_MORE.match(text, value.end))


def _is_alone(text: str, named: _Named, value: _Value) -> bool:
    """Name and value fill a line of their own, as in a settings file."""
    line_start = text.rfind("\n", 0, named.start) + 1
    before = text[max(line_start, named.start - 100) : named.start]
    return bool(_LINE_START.match(before)) and bool(_NOTHING_MORE.match(text, value.end))


def _ends_sentence(text: str, value: _Value) -> bool:
    return bool(_SENTENCE_ENDS.match(text, value.end))
