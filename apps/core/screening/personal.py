"""Personal data in text: e-mail addresses, telephone numbers, payment cards and bank accounts.

Cards are told from other digits by the Luhn check, accounts by the ISO 7064 mod 97-10 check of an IBAN.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from apps.core.screening.secrets import Finding

_EMAIL: Final = re.compile(
    r"(?<![A-Za-z0-9._%+@/:-])[A-Za-z0-9](?:[A-Za-z0-9._%+-]{0,62}[A-Za-z0-9_+-])?@"
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.){1,5}[A-Za-z]{2,24}(?![A-Za-z0-9@]|:[^\s])"
)
_PHONE: Final = re.compile(r"(?<![\w+.])(?<!\d )(?:\+|00)[1-9][0-9]{0,2}(?:[ ./-]{0,2}\(?[0-9]{1,5}\)?){2,6}(?![\w-])")
_CARD: Final = re.compile(r"(?<![\w.-])[3-6](?:[ -]?[0-9]){12,18}(?![\w-])")
_IBAN: Final = re.compile(r"(?<!\w)[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?!\w)")

# Addresses that stand for nobody: reserved names (RFC 2606), and the user part of a clone address.
_NOBODY: Final = re.compile(
    r"@(?:[\w.-]+\.)?(?:example(?:\.(?:com|org|net))?|invalid|test|localhost)$|^(?:git|hg|svn)@", re.IGNORECASE
)


def find_personal(text: str) -> list[Finding]:
    """Every piece of personal data in ``text``, in order and without overlap."""
    found = sorted(_all(text), key=lambda finding: (finding.start, -finding.end))
    disjoint: list[Finding] = []
    for finding in found:
        if not disjoint or finding.start >= disjoint[-1].end:
            disjoint.append(finding)
    return disjoint


def _all(text: str) -> Iterator[Finding]:
    for match in _EMAIL.finditer(text):
        if not _NOBODY.search(match[0]):
            yield Finding("e-mail address", *match.span())
    for match in _IBAN.finditer(text):
        if _is_iban(match[0]):
            yield Finding("bank account", *match.span())
    for match in _CARD.finditer(text):
        if _is_card(match[0]):
            yield Finding("payment card", *match.span())
    for match in _PHONE.finditer(text):
        if 8 <= sum(character.isdigit() for character in match[0]) <= 15:
            yield Finding("telephone number", *match.span())


def _is_card(text: str) -> bool:
    digits = [int(character) for character in text if character.isdigit()]
    doubled = [digit * 2 - 9 * (digit > 4) if at % 2 else digit for at, digit in enumerate(reversed(digits))]
    return 13 <= len(digits) <= 19 and len(set(digits)) > 1 and sum(doubled) % 10 == 0


def _is_iban(text: str) -> bool:
    compact = text.replace(" ", "")
    rearranged = compact[4:] + compact[:4]
    return 15 <= len(compact) <= 34 and int("".join(str(int(character, 36)) for character in rearranged)) % 97 == 1
