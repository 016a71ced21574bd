"""Passwords that a sentence, a pair or a table tells: ``use … as the password``, ``creds: admin / …``.

The name does not stand right before the value here, so the value itself has to look drawn rather than written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from apps.core.screening import values

Found = tuple[str, int, int]

_CALLED: Final = (
    r"(?:passwords?|passwd|passphrase|passcode|pwd|pw|passwort|kennwort|contraseña|contrasena|mot de passe|senha|parola"
    r"|wachtwoord|lösenord|hasło|heslo|пароль|密码|パスワード)"
)
_KEY_CALLED: Final = r"(?:(?:(?:api|access|auth|bot|deploy|client|secret)[ _-]?){1,2}(?:key|token|secret)|token|secret)"
_VALUE: Final = r"[\"'`*_]{0,3}(?P<value>[^\s\"'`<>|]{4,100})"
_OF: Final = r"(?:[ \t](?:for|of|on|to|in|at|für|von|zu|pour|de|du|para|do|da)(?:[ \t][\w./-]{1,30}){1,4}?)?"
_WORDS: Final = r"(?:[\w./-]{1,24}[ \t]){0,3}?"
# Behind a name that stands for the password itself, and not for where it is kept.
_ENDS: Final = (
    r"(?=[ \t]{0,4}(?:$|[.,;:!?)\]\n\r*_\"'`(–—]|-[ \t]|(?:for|of|on|to|in|at|now|and|but|again|from|here"
    r"|für|von|auf|und|pour|de|du|para)\b))"
)
_USER: Final = r"[\"'`*_]{0,3}[A-Za-z][\w.@+-]{1,40}[\"'`*_]{0,3}"

_TELLS: Final = tuple(
    re.compile(source, re.IGNORECASE | re.MULTILINE)
    for source in (
        # creds: admin / X
        rf"\b(?:creds?|credentials?|logins?|zugangsdaten|identifiants|credenciales|(?:log(?:ged)?|sign(?:ed)?)[ -]?in"
        rf"|user(?:name)?[ \t]?(?:and|und|[&/,+])[ \t]?(?:the[ \t])?(?:pass|{_CALLED})){_OF}[ \t]{{0,3}}"
        rf"(?::|=|[-–—]|\b(?:is|are|was|were|with|as|using|sind|lauten|ist)\b:?)[ \t]{{0,3}}"
        rf"{_USER}[ \t]{{0,3}}(?::|/|\||,|and|with)[ \t]{{0,3}}{_VALUE}",
        # set the password to X
        rf"\b(?:set|sets|setting|changed?|changing|reset|rotated?|updated?|switched?|setze?|geändert)[ \t]{_WORDS}"
        rf"{_CALLED}{_OF}[ \t](?:back[ \t])?(?:to|as|auf):?[ \t]{_VALUE}",
        # use X as the password
        rf"\b(?:use|uses|used|using|try|with|enter|type|give|nimm|nutze|utilise|usa)[ \t]{_VALUE}[\"'`*_]{{0,3}}[ \t]"
        rf"(?:as|for|als|comme|como)[ \t](?:the[ \t]|our[ \t]|your[ \t])?{_WORDS}{_CALLED}{_ENDS}",
        # X is the password
        rf"(?<![^\s\"'`*(]){_VALUE}[\"'`*_]{{0,3}}[ \t](?:is|was|ist|war|est|es|é)[ \t](?:still[ \t]|now[ \t])?"
        rf"(?:the|our|my|your|das|unser|le|la|a)[ \t]{_WORDS}{_CALLED}{_ENDS}",
        # password - X
        rf"(?<![^\W_]){_CALLED}{_OF}[*_`]{{0,3}}[ \t]{{1,3}}(?:[-–—]{{1,2}}|→|->)[ \t]{{1,3}}{_VALUE}",
    )
)
_PIN: Final = re.compile(
    rf"(?<![\w./-])(?:PIN|Pin|pin)(?:[ -]?(?:code|number|Code|Nummer))?{_OF}"
    r"(?:[ \t]{0,3}[:=][ \t]{0,3}|[ \t](?:is|was|ist|lautet|war|est|es)[ \t]:?(?:now[ \t]|still[ \t])?)"
    r"[\"'`*]{0,3}(?P<value>\d{4,8})(?![\w:/%-]|[.,]\d| \d)"
)


def find_told(text: str, lowered: str) -> Iterator[Found]:
    """Kind, start and end of every value; ``lowered`` is ``text`` in lower case, of the same length."""
    if "pin" in lowered:
        yield from (("pin", *found.span("value")) for found in _PIN.finditer(text))
    if not any(name in lowered for name in _NAMED):
        return
    for pattern in _TELLS:
        for found in pattern.finditer(text):
            if value := _told(text, *found.span("value")):
                yield "password", *value
    yield from _in_tables(text)
    if "</" in text:
        yield from _in_markup(text)


_NAMED: Final = (
    *("pass", "pwd", "pw", "wort", "contrase", "contrasena", "senha", "parola", "wachtwoord", "lösenord", "hasło"),
    *("heslo", "пароль", "密码", "パスワード", "token", "secret", "key", "cred", "login", "log in", "sign in"),
    *("logged in", "signed in", "user", "zugangsdaten", "identifiants"),
)


def _told(text: str, start: int, end: int, *, kind: str = "password") -> tuple[int, int] | None:
    """The span of what is told, without the punctuation of its sentence, if it looks drawn."""
    value = text[start:end].rstrip(".,;:)*_")
    if len(value) < 6 or values.is_placeholder(value) or values.is_description(value) or values.is_expression(value):
        return None
    if values.is_quantity(value) or _NO_PASSWORD.fullmatch(value):
        return None
    drawn = values.is_random(value) if kind == "token" else values.is_told(value)
    return (start, start + len(value)) if drawn else None


_NO_PASSWORD: Final = re.compile(
    r"v?\d{1,4}(?:[.:/]\d{1,6}){1,4}(?:[-+.][\w.]{1,30})?|https?:.{0,100}|(?:www\.|[~./]{1,3}/|/)\S{1,100}"
    r"|[\w./-]{1,80}\.[a-z]{2,5}|[A-Z][A-Z0-9]{1,9}-\d{1,7}|[\w.+-]{1,60}@[\w.-]{1,60}|@\S{1,60}|[A-Za-z_]\w{0,60}=[^=].{0,100}"
)


# --- Tables ------------------------------------------------------------------------------------------------

_COLUMN: Final = re.compile(
    rf"[*_\"'`]{{0,3}}(?:[\w]{{1,20}}[ _./-])?(?:(?P<password>{_CALLED}|pass)|(?P<token>{_KEY_CALLED}))[*_\"'`]{{0,3}}",
    re.IGNORECASE,
)
_LINE: Final = re.compile(r"[^\n]{1,2000}")
_RULE: Final = re.compile(r"[\s|:+=-]+")
_CELL_VALUE: Final = re.compile(r"[\s\"'`*_]{0,8}([^\s\"'`<>|]{4,100})[\s\"'`*_]{0,8}")
_DELIMITERS: Final = "|\t;,"
_LONGEST_LABEL: Final = 30


def _in_tables(text: str) -> Iterator[Found]:
    """The cells below the head of a column, in Markdown, CSV and the like. A table is read once, from its head on."""
    delimiter, columns, width = "", dict[int, str](), 0
    for line in _LINE.finditer(text):
        if columns and delimiter in line[0] and (delimiter == "|" or line[0].count(delimiter) == width):
            if not _RULE.fullmatch(line[0]):
                yield from _row(text, line, delimiter, columns)
            continue
        delimiter, columns = _head(line[0])
        width = line[0].count(delimiter) if columns else 0


def _head(line: str) -> tuple[str, dict[int, str]]:
    """What separates the cells of a head, and the kinds of its columns that hold secrets."""
    delimiter = next((each for each in _DELIMITERS if each in line), "")
    if not delimiter or not _COLUMN.search(line):
        return "", {}
    cells = [cell.strip() for cell in line.split(delimiter)]
    if sum(map(bool, cells)) < 2 or any(len(cell) > _LONGEST_LABEL or ":" in cell or "=" in cell for cell in cells):
        return "", {}
    named = {at: found for at, cell in enumerate(cells) if (found := _COLUMN.fullmatch(cell))}
    return delimiter, {at: "password" if found["password"] else "token" for at, found in named.items()}


def _row(text: str, line: re.Match[str], delimiter: str, columns: dict[int, str]) -> Iterator[Found]:
    start = line.start()
    for at, cell in enumerate(line[0].split(delimiter)):
        if at in columns and (found := _CELL_VALUE.fullmatch(cell.rstrip("\r"))):
            value = _told(text, start + found.start(1), start + found.end(1), kind=columns[at])
            if value:
                yield columns[at], *value
        start += len(cell) + len(delimiter)


_TAGS: Final = r"(?:\s{0,20}<[a-zA-Z][^<>]{0,100}>){0,4}\s{0,20}"
_ENDS_OF_TAGS: Final = r"\s{0,20}(?:</[a-zA-Z]\w{0,10}>\s{0,20}){1,4}"
_BESIDE: Final = re.compile(
    rf">\s{{0,20}}(?:[\w]{{1,20}}[ _-])?(?:(?P<password>{_CALLED}|pass)|(?P<token>{_KEY_CALLED}))[ \t]?:?"
    rf"{_ENDS_OF_TAGS}(?::\s{{0,4}})?(?:<[a-zA-Z][^<>]{{0,100}}>\s{{0,20}}){{0,4}}(?P<value>[^\s<>\"']{{4,100}})\s{{0,20}}</",
    re.IGNORECASE,
)
_ROW: Final = re.compile(r"<tr\b|<t[hd]\b[^<>]{0,100}>" + _TAGS + r"(?P<cell>[^<>]{0,120})", re.IGNORECASE)


def _in_markup(text: str) -> Iterator[Found]:
    for found in _BESIDE.finditer(text):
        kind = "password" if found["password"] else "token"
        if value := _told(text, *found.span("value"), kind=kind):
            yield kind, *value
    at, columns = -1, dict[int, str]()
    for found in _ROW.finditer(text):
        if found["cell"] is None:
            at = -1
            continue
        at += 1
        label = found["cell"].strip()
        if named := _COLUMN.fullmatch(label):
            columns[at] = "password" if named["password"] else "token"
        elif at in columns and (given := _CELL_VALUE.fullmatch(found["cell"])):
            start = found.start("cell")
            if value := _told(text, start + given.start(1), start + given.end(1), kind=columns[at]):
                yield columns[at], *value
