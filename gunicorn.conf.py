"""How the web serves: threads for requests that wait on PostgreSQL, and no preloading.

The embedding model runs in threads of its own, which do not survive a fork: every worker loads it after its
fork, before it takes its first request, so that no request pays for it.
"""

from __future__ import annotations

import gc
import logging
import os
import socket
import struct
import sys
import threading
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import environ
from gunicorn.http import message

# Started by its script and not by `python -m`, gunicorn does not look here before it has read this file.
_root = Path(__file__).resolve().parent
sys.path.insert(0, str(_root))

from apps.core.environment import Environment, listening, web_processes  # noqa: E402

if TYPE_CHECKING:
    from gunicorn.arbiter import Arbiter
    from gunicorn.workers.base import Worker

_env = environ.Env()
if _file := os.environ.get("FIRM_MEMORY_ENV_FILE", str(_root / ".env")):
    _env.read_env(_file)

_environment = Environment(os.environ)
_host, _port = listening(_environment)
bind = f"{f'[{_host}]' if ':' in _host else _host}:{_port}"
worker_class = "gthread"
workers, threads = web_processes(_environment)
if _environment.problems:
    sys.exit("\n".join(_environment.problems))  # gunicorn makes a traceback of any other exception
preload_app = False
timeout = 60
graceful_timeout = 8
keepalive = 5
# A question of 8,000 characters is up to 96,000 bytes of a request line once it is percent-encoded, and between
# 8,190 and no limit at all gunicorn offers nothing. Its upper bound is raised, not lifted.
message.MAX_REQUEST_LINE = 128 * 1024
limit_request_line = message.MAX_REQUEST_LINE - 1
loglevel = "warning"
# It would write into the home directory of whoever runs this.
control_socket_disable = True

# Where the web processes keep their counts, so that each of them can answer /metrics for all.
counts = Path(_env.str("FIRM_MEMORY_DATA_DIR", default=str(_root / ".data"))).resolve() / "metrics"

# For how long a client may send nothing in the middle of a request, or take nothing of an answer. A thread is its own
# until then; gunicorn itself bounds only what comes before the first byte and between requests.
SILENT_CLIENT_SECONDS = 15

# What is loaded holds the interpreter for tenths of a second at a time, and each request that came meanwhile would wait
# for all of it. What takes longer than this goes on beside the requests.
LOADING_SECONDS = 15

# An exit code that gunicorn takes for final: it ends instead of trying the same again at once.
BOOT_ERROR = 3

logger = logging.getLogger("firmmemory.web")


def on_starting(server: Arbiter) -> None:
    """Before the first worker: start with empty counts, as any process that starts does."""
    try:
        counts.mkdir(parents=True, exist_ok=True)
        for old in counts.glob("*.db"):
            old.unlink()
    except OSError as error:
        os.environ.pop("PROMETHEUS_MULTIPROC_DIR", None)
        server.log.warning("%s cannot be used (%s), so each web process counts for itself.", counts, error.strerror)
    else:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(counts)


def when_ready(server: Arbiter) -> None:
    """What is accepted takes these over from what listens."""
    limit = struct.pack("ll", SILENT_CLIENT_SECONDS, 0)
    for listener in server.LISTENERS:
        for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
            listener.sock.setsockopt(socket.SOL_SOCKET, option, limit)


def post_worker_init(worker: Worker) -> None:
    from django.db import connections

    from apps.core.database import DatabaseDown
    from apps.core.errors import DomainError
    from apps.core.startup import run_startup_checks

    try:
        run_startup_checks()
    except DatabaseDown as error:
        # It may come back, and until then the web says so (503) better than a refused connection does.
        logger.warning("%s Serving anyway.", error.detail)
    except DomainError as error:
        logger.critical("%s", error.detail)
        raise SystemExit(BOOT_ERROR) from None
    finally:
        connections.close_all()
    # No daemon: one that is inside the model's C++ when the interpreter ends takes the process down with it.
    loading = threading.Thread(target=load, name="warm-up")
    loading.start()
    loading.join(LOADING_SECONDS)


def load() -> None:
    """What requests need, once. The collector then leaves it alone: to look through all of it took every thread a
    seventh of a second, again and again."""
    from django.urls import get_resolver

    get_resolver().url_patterns  # noqa: B018 - imports the views
    import_module("apps.agents.http")
    warm_up()
    gc.collect()
    gc.freeze()


def warm_up() -> None:
    from apps.memories.providers import registry

    try:
        registry.warm_up()
    except Exception:
        # The first search tries again, and its answer says what is missing.
        logger.exception("The provider cannot be warmed up.")
