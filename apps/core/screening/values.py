"""Whether the value of something called a password or a key is one, or stands for one, or is a word of a sentence."""

from __future__ import annotations

import re
from typing import Final

_REFERENCE: Final = re.compile(
    r"[<{\[]|\$[({]|\$\{?[A-Z_][A-Z0-9_]*\b|\$[a-z_]+\b(?![!@#%^&*])|%[({]|%\w+%|#\{|@\{|@@|\\\\|[&*][A-Za-z_]+$"
    r"|!(?:Ref|Sub|GetAtt|ImportValue|vault|secret|env\w*|reference|file|include|encrypted)\b|ENC\[|ENC\(|\{cipher\}"
    r"|(?i:vault|ssm|sm|gsm|kv|env|file|kms|op|bw|pass|keyring|keychain|secretsmanager|secrets?|ref|sops|doppler"
    r"|config|k8s|gcp|aws|azure|https?|arn|projects)(?:://|:[a-z/]|\.[a-z]|/[a-z])"
)
_MASKED: Final = re.compile(
    r"\*{3}|\.{3}|…|•{2}|_{6}|#{4}|[xX]{4}|x{3}-"
    r"|(?i:redacted|masked|placeholder|removed|omitted|elided|(?:token|string|key|secret|password)_?here)"
)
_ONE_CHARACTER: Final = re.compile(r"(.)\1*")
_TO_FILL_IN: Final = re.compile(
    r"(?i)(?:(?:your|my|the|some|any|an?|new|old|enter|insert|put|set|add|paste|replace|change"
    r"|change_?this)[-_. ]?){1,4}(?:[a-z0-9]{1,20}[-_. ]){0,3}(?:[a-z0-9]{1,20})?(?:password|passwd|passphrase|pwd"
    r"|pass|secret|token|key|here|me|it|this|value|credentials?)|(?i:example|sample|dummy|fake|change[-_ ]?(?:me|it"
    r"|this)|not[-_ ]?set|unset|replace[-_ ]?me|to[-_ ]?do|tbd|fixme|n/?a|none|null|nil)"
)
_EXPRESSION: Final = re.compile(
    r"(?:os|process|env|settings|config|cfg|conf|self|this|cls|request|req|ctx|context|args|options|opts|params|props"
    r"|state|secrets|vars|var|local|data|module|system|app|user|credentials|creds|session|response|res|form|values"
    r"|each)(?:\.|\[|->|::|\?\.)\w|ENV\[|[A-Za-z_][\w.]{0,80}\(|[\w.]{1,80}\[[\"'\w]|[A-Za-z_]\w*(?:(?:\.|->"
    r"|::)[A-Za-z_]\w*)+$|(?:await|new|not|lambda|typeof|async)$"
)
_TYPE: Final = re.compile(
    r"(?i)(?:optional|maybe|option|list|array|set|dict|map|union|literal|annotated|final|readonly"
    r"|nullable)?[\[<(]?(?:str|string|text|bytes?|char|varchar|int|integer|bool|boolean|float|number|object|any|uuid"
    r"|blob|secretstr|secret|securestring|password|token|hash|base64|hex|jwt|none|null|nil|true|false|undefined|void"
    r"|self|char\*|\[\]byte|&str|charfield|textfield|field)(?:[\])>]|\(\d*\)|\[\]|\?|!)?[;,]?"
)
_ALGORITHM: Final = re.compile(
    r"(?i)(?:(?:sha|md|hs|rs|es|ps|aes|rsa|hmac|ed|x|tls|ssl|http|oauth|utf|base|ecdsa|p|ip|ipv|s"
    r"|k)[-_/]?\d{1,5}"
    r"|(?:bcrypt|scrypt|argon|pbkdf)[-_/]?\w{0,24})(?:[-_/]\w{1,12}){0,3}"
)
_QUANTITY: Final = re.compile(
    r"(?i)[~<>=≥≤±]{0,2}\d{1,4}(?:[.,:/–-]\d{1,4}){0,3}[-+%x]?(?:k|m|g|px|m?s|min|mins|minutes?|h|hours?|d|days?"
    r"|weeks?|chars?|characters?|bytes?|bits?|digits?|times?|[kmg]i?b|st|nd|rd|th|password)?(?:-[a-z]{1,12}){0,2}"
)
_WORDLIKE_PART: Final = re.compile(r"[A-Za-zÀ-ɏ]{1,19}\d{0,2}|[vV]?\d{1,4}")
_PARTS: Final = re.compile(r"[-_./:@ ,+]+")
_WORD_STARTS: Final = re.compile(r"[-_.:/#]+|(?<=[a-z])(?=[A-Z])")
_CASE_CHANGE: Final = re.compile(r"[a-z][A-Z]|[A-Z]{2}[a-z]")
_CASE_PARTS: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_UNSPOKEN: Final = re.compile(r"(?i)[bcdfghjklmnpqrstvwxz]{4}|^[bcdfghjklmnpqrstvwxz]{2,}$")
_OWN_NAME: Final = re.compile(
    r"(?i)(?:pass(?:word|wd|phrase|wort|code)?|pwd|pw|secret|token|key|apikey|cred(?:ential)?|auth|hash|env"
    r"|var)s?\d{0,2}"
)
_CLASSES: Final = tuple(re.compile(pattern) for pattern in ("[a-z]", "[A-Z]", r"\d", r"[!@#$%^&*+~?=;|\\]"))
_DIGIT_OR_SIGN: Final = re.compile(r"[\d!@#$%^&*+~]")
_LETTER: Final = re.compile(r"[^\W\d_]")
_UNBROKEN: Final = re.compile(r"[\w.+/=~-]+")
_SENTENCE: Final = re.compile(
    r"(?i)\b(?:the|is|are|must|should|may|be|an?|of|for|your|to|in|with|from|not|required|enter|please|invalid"
    r"|missing|or|and|der|die|das|ein|le|la|el|un|une)\b"
)
# What documentation says about a password where a settings file would have the password.
_STATUS_WORDS: Final = frozenset(
    """
    required optional mandatory missing invalid valid wrong incorrect empty blank unset set encrypted hashed
    salted stored kept rotated expired expires never always must should may can could will would is was are were
    be been has have not no and or but if when where which that this the these those with without for from into
    onto of in on at to by as per via only also both either any all each every some own same other new old
    default defaults disabled enabled changed unchanged hidden visible masked redacted secret secrets password
    passwords token tokens key keys credential credentials private public shared internal external plain
    plaintext cleartext generated random unknown auto automatic manual inherited supplied provided passed read
    written loaded fetched injected mounted revoked refreshed issued signed verified checked validated ignored
    skipped dropped used unused reused allowed forbidden denied deprecated removed added deleted reset login
    logout authentication authorization bearer basic digest oauth oauth2 saml oidc sso mfa otp totp jwt base64
    string text bytes number integer boolean object array see use uses using user users username name names
    field fields form header headers value values length size type types file files path paths policy rules rule
    manager vault keychain environment variable variables config configuration settings rotation expiry
    expiration lifetime management storage handling protected sensitive confidential compromised leaked exposed
    weak strong long short yes none null nil true false undefined todo tbd n/a na unlimited monthly weekly daily
    yearly test example sample dummy fake foo bar baz foobar abc xyz erforderlich pflicht obligatoire requis
    manquant requerido obligatorio geheim privat siehe voir ver
    """.split()  # noqa: SIM905
)


def is_placeholder(value: str) -> bool:
    """Whether a value stands for a secret instead of being one: a variable, a mask, an invitation to fill in."""
    bare = value.strip(" \t*'\"\\")
    return bool(
        not bare
        or _ONE_CHARACTER.fullmatch(bare)
        or _REFERENCE.match(bare)
        or _MASKED.search(bare)
        or _TO_FILL_IN.fullmatch(bare)
        or (bare.startswith(("/", "~/", "./", "../")) and is_wordlike(bare))
    )


def is_random(value: str) -> bool:
    """Whether a value looks drawn rather than written: letters and digits that form no words."""
    if len(value) < 8 or not _LETTER.search(value) or _ALGORITHM.fullmatch(value):
        return False
    if is_wordlike(value):
        longest = max(_PARTS.split(value), key=len)
        return len(longest) >= 12 and len(_CASE_CHANGE.findall(longest)) * 4 >= len(longest)
    return bool(re.search(r"\d", value)) or len(value) >= 16


def is_wordlike(value: str) -> bool:
    """Whether all parts of an identifier are words, small numbers or words with a number."""
    return all(_WORDLIKE_PART.fullmatch(part) for part in _PARTS.split(value) if part)


def is_mixed(value: str) -> bool:
    """Letters together with digits or signs, as passwords have to be nearly everywhere."""
    return bool(_LETTER.search(value) and _DIGIT_OR_SIGN.search(value))


def is_varied(value: str) -> bool:
    """Three of small letters, capitals, digits and signs: enough to tell a password without any punctuation."""
    return len(value) >= 6 and sum(bool(pattern.search(value)) for pattern in _CLASSES) >= 3


def is_drawn(value: str) -> bool:
    """What stands for a password wherever one is told: drawn at random, or of three sorts of characters."""
    return is_random(value) or (is_varied(value) and is_mixed(value)) or is_scrambled(value)


def is_told(value: str) -> bool:
    """Drawn, and no name with a number such as ``OAuth2``: for sentences, where a product may stand in its place."""
    return is_random(value) or is_scrambled(value) or (is_varied(value) and is_mixed(value) and not is_wordlike(value))


def is_scrambled(value: str) -> bool:
    """Letters alone, of changing case, that no words are made of."""
    if not 8 <= len(value) <= 64 or not value.isascii() or not value.isalpha():
        return False
    changes = len(_CASE_CHANGE.findall(value))
    parts = _CASE_PARTS.findall(value)
    unspoken = sum(bool(_UNSPOKEN.search(part)) for part in parts)
    return changes >= 2 and (changes * 4 >= len(value) or unspoken >= 2)


def is_long_drawn(value: str) -> bool:
    """A digest, a UUID or the like, as opposed to anything that a person would write."""
    return len(value) >= 20 and bool(_UNBROKEN.fullmatch(value)) and is_random(value)


def is_single_word(value: str) -> bool:
    return not _PARTS.search(value)


def is_sentence(value: str) -> bool:
    return bool(_SENTENCE.search(value))


def is_quantity(value: str) -> bool:
    return bool(_QUANTITY.fullmatch(value))


def is_expression(value: str) -> bool:
    """Code that yields the value: an attribute, a call, a look-up."""
    return bool(_EXPRESSION.match(value))


def is_description(value: str) -> bool:
    """A type, an algorithm, a word about passwords, or the name of the variable that holds one."""
    return bool(
        _TYPE.fullmatch(value)
        or _ALGORITHM.fullmatch(value)
        or value.lower().strip("!?.") in _STATUS_WORDS
        or _names_itself(value)
    )


def _names_itself(value: str) -> bool:
    """An identifier such as ``user_password``, ``newToken`` or ``DB_PASSWORD``."""
    parts = [part for part in _WORD_STARTS.split(value) if part]
    return any(_OWN_NAME.fullmatch(part) for part in parts) and all(_WORDLIKE_PART.fullmatch(part) for part in parts)
