"""How many tokens a text is to a language model, estimated: without a tokenizer, and the same for every model."""

from __future__ import annotations

from typing import Final

# A character weighs, in twelfths of a token, three if it is ASCII and otherwise four a byte of its UTF-8.
TOKEN: Final = 12
ASCII_WEIGHT: Final = 3
BYTE_WEIGHT: Final = 4


def estimated_tokens(text: str) -> int:
    """Four ASCII characters count as one token, and so do three bytes of UTF-8 of anything else.

    A Chinese, Japanese or Korean character is thus one token, an accented or Cyrillic letter two thirds of one and an
    emoji one and a third, which errs towards too many.
    """
    return -(-weight_of(text) // TOKEN)


def weight_of(text: str) -> int:
    """In twelfths of a token, so that parts add up to their whole."""
    if text.isascii():
        return ASCII_WEIGHT * len(text)
    ascii_characters = len(text.encode("ascii", "ignore"))
    other_bytes = len(text.encode("utf-8", "surrogatepass")) - ascii_characters
    return ASCII_WEIGHT * ascii_characters + BYTE_WEIGHT * other_bytes
