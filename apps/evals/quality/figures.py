"""A measured mean, and which measures are better when they are small. Light, because a page shows figures, too."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

LOWER_IS_BETTER: Final = frozenset({"stale@5", "stale@5 in repository", "stale@5 as of", "forgotten"})


@dataclass(frozen=True, slots=True)
class Figure:
    """A mean over ``n`` questions or cases, with its interval of 95 % from resampling them."""

    value: float
    low: float
    high: float
    n: int

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.low:.2f}–{self.high:.2f})"

    def as_dict(self) -> dict[str, Any]:
        return {name: round(value, 4) for name, value in asdict(self).items()}
