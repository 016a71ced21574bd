"""Personal data in text: e-mail addresses, telephone numbers, payment cards and bank accounts.

Cards are told from other digits by the Luhn check and the numbers that issuers have, accounts by the ISO 7064 mod 97-10
check of an IBAN and the length that its country gives it. What engineers write that only looks alike (remotes,
versions, ids, counts, moments, addresses that stand for nobody) is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from apps.core.screening.secrets import Finding

_EMAIL: Final = re.compile(
    r"(?<![A-Za-z0-9._%+@/:-])[A-Za-z0-9](?:[A-Za-z0-9._%+-]{0,62}[A-Za-z0-9_+-])?@"
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.){1,7}[A-Za-z]{2,24}(?![A-Za-z0-9@]|\.[A-Za-z0-9]|:[^\s])"
)
_PHONE: Final = re.compile(
    r"(?<![\w+.:/=#-])(?<!\d )(?:\+|00)[1-9][0-9]{0,2}(?:[ ./-]{0,2}\(?[0-9]{1,5}\)?){2,6}(?![\w-]|\.\d|:\d)"
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
    found = sorted(_all(text), key=lambda finding: (finding.start, -finding.end))
    disjoint: list[Finding] = []
    for finding in found:
        if not disjoint or finding.start >= disjoint[-1].end:
            disjoint.append(finding)
    return disjoint


def _all(text: str) -> Iterator[Finding]:
    for match in _EMAIL.finditer(text) if "@" in text else ():
        if _is_of_somebody(match[0], text[max(0, match.start() - 60) : match.start()]):
            yield Finding("e-mail address", *match.span())
    for match in _IBAN.finditer(text):
        if _is_iban(match[0]):
            yield Finding("bank account", *match.span())
    for match in _CARD.finditer(text):
        if _is_card(match[0]):
            yield Finding("payment card", *match.span())
    for match in _PHONE.finditer(text):
        if _is_phone(match[0]):
            yield Finding("telephone number", *match.span())


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
