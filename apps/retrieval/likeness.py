"""Whether two statements say nearly the same, so that one of them is enough."""

from __future__ import annotations

from typing import Final

from apps.retrieval.contents import Contents, likeness

# Sørensen–Dice over stems and numbers. Of 24 pairs that say the same in nearly the same words all have more; of 36 on
# one subject that say something else 14 have as much, and the conditions below tell all of them apart.
ALIKE: Final = 0.7


def say_the_same(one: Contents, other: Contents) -> bool:
    """In nearly the same words, of which one of the two has none of its own: RabbitMQ for Redis is another statement.

    So are another number and a negation. What is worded altogether differently is not recognised; it costs room, and
    a statement that is wrongly left out would cost more.
    """
    if one.denies != other.denies or one.numbers != other.numbers:
        return False
    adds_nothing = one.words <= other.words or other.words <= one.words
    return adds_nothing and likeness(one, other) >= ALIKE
