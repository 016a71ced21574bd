"""What somebody may be after who asks. A category weighs by it."""

from typing import Final

INTENTS: Final = ("explain-why", "history", "implement", "look-up", "ownership", "incident", "terminology")
