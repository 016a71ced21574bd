"""How far long work is, for whoever waits in front of a terminal."""

from __future__ import annotations

import time
from collections.abc import Callable


class Progress:
    """At most one line a second: how far, how fast, how long still."""

    def __init__(self, what: str, write: Callable[[str], object]) -> None:
        self._what = what
        self._write = write
        self._started = self._shown = time.monotonic()
        self._before: int | None = None

    def show(self, done: int, total: int) -> None:
        """``done`` of ``total``; what was done before the first call does not count for the rate."""
        moment = time.monotonic()
        if self._before is None:
            self._before = done
        if done < total and moment - self._shown < 1:
            return
        self._shown = moment
        rate = (done - self._before) / max(moment - self._started, 1e-6)
        share = done / total if total else 1.0
        left = f", {duration((total - done) / rate)} left" if rate and done < total else ""
        fast = f", {rate:,.1f} a second" if rate else ""
        self._write(f"{done:,} of {total:,} {self._what} ({share:.0%}){fast}{left}")


def duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
