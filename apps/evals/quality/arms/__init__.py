"""Ways to search that are compared: none, words, vectors, mem0 as it comes, and ours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from apps.evals.quality.arms.base import Arm
from apps.evals.quality.arms.lexical import Bm25, Grep
from apps.evals.quality.arms.mem0 import Mem0
from apps.evals.quality.arms.nothing import Nothing
from apps.evals.quality.arms.ours import Ours
from apps.evals.quality.corpora import Corpus
from apps.retrieval.recipes import RECIPES

OTHERS: Final[dict[str, Callable[[Corpus], Arm]]] = {"none": Nothing, "grep": Grep, "bm25": Bm25, "mem0": Mem0}


def known_arms() -> tuple[str, ...]:
    """Names of all arms: those that are not ours, then our recipes, which are read as they are now."""
    return (*OTHERS, *RECIPES)


def make_arm(name: str, corpus: Corpus) -> Arm:
    return OTHERS[name](corpus) if name in OTHERS else Ours(corpus, recipe=name)


def chosen(arms: Sequence[str], recipes: Sequence[str]) -> tuple[str, ...]:
    """What was asked for, in the usual order; everything where nothing was named."""
    asked = {*arms, *recipes}
    return tuple(name for name in known_arms() if not asked or name in asked)
