"""Personal data in text: e-mail addresses, telephone numbers, payment cards and bank accounts.

Like secrets they are looked for in a view of the text in which hidden characters are gone, and entities and escapes
are plain.

Cards are told from other digits by the Luhn check and the numbers that issuers have, accounts by the ISO 7064 mod 97-10
check of an IBAN and the length that its country gives it. What engineers write that only looks alike (remotes,
versions, ids, counts, moments, addresses that stand for nobody) is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from apps.core.screening.folding import Folded, fold, unescaped_lines
from apps.core.screening.secrets import Finding

_EMAIL: Final = re.compile(
    r"(?<![A-Za-z0-9._%+@/:-])[A-Za-z0-9](?:[A-Za-z0-9._%+-]{0,62}[A-Za-z0-9_+-])?@"
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.){1,7}[A-Za-z]{2,24}(?![A-Za-z0-9@]|\.[A-Za-z0-9]|:[^\s])"
)
_PHONE: Final = re.compile(
    r"(?<![\w+.:/=#-])(?<!\d )(?:\+|00)[1-9][0-9]{0,2}(?:[ ./-]{0,2}\(?[0-9]{1,5}\)?){2,6}(?![\w-]|\.\d|:\d)"
)
# Without the country: a trunk prefix, the code of a place or of a mobile network, and what follows, in groups.
_LOCAL_PHONE: Final = re.compile(
    r"(?<![\w+.:/=#,&%-])(?<!\d )(?<!\d - )\(?(?P<code>0[1-9][0-9]{1,4})(?:\) ?| ?[/–-] ?| )(?P<rest>[1-9][0-9]{2,8}"
    r"(?:[ /-][0-9]{2,5}){0,3})(?![\w%-]|[.,:/]\d| [-–] \d| ?[-/]\d| \d)"
)
# Five pairs, as in France: 06 12 34 56 78.
_PAIRS: Final = re.compile(
    r"(?<![\w+.:/=#,&%-])(?<!\d )0[1-79](?:([ .-])[0-9]{2})(?:\1[0-9]{2}){3}(?![\w%-]|[.,:/ ]\d)"
)
# Written together, or as in North America: only where it is said to be one.
_TOLD_PHONE: Final = re.compile(
    r"(?<![\w+.:/=#&%-])(?:0[1-9][0-9]{7,11}|0[1-9][ -][0-9]{7,8}"
    r"|\(?[2-9][0-9]{2}\)?[ .-]?[2-9][0-9]{2}[ .-][0-9]{4})(?![\w%-]|[.,:/ ]\d)"
)
_AMERICAN: Final = re.compile(r"(?<![\w+.:/=#&%-])\([2-9][0-9]{2}\) ?[2-9][0-9]{2}[ -][0-9]{4}(?![\w%-]|[.,:/ ]\d)")
_TELLS_PHONE: Final = re.compile(
    r"\b(?:tel(?:e(?:f|ph)on\w*)?|phones?|mobile?|mobil\w*|cell(?:phone)?|handy\w*|fax|call(?: me| us| him| her)?"
    r"|ring|dial"
    r"|rufnummer|ruf|anrufen|erreich\w*|whatsapp|signal|sms|text me|hotline|pager|durchwahl|gsm|portable|móvil|tél|"
    r"téléphone)\b[^\n]{0,24}$",
    re.IGNORECASE,
)
# What is counted, ordered or filed has numbers that look alike.
_TELLS_OTHER: Final = re.compile(
    r"\b(?:orders?|cases?|tickets?|p?ids?|refs?|references?|invoices?|articles?|sku|parts?|serials?|batch|lots?"
    r"|rows?|lines?"
    r"|offsets?|versions?|builds?|revisions?|jobs?|runs?|ports?|ports from|accounts?|konto\w*|kunden\w*|rechnung\w*"
    r"|artikel\w*"
    r"|bestell\w*|auftrag\w*|plz|zip|hrb|isbn|ean|mask|umask|mode|chmod|octal|hex|range|from|between|bytes?|codes?"
    r"|epoch|time|timestamps?|dated?)[ \t]?(?:nr|no|number|nummer)?[-.:#= \t]{0,3}$"
    r"|\bports?\b[^\n]{0,40}$|\d, ?$",
    re.IGNORECASE,
)
_COUNTED: Final = re.compile(
    r"\s?(?:bytes?|kb|mb|gb|rows?|ms|s|seconds?|min|minutes?|hours?|h|times|requests?|events?|users?|items?|lines?"
    r"|entries"
    r"|records?|%|utc|uhr|am|pm|eur|usd|€|\$)\b",
    re.IGNORECASE,
)
# `jane (at) firm (dot) de`, `jane [at] firm.de`, `jane at firm dot de`.
_SPELT_EMAIL: Final = re.compile(
    r"(?<![\w.+@-])([A-Za-z0-9](?:[A-Za-z0-9._+-]{0,62}[A-Za-z0-9_])?)"
    r"(?:\s?[(\[{<]\s?(?:at|AT|At|ät|@)\s?[)\]}>]\s?((?:[A-Za-z0-9-]{1,63}(?:\s?[(\[{<]\s?(?:dot|DOT|Dot|punkt"
    r"|\.)\s?[)\]}>]"
    r"\s?|\.| dot )){1,4}[A-Za-z]{2,24})"
    r"| (?:at|AT) ((?:[A-Za-z0-9-]{1,63} (?:dot|DOT) ){1,3}(?:com|org|net|info|biz|eu|io|dev|de|at|ch|fr|it|es|nl"
    r"|be|pl|uk|us|se|dk|fi|pt"
    r"|br|jp|in|cz)))(?![\w@(])"
)
_HINTS_AT_SPELT_EMAIL: Final = re.compile(r"[(\[{<]\s?(?:at|AT|At|ät|@)\s?[)\]}>]| (?:dot|DOT) ")
_DOT: Final = re.compile(r"\s?[(\[{<]\s?(?:dot|punkt|\.)\s?[)\]}>]\s?| dot ", re.IGNORECASE)
# After `(at)` a name with a plain dot may be a file.
_FILE: Final = re.compile(
    r"\.(?:py|js|ts|tsx|jsx|go|rs|rb|java|kt|cs|cc|cpp|hpp|php|sh|md|txt|sql|yml|yaml|json|toml|cfg|ini|html|css"
    r"|scss|lock"
    r"|log|xml|proto|tf)$",
    re.IGNORECASE,
)
_CARD: Final = re.compile(
    r"(?<![\w./#-])(?:[2-6][0-9]{12,18}|[2-6][0-9]{3}(?:([ -])[0-9]{4})(?:(?:\1|\r?\n)[0-9]{4}){2}(?:\1[0-9]{1,3})?"
    r"|3[0-9]{3}([ -])[0-9]{6}\2[0-9]{4,5})(?![\w-]|\.\d)"
)
_IBAN: Final = re.compile(r"(?<!\w)[A-Z]{2}[0-9]{2}(?:(?: |\r?\n)?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?!\w)")

# Addresses that stand for nobody: reserved names (RFC 2606), the mailboxes of a role (RFC 2142), and the user part of
# a clone address.
_NOBODY: Final = re.compile(
    r"@(?:[\w.-]+\.)?(?:example(?:\.(?:com|org|net))?|invalid|test|localhost)$"
    r"|^(?:git|hg|svn|no-?reply|do-?not-?reply|info|support|abuse|noc|security|postmaster|hostmaster|webmaster)@",
    re.IGNORECASE,
)
# `react@18.3.0-canary.rc`, `logo@2x.png`, `getty@tty1.service`, and what a mail program calls one message.
_NO_ADDRESS: Final = re.compile(
    r"@v?\d+\.|@\d+x\.\w+$|\.(?:service|socket|timer|target|mount|path|slice|png|jpe?g|gif|svg|webp)$"
    r"|^(?=(?:[^@]*\d){4})[^@]{20,}@",
    re.IGNORECASE,
)
_REMOTE_SHELL: Final = re.compile(r"\b(?:ssh|scp|sftp|rsync)\s(?:-\S+\s(?:[\w/.]+\s)?){0,4}$")
_DATE: Final = re.compile(r"\b(?:19|20)\d\d-[01]\d-[0-3]\d")
_THOUSANDS: Final = re.compile(r"\+[1-9]\d{0,2}([ .])\d{3}(?:\1\d{3}){0,3}$")
_DOTTED: Final = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}$")
_NUMBER: Final = re.compile(r"\+(?:\d+\.\d+|[01]+)$")

# Length by country, from the registry of IBANs.
_IBAN_LENGTHS: Final = {
    country: length
    for length, countries in (
        (15, "NO"),
        (16, "BE"),
        (18, "DK FI FO GL NL SD"),
        (19, "MK SI"),
        (20, "AT BA EE KZ LT LU XK"),
        (21, "CH HR LI LV"),
        (22, "BG BH CR DE GB GE IE ME RS VA"),
        (23, "AE GI IL IQ OM SO TL"),
        (24, "AD CZ ES MD PK RO SA SE SK TN VG"),
        (25, "LY PT ST"),
        (26, "IS TR"),
        (27, "BI DJ FR GR IT MC MR SM"),
        (28, "AL AZ BY CY DO GT HU LB NI PL SV"),
        (29, "BR EG PS QA UA"),
        (30, "JO KW MU YE"),
        (31, "MT SC"),
        (32, "LC"),
        (33, "RU"),
    )
    for country in countries.split()
}


def find_personal(text: str) -> list[Finding]:
    """Every piece of personal data in ``text``, in order and without overlap."""
    view = fold(text)
    found = _found_in(view, view.text)
    if "%" in text or "\\" in text:
        lines = unescaped_lines(view.text)
        found += [Finding(each.kind, *view.span(each.start, each.end)) for each in _found_in(lines, lines.text)]
    disjoint: list[Finding] = []
    for finding in sorted(found, key=lambda finding: (finding.start, -finding.end)):
        if not disjoint or finding.start >= disjoint[-1].end:
            disjoint.append(finding)
    return disjoint


def _found_in(view: Folded, text: str) -> list[Finding]:
    return [Finding(each.kind, *view.span(each.start, each.end)) for each in _all(text)]


def _all(text: str) -> Iterator[Finding]:
    for match in _EMAIL.finditer(text) if "@" in text else ():
        if _is_of_somebody(match[0], text[max(0, match.start() - 60) : match.start()]):
            yield Finding("e-mail address", *match.span())
    for match in _SPELT_EMAIL.finditer(text) if _HINTS_AT_SPELT_EMAIL.search(text) else ():
        if _is_spelt_email(match):
            yield Finding("e-mail address", *match.span())
    for match in _IBAN.finditer(text):
        if _is_iban(match[0]):
            yield Finding("bank account", *match.span())
    for match in _CARD.finditer(text):
        if _is_card(match[0]):
            yield Finding("payment card", *match.span())
    for match in _PHONE.finditer(text):
        if _is_phone(match[0]) and (match[0][0] == "+" or not _COUNTED.match(text, match.end())):
            yield Finding("telephone number", *match.span())
    yield from _local_phones(text)


def _local_phones(text: str) -> Iterator[Finding]:
    for pattern, is_one in (
        (_LOCAL_PHONE, _is_local_phone),
        (_PAIRS, _is_pairs),
        (_AMERICAN, lambda match, told: True),
        (_TOLD_PHONE, lambda match, told: told),
    ):
        for match in pattern.finditer(text):
            before = text[max(0, match.start() - 48) : match.start()]
            told = bool(_TELLS_PHONE.search(before))
            other = _TELLS_OTHER.search(before) or _COUNTED.match(text, match.end())
            if (told or not other) and is_one(match, told):
                yield Finding("telephone number", *match.span())


def _is_local_phone(match: re.Match[str], told: bool) -> bool:
    """Nine to twelve digits, of which the code is three to five, or six in eastern Germany."""
    code, rest = match["code"], match["rest"]
    groups = re.split(r"[ /-]", rest)
    digits = len(code) + sum(map(len, groups))
    if not 9 <= digits <= 12 or not (len(code) < 6 or code.startswith("03")) or (len(code) == 3 and code[1] == "1"):
        return False
    # A date or a moment in groups, and columns of padded numbers.
    padded = sum(group.startswith("0") for group in groups[1:]) > 1
    year = groups[-1][:2] in ("19", "20") and len(groups[-1]) == 4 and len(groups) > 1
    return told or not (padded or year)


def _is_pairs(match: re.Match[str], told: bool) -> bool:
    """Not a list of small numbers, nor a date and a time."""
    pairs = re.split(r"[ .-]", match[0])
    return told or (match[1] == " " and sum(pair.startswith("0") for pair in pairs) < 3 and len(set(pairs)) > 3)


def _is_spelt_email(match: re.Match[str]) -> bool:
    host = _DOT.sub(".", match[2] or match[3])
    is_file = bool(match[2]) and host == match[2] and bool(_FILE.search(host))
    return not is_file and _is_of_somebody(f"{match[1]}@{host}", "")


def _is_of_somebody(address: str, before: str) -> bool:
    return not (_NOBODY.search(address) or _NO_ADDRESS.search(address) or _REMOTE_SHELL.search(before))


def _is_phone(text: str) -> bool:
    """Written together a number is one with its plus and ten digits; counts, moments and addresses are none."""
    digits = "".join(character for character in text if character.isdigit())
    together = text.removeprefix("+").isdigit()
    if together and (text.startswith("00") or len(digits) < 10):
        return False
    if digits.endswith("0000") or (_THOUSANDS.match(text) and (len(digits) < 11 or digits.endswith("000"))):
        return False
    alike = any(pattern.search(text) for pattern in (_DATE, _DOTTED, _NUMBER))
    return 8 <= len(digits) <= 15 and not alike


def _is_card(text: str) -> bool:
    digits = "".join(character for character in text if character.isdigit())
    doubled = [int(digit) * 2 - 9 * (int(digit) > 4) if at % 2 else int(digit) for at, digit in enumerate(digits[::-1])]
    return len(digits) in _lengths_of_cards(digits) and len(set(digits)) > 1 and sum(doubled) % 10 == 0


def _lengths_of_cards(digits: str) -> range | tuple[int, ...]:
    """How long a card is whose number begins like this; empty where no issuer has such numbers."""
    two, four = int(digits[:2]), int(digits[:4])
    if digits[0] == "4":
        return (13, 16, 19)
    if two in (34, 37):
        return (15,)
    if two in (30, 36, 38, 39):
        return (14,)
    if two == 62:
        return range(16, 20)
    if 50 <= two <= 58 or 63 <= two <= 67 or 2221 <= four <= 2720 or four == 6011 or 3528 <= four <= 3589:
        return (16,)
    return ()


def _is_iban(text: str) -> bool:
    compact = "".join(text.split())
    rearranged = compact[4:] + compact[:4]
    return (
        len(compact) == _IBAN_LENGTHS.get(compact[:2])
        and int("".join(str(int(character, 36)) for character in rearranged)) % 97 == 1
    )
