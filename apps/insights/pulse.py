"""A sign of life of the worker's own processes, whatever task they are at.

The heartbeat that is a task shows that tasks are scheduled, taken and done; where all processes are at long tasks it
waits behind them. This one comes from a thread beside the tasks, so that a worker that was stopped or has died is seen
within a minute, and one that is busy is not taken for it.
"""

from __future__ import annotations

import logging
import threading
from typing import Any, Final

from django.db import DatabaseError, InterfaceError, connection

from apps.core.logs import without_words
from apps.insights.services import PROCESS, heartbeat_record

BEAT_SECONDS: Final = 15.0
logger = logging.getLogger(__name__)


def begin(**_: Any) -> None:
    """In a process that has just been started to work on tasks (django-q's signal ``post_spawn``)."""
    threading.Thread(target=_beat_on, name="pulse", daemon=True).start()


def _beat_on() -> None:
    pause = threading.Event()  # nobody sets it: the thread ends with its process
    while True:
        beat()
        pause.wait(BEAT_SECONDS)


def beat() -> None:
    """Once, on a connection that is given back at once: between two beats nothing is held."""
    try:
        heartbeat_record(PROCESS)
    except (DatabaseError, InterfaceError) as error:
        # Without the database nothing can be told, and whoever looks sees that anyway.
        logger.info("The worker's sign of life was not written: %s", without_words(error))
    finally:
        connection.close()
