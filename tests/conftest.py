"""The suite's PostgreSQL."""

from __future__ import annotations

import contextlib
import fcntl
import os
from typing import IO

import pytest

from apps.core import embedded_postgres
from firmmemory.settings.test import TEST_DATA_DIR


def pytest_configure(config: pytest.Config) -> None:
    # Workers of xdist use the server of the process that started them.
    if not os.environ.get("DATABASE_URL") and not hasattr(config, "workerinput"):
        lease = (TEST_DATA_DIR / "users.lock").open("a")
        # Several runs may share the server at the same time; the last one to end stops it.
        fcntl.flock(lease, fcntl.LOCK_SH)
        embedded_postgres.ensure_running(TEST_DATA_DIR)
        config.add_cleanup(lambda: _give_back(lease))


def _give_back(lease: IO[str]) -> None:
    with lease, contextlib.suppress(BlockingIOError):
        fcntl.flock(lease, fcntl.LOCK_EX | fcntl.LOCK_NB)
        embedded_postgres.stop(TEST_DATA_DIR)
