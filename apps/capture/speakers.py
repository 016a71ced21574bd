"""Who speaks in some material."""

from __future__ import annotations

from typing import Final

from apps.capture.splitting import SPEAKER, speaker_of
from apps.core.screening.people import People

# Speakers are looked for in so much of the material.
_HEARD: Final = 200_000


def people_in(material: str) -> People:
    """Who speaks in it, so that a name is known as one."""
    people = People()
    for turn in SPEAKER.finditer(material[:_HEARD]):
        people.hear(speaker_of(turn))
    return people
