"""Named ways to rank. A recipe is data, so that recipes can be compared."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from apps.core.errors import Invalid
from apps.core.screening import quotable


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """``depth`` is how many memories each arm brings.

    ``text_weight`` is the share of words in the fused score of a ``short`` question (of so many distinct words or
    fewer), ``text_weight_of_long`` that of a ``long`` one; the rest is the share of meaning. ``identifier_weight`` is
    what all identifiers of the question together count, in standard deviations of the cosines; ``called_weight`` comes
    on top where one is what a memory or a source of it is called by.

    ``least_coverage`` is the share of the question's words, weighed by how rare they are, that a memory needs to be an
    answer where its meaning is not near.

    ``weighs`` lets categories count by intent, ``fades`` by age, which leaves a score ``least_decay`` of itself at
    least; ``follows`` gives what holds instead of a replaced memory the relevance of that one. ``reranker`` is the name
    of one, or none.
    """

    name: str
    depth: int = 100
    vector: bool = True
    text_weight: float = 0.25
    text_weight_of_long: float = 0.4
    identifier_weight: float = 1.0
    identifier_weight_of_long: float = 0.3
    called_weight: float = 2.0
    short: int = 10
    long: int = 30
    disputed_factor: float = 0.9
    least_coverage: float = 0.6
    weighs: bool = True
    fades: bool = True
    follows: bool = True
    least_decay: float = 0.8
    reranker: str | None = None


DEFAULT: Final = Recipe(name="default")
_ONE_ARM: Final = replace(DEFAULT, identifier_weight=0.0, identifier_weight_of_long=0.0, weighs=False, fades=False)
VECTOR_ONLY: Final = replace(_ONE_ARM, name="vector", text_weight=0.0, text_weight_of_long=0.0)
TEXT_ONLY: Final = replace(_ONE_ARM, name="text", vector=False, text_weight=1.0, text_weight_of_long=1.0)

RECIPES: Final = {recipe.name: recipe for recipe in (DEFAULT, VECTOR_ONLY, TEXT_ONLY)}


def recipe_named(name: str | None) -> Recipe:
    if name is None:
        return DEFAULT
    try:
        return RECIPES[name]
    except KeyError:
        known = ", ".join(RECIPES)
        raise Invalid.field("recipe", f"There is no recipe {quotable(name)}. Use one of: {known}.") from None
