"""Probes. ``/healthz``: this process lives. ``/readyz``: what it depends on answers.

Rooms add their parts by ``register_check`` in ``ready()``. A check returns a short sentence, or raises: a
``DomainError`` whose detail is shown, anything else by its class alone, since the page is open to all.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import asdict, dataclass

from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, JsonResponse

from apps.core.errors import DomainError, Unavailable

logger = logging.getLogger("firm_memory.health")

Check = Callable[[], str]


@dataclass(frozen=True, slots=True)
class Part:
    name: str
    ok: bool
    required: bool
    detail: str


@dataclass(frozen=True, slots=True)
class _Registered:
    check: Check
    required: bool
    needs_database: bool


_checks: dict[str, _Registered] = {}
_migrations_applied = False


def register_check(name: str, check: Check, *, required: bool = True, needs_database: bool = True) -> None:
    """``required=False``: its failure is shown, and this process still takes requests (reads degrade)."""
    _checks[name] = _Registered(check, required, needs_database)


def look() -> list[Part]:
    database = _run("database", _Registered(_database, required=True, needs_database=False))
    parts = [database]
    for name, registered in _checks.items():
        if registered.needs_database and not database.ok:
            parts.append(Part(name, False, registered.required, "Not looked at: the database is down."))
        else:
            parts.append(_run(name, registered))
    return parts


def _run(name: str, registered: _Registered) -> Part:
    try:
        return Part(name, True, registered.required, registered.check())
    except DomainError as error:
        return Part(name, False, registered.required, error.detail)
    except Exception as error:
        # A probe must answer whatever a part does; the log has the traceback.
        logger.warning("readiness of %s", name, exc_info=error)
        return Part(name, False, registered.required, f"Failed: {type(error).__name__}.")


def _database() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return "Answers."


def _migrations() -> str:
    # Reading the migrations from disk takes a while; once all are applied they stay so for this process's code.
    global _migrations_applied
    if not _migrations_applied:
        executor = MigrationExecutor(connection)
        pending = executor.migration_plan(executor.loader.graph.leaf_nodes())
        if pending:
            raise Unavailable(f"{len(pending)} migrations wait. Run manage.py migrate.", code="migrations_pending")
        _migrations_applied = True
    return "All applied."


register_check("migrations", _migrations)


def healthz(request: HttpRequest) -> HttpResponse:
    return _probe(request) or HttpResponse("ok\n", content_type="text/plain", headers=_HEADERS)


def readyz(request: HttpRequest) -> HttpResponse:
    if refusal := _probe(request):
        return refusal
    parts = look()
    ready = all(part.ok for part in parts if part.required)
    body = {"ready": ready, "parts": {part.name: _without_name(part) for part in parts}}
    return JsonResponse(body, status=200 if ready else 503, headers=_HEADERS)


_HEADERS = {"Cache-Control": "no-store"}
VIEWS: dict[str, Callable[[HttpRequest], HttpResponse]] = {"/healthz": healthz, "/readyz": readyz}


def register_probe(path: str, view: Callable[[HttpRequest], HttpResponse]) -> None:
    """Answer ``path`` before any check of hosts, redirect to https, session or cookie; the view says who may look."""
    VIEWS[path] = view


def _probe(request: HttpRequest) -> HttpResponse | None:
    return None if request.method in ("GET", "HEAD") else HttpResponseNotAllowed(["GET", "HEAD"])


def _without_name(part: Part) -> dict[str, object]:
    return {key: value for key, value in asdict(part).items() if key != "name"}
