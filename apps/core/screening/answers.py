"""A password that somebody asks for and the next one to speak gives: ``what's the password?`` / ``hunter2-xyz``.

Only what is asked for outright counts, and only an answer that is nothing but the value, with the few words that people
put before it. What in an answer is no password (an issue's number, a version, an address, a file) is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from apps.core.screening import values

_NAMES: Final = {
    **dict.fromkeys(("password", "passwd", "passphrase", "passcode", "pwd", "passwort", "kennwort"), "password"),
    **dict.fromkeys(("wachtwoord", "lösenord", "hasło", "heslo", "parola", "senha", "contraseña"), "password"),
    **dict.fromkeys(("contrasena", "mot de passe", "пароль", "密码", "パスワード", "비밀번호"), "password"),
    **dict.fromkeys(("user and pass", "user/pass", "user & pass", "login and pass"), "password"),
    **dict.fromkeys(("pin", "login", "credentials", "creds", "zugangsdaten", "pw"), "password"),
    **dict.fromkeys(("token", "api key", "secret", "access key"), "token"),
}
_NAME: Final = re.compile(rf"(?<![^\W\d_])(?:{'|'.join(_NAMES)})(?![^\W\d_])")
# What stands before the name where it is the name of what is wanted.
_ASKS: Final = re.compile(
    r"(?:\bwhat(?:'?s| is| was|'re| are| were)?|\bwhich(?: is| one is)?|\bwhats|\b(?:do|does|did) (?:you|we|anyone"
    r"|anybody"
    r"|somebody|someone) (?:still )?(?:have|know|remember)|\b(?:can|could|would) (?:you|someone|somebody"
    r"|anyone) (?:please "
    r"|pls )?(?:send|give|tell|share|post|remind|dm|drop)(?: (?:me|us))?(?: of)?|\b(?:send|give|tell|remind"
    r"|dm)(?: (?:me"
    r"|us))(?: of)?|\b(?:i|we) (?:still )?need|\b(?:has|have|had|got) (?:anyone |anybody |you )?(?:got )?"
    r"|\bwie (?:lautet"
    r"|ist|war)|\bwas (?:ist|war)|\bkennt (?:jemand|wer)|\b(?:hast|habt|hat) (?:du|ihr|jemand|wer)|\b(?:schick|gib"
    r"|nenn)"
    r"(?:st|t|e)?(?: du)? (?:mir|uns)|\b(?:quel|quelle) (?:est|était)|c'est quoi|\b(?:cu[aá]l) (?:es|era)|\bqual (?:é"
    r"|è|era)|\bwat is|\bvad är|какой)\s(?:[\w./-]{1,30}\s){0,4}$"
)
# The whole question, in few words: "staging password?", "pw for the vpn?".
_SHORT_QUESTION: Final = re.compile(
    r"(?:^|[:\]>–—-]\s{0,3}|[.!?]\s)(?:(?!why|how|when|where|who|is|are|was|did|does|do|should"
    r"|can|must|no|wieso|warum|wann|wo\b)[\w./'-]{1,20}\s){0,3}$"
)
_REST_OF_QUESTION: Final = re.compile(
    r"(?:[ \t](?:again|now|then|please|pls|bitte|nochmal|noch mal))?"
    r"(?:[ \t](?:for|of|to|on|in|at|from|für|von|vom|zum|zur|pour|de|du|para|do|da|voor|van)[ \t][^\n?]{1,60})?"
    r"(?:[ \t](?:again|now|then|please|pls|bitte"
    r"|nochmal))?[ \t]?(?P<asked>\?)?[\"'`*_)\]:.!, \t?]{0,8}(?:\r?\n[ \t]{0,20}){1,3}"
)
_NAME_OF_SPEAKER: Final = r"[@<*]{0,3}[^\W\d_][\w.'’ -]{0,40}>?\*{0,2}"
_TIME: Final = r"[\[(]?(?:\d{4}-\d\d-\d\d[T ])?\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d{1,6})?(?: ?[AaPp]\.?[Mm]\.?)?Z?[\])]?"
# The next one to speak: a name and a colon, or name and time on a line above.
_SPEAKER: Final = re.compile(
    rf"(?:>[ \t]?){{0,3}}(?:{_TIME}[ \t]{{1,4}})?"
    rf"(?:{_NAME_OF_SPEAKER}(?:[ \t]{{1,3}}{_TIME})?\*{{0,2}}:\*{{0,2}}[ \t]{{1,4}}|<[\w.@-]{{1,40}}>[ \t]{{1,4}}"
    rf"|{_NAME_OF_SPEAKER}[ \t]{{1,4}}(?:APP[ \t]{{1,2}})?{_TIME}[ \t]{{0,4}}(?:\r?\n[ \t]{{0,20}}){{1,2}}"
    rf"|[-*•–—][ \t]{{1,3}})?"
)
_LEAD: Final = re.compile(
    r"(?:(?:it'?s|it is|it was|its|that'?s|that is|here(?: you go| it is)?|sure|yes|yep|ok|okay|yeah|try|use"
    r"|should be|still|i"
    r" think|afaik|das ist|es ist|ist|ja|hier|c'est|voici|es|é|é a|är|het is|this one"
    r"|the same)[ \t]?[,:;!.–—-]{0,2}[ \t]{1,3}"
    r"|[,:;–—-]{1,2}[ \t]){0,4}",
    re.IGNORECASE,
)
_ANSWER: Final = re.compile(r"[\"'`*_]{0,3}([^\s\"'`<>]{4,100})")
# Who logs in and with what: ``admin / …``.
_PAIR: Final = re.compile(
    r"[A-Za-z][\w.@+-]{1,40}[\"'`*_]{0,3}[ \t]{0,2}(?:[:/|,]|and|with|pw|pass|password)[ \t]{0,2}[\"'`*_]{0,3}"
    r"([^\s\"'`<>]{6,100}?)[\"'`*_.,;!)]{0,4}[ \t]{0,4}(?:\r?\n|$)"
)
# Short turns that somebody puts between question and answer: "hang on", "same question".
_FILLERS: Final = 3
_FILLER: Final = re.compile(r"[^\n]{0,40}(?<=[\w.!?…:)])[ \t]{0,4}(?:\r?\n[ \t]{0,20}){1,3}")
_ENDS: Final = re.compile(
    r"[\"'`*_.,;:!)]{0,4}[ \t]{0,4}(?:\(?(?:thanks?|thx|cheers|:\)|;\)|but keep|keep|please|don't"
    r"|do not)[^\n]{0,60})?(?:\r?\n|$)",
    re.IGNORECASE,
)
_NO_PASSWORD: Final = re.compile(
    r"#?\d{1,5}|[A-Z][A-Z0-9]{1,9}-\d{1,7}|[\w.-]{0,60}[#!]\d{1,9}"
    r"|v?\d{1,4}(?:[.:/]\d{1,6}){1,4}(?:[-+.][\w.]{1,30})?|https?:.{0,100}"
    r"|(?:www\.|[~./]{1,3}/|/)\S{1,100}|[\w.-]{1,60}\.(?:md|txt|ya?ml|json|env|toml|ini|py|sh|go|js|ts|com|org|net"
    r"|io|dev|pdf"
    r"|kdbx)|[\w.+-]{1,60}@[\w.-]{1,60}|@\S{1,60}|\[secret:.{0,60}|(?:1|last)pass\w{0,8}|\d{1,4}-?(?:digit|char"
    r"|bit)\w{0,10}"
)


def find_answers(text: str, lowered: str) -> Iterator[tuple[str, int, int]]:
    """Kind, start and end of every value; ``lowered`` is ``text`` in lower case, of the same length."""
    if "\n" not in text:
        return
    for name in _NAME.finditer(lowered):
        rest = _REST_OF_QUESTION.match(lowered, name.end())
        if rest and _is_asked_for(lowered, name, bool(rest["asked"])):
            found = _answer(text, rest.end(), _NAMES[name[0]], is_pin=name[0] == "pin")
            if found:
                yield found


def _is_asked_for(lowered: str, name: re.Match[str], with_mark: bool) -> bool:
    line = lowered[max(0, name.start() - 120) : name.start()].rpartition("\n")[2]
    if _ASKS.search(line):
        return True
    return with_mark and bool(_SHORT_QUESTION.search(line))


def _answer(text: str, start: int, kind: str, *, is_pin: bool) -> tuple[str, int, int] | None:
    for turn in range(_FILLERS + 1):
        found = _given(text, start, kind, is_pin=is_pin, drawn=turn > 0)
        filler = _FILLER.match(text, start)
        if found or not filler:
            return found
        start = filler.end()
    return None


def _given(text: str, start: int, kind: str, *, is_pin: bool, drawn: bool) -> tuple[str, int, int] | None:
    speaker = _SPEAKER.match(text, start)
    start = speaker.end() if speaker else start
    lead = _LEAD.match(text, start)
    answer = _ANSWER.match(text, lead.end() if lead else start)
    if not answer:
        return None
    value = answer[1].rstrip(".,;:)*_")
    end = answer.start(1) + len(value)
    if _ENDS.match(text, end) and _is_value(value.rstrip("!?"), kind, is_pin=is_pin):
        return None if drawn and not (values.is_told(value) or value.isdecimal()) else (kind, answer.start(1), end)
    pair = _PAIR.match(text, answer.start(1))
    if kind == "password" and pair and values.is_told(pair[1]) and not _NO_PASSWORD.fullmatch(pair[1]):
        return kind, *pair.span(1)
    return None


def _is_value(value: str, kind: str, *, is_pin: bool) -> bool:
    if value.isdecimal():
        return 4 <= len(value) <= 12 if is_pin else kind == "password" and len(value) >= 6
    if _NO_PASSWORD.fullmatch(value) or values.is_placeholder(value) or values.is_description(value):
        return False
    if len(value) < 6 or values.is_quantity(value) or values.is_expression(value):
        return False
    if kind == "token":
        return values.is_random(value)
    return (values.is_mixed(value) and any(map(str.isdigit, value))) or values.is_varied(value)
