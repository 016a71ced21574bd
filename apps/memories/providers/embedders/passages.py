"""Long texts, cut into overlapping passages that the model can read whole.

A model reads its first few hundred tokens and ignores the rest, so a decision stated in the last paragraph
would be unfindable. The best passage counts for the memory. On recorded decisions, passages of 160 tokens
found the right one among five in 66 of 100 questions, the first 256 tokens alone in 58.
"""

from __future__ import annotations

import re
from typing import Final

from apps.memories.providers.embedders.base import Embedder, Span

PASSAGE_TOKENS: Final = 160
STEP_TOKENS: Final = 120

# The marks that a model puts around a text count towards what it reads.
_SPECIAL_TOKENS = 2

_WORD_OR_SIGN = re.compile(r"\w+|[^\w\s]")
_CHARACTERS_PER_TOKEN = 4


def split_passages(text: str, embedder: Embedder) -> list[str]:
    """The text whole if the model can read it, else passages in order that together hold every token."""
    spans = embedder.token_spans(text)
    if len(spans) <= embedder.max_tokens - _SPECIAL_TOKENS:
        return [text]
    starts = range(0, max(1, len(spans) - PASSAGE_TOKENS + STEP_TOKENS), STEP_TOKENS)
    return [_cut(text, spans[start : start + PASSAGE_TOKENS]) for start in starts]


def estimated_spans(text: str) -> list[Span]:
    """Token boundaries where the model's own tokenizer is out of reach.

    Words are cut every four characters, which is about what tokenizers do with long words; in scripts without
    spaces every character counts, so that the estimate errs towards shorter passages.
    """
    return [span for match in _WORD_OR_SIGN.finditer(text) for span in _pieces(match)]


def _pieces(match: re.Match[str]) -> list[Span]:
    width = _CHARACTERS_PER_TOKEN if match.group().isascii() else 1
    return [(at, min(at + width, match.end())) for at in range(match.start(), match.end(), width)]


def _cut(text: str, spans: list[Span]) -> str:
    return text[spans[0][0] : spans[-1][1]]
