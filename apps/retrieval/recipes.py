"""Named ways to rank. A recipe is data, so that recipes can be compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from apps.core.errors import Invalid
from apps.core.screening import quotable


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """``depth`` is how many memories each arm brings; weights are shares of the fused relevance.

    ``weighs`` lets categories count by intent, ``fades`` by age; ``follows`` gives what holds instead of a replaced
    memory the relevance of that one. ``reranker`` is the name of one, or none.

    ``least_coverage`` is the share of the question's words, weighed by how rare they are, that a memory needs to be an
    answer where its meaning is not near.
    """

    name: str
    depth: int = 100
    vector_weight: float = 0.8
    text_weight: float = 0.2
    identifier_weight: float = 0.15
    weighs: bool = True
    fades: bool = True
    follows: bool = True
    reranker: str | None = None
    disputed_factor: float = 0.9
    least_coverage: float = 0.6


DEFAULT: Final = Recipe(name="default")
VECTOR_ONLY: Final = Recipe(
    name="vector", vector_weight=1.0, text_weight=0.0, identifier_weight=0.0, weighs=False, fades=False
)
TEXT_ONLY: Final = Recipe(
    name="text", vector_weight=0.0, text_weight=1.0, identifier_weight=0.0, weighs=False, fades=False
)

RECIPES: Final = {recipe.name: recipe for recipe in (DEFAULT, VECTOR_ONLY, TEXT_ONLY)}


def recipe_named(name: str | None) -> Recipe:
    if name is None:
        return DEFAULT
    try:
        return RECIPES[name]
    except KeyError:
        known = ", ".join(RECIPES)
        raise Invalid.field("recipe", f"There is no recipe {quotable(name)}. Use one of: {known}.") from None
