"""Named ways to rank. A recipe is data, so that recipes can be compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from apps.core.errors import Invalid
from apps.core.screening import quotable


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """``depth`` is how many memories each arm brings; weights are shares of the fused relevance.

    ``least_coverage`` is the share of the question's words, weighed by how rare they are, that a memory needs to be an
    answer where its meaning is not near.
    """

    name: str
    depth: int = 100
    vector_weight: float = 0.8
    text_weight: float = 0.2
    disputed_factor: float = 0.9
    least_coverage: float = 0.6


DEFAULT: Final = Recipe(name="default")
VECTOR_ONLY: Final = Recipe(name="vector", text_weight=0.0, vector_weight=1.0)
TEXT_ONLY: Final = Recipe(name="text", text_weight=1.0, vector_weight=0.0)

RECIPES: Final = {recipe.name: recipe for recipe in (DEFAULT, VECTOR_ONLY, TEXT_ONLY)}


def recipe_named(name: str | None) -> Recipe:
    if name is None:
        return DEFAULT
    try:
        return RECIPES[name]
    except KeyError:
        known = ", ".join(RECIPES)
        raise Invalid.field("recipe", f"There is no recipe {quotable(name)}. Use one of: {known}.") from None
