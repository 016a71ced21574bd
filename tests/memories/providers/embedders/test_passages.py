from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.memories.providers.embedders.passages import (
    PASSAGE_TOKENS,
    STEP_TOKENS,
    estimated_spans,
    split_passages,
)


class Estimating:
    def __init__(self, max_tokens):
        self.max_tokens = max_tokens

    def token_spans(self, text):
        return estimated_spans(text)


WORDS = [f"w{number}" for number in range(1_000)]


@pytest.mark.parametrize("count", [1, 100, 254])
def test_what_the_model_can_read_whole_stays_whole(count):
    text = f"  {' '.join(WORDS[:count])}\n"
    assert split_passages(text, Estimating(256)) == [text]


@pytest.mark.parametrize(("count", "passages"), [(255, 2), (280, 2), (281, 3), (400, 3), (401, 4), (1_000, 8)])
def test_long_texts_are_cut_into_overlapping_passages(count, passages):
    cut = [passage.split() for passage in split_passages(" ".join(WORDS[:count]), Estimating(256))]
    assert len(cut) == passages
    assert [words[0] for words in cut] == WORDS[:count:STEP_TOKENS][:passages]
    assert all(len(words) == PASSAGE_TOKENS for words in cut[:-1])
    assert cut[-1][-1] == WORDS[count - 1]
    # The last passage says something that the one before it does not.
    assert cut[-1][-1] not in cut[-2]


def test_the_number_of_passages_of_the_longest_text_is_bounded():
    longest = "字" * 20_000
    cut = split_passages(longest, Estimating(256))
    assert len(cut) == 167
    assert max(map(len, cut)) == PASSAGE_TOKENS


def test_texts_without_tokens_are_one_passage():
    assert split_passages("   ", Estimating(256)) == ["   "]


@given(st.text(max_size=600))
def test_estimated_tokens_cover_everything_but_blanks_in_order(text):
    spans = estimated_spans(text)
    assert all(start < end for start, end in spans)
    assert all(first[1] <= second[0] for first, second in pairwise(spans))
    covered = {place for start, end in spans for place in range(start, end)}
    assert {place for place, sign in enumerate(text) if not sign.isspace()} <= covered


@given(st.text(min_size=1, max_size=3_000), st.integers(min_value=PASSAGE_TOKENS + 2, max_value=300))
def test_passages_lose_nothing(text, max_tokens):
    passages = split_passages(text, Estimating(max_tokens))
    place = 0
    for passage in passages:
        start = text.find(passage, 0 if place == 0 else max(0, place - len(passage)))
        assert start <= place or not text[place:start].strip()
        place = max(place, start + len(passage))
    assert not text[place:].strip()
