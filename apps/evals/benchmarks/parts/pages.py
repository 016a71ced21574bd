"""What the pages cost that people browse by, with few rows and with many."""

from __future__ import annotations

import http.client
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore

from apps.evals.benchmarks import filling, server
from apps.evals.benchmarks.dataset import REVIEWER
from apps.evals.benchmarks.measuring import Ratio, Times, in_turn, quantile, spread
from apps.evals.benchmarks.parts import Bench
from apps.evals.benchmarks.results import Promise, Result, Table
from apps.evals.benchmarks.web import web

FEW: Final = 100
ROUNDS: Final = 5
ASKED: Final = 20
MOST: Final = 1.5
PAGES: Final = {
    "home": "/",
    "queue": "/review/?status=pending",
    "queue of a repository": "/review/?repo=acme/service-00",
    "queue of an origin, by age": "/review/?origin=bot&age=0",
    "queue, targets not in force": "/review/?flag=target-not-in-force",
    "queue, words": "/review/?q=payments+retrying",
    "memories": "/memories/",
    "memories of a domain": "/memories/?domain=domain-0",
    "memories, words": "/memories/?q=payments+retrying&status=all",
    "audit trail": "/audit/",
    "audit trail of one person": "/audit/?actor=bench&verb=approve",
}

Asks = Callable[[str], None]


def run(bench: Bench) -> Result:
    with ExitStack() as open_, _filled(bench, FEW) as few, _filled(bench, bench.rows) as many:
        asks = {name: open_.enter_context(_browser(bench, *filled)) for name, filled in (("few", few), ("many", many))}
        table = Table(("page", f"with {FEW}", f"with {bench.rows:,}", "p95, many / few"))
        worst: list[tuple[float, str]] = []
        for name, path in PAGES.items():
            times = in_turn(asks, [path] * bench.some(ASKED), rounds=bench.rounds(ROUNDS))
            found = _tail(times["many"], times["few"])
            worst.append((found.value, name))
            table.add(name, times["few"].ms(), times["many"].ms(), found)
    value, name = max(worst)
    what = f"p95 of the page that grows most ({name}), many against few"
    return Result(
        [table],
        promises=[Promise.at_most(what, MOST, value, shown=f"{value:.2f}")],
        notes=[
            "So many memories and as many open candidates, in two databases of one server. A signed-in reviewer asks "
            "for each page over HTTP, in turn from a web process on either. Every filter admits enough of few rows to "
            "fill most of a page as well, so that looking is compared and not writing. Counts end at 500, and the "
            "pages say so. Searches by meaning are measured under “Search over HTTP”."
        ],
    )


def _tail(ours: Times, other: Times) -> Ratio:
    return spread(
        quantile(mine, 0.95) / quantile(theirs, 0.95) for mine, theirs in zip(ours.rounds, other.rounds, strict=True)
    )


@contextmanager
def _filled(bench: Bench, rows: int) -> Iterator[tuple[str, str]]:
    """A database with that many rows, made anew and dropped; answers its URL and the session of a reviewer."""
    name = f"{server.PREFIX}_pages_{rows}"
    with server.using(name, fresh=True) as url:
        bench.say(f"Making {rows:,} memories and {rows:,} open candidates.")
        filling.fill(rows)
        session = _sign_in()
    try:
        yield url, session
    finally:
        server.drop_database(name)


def _sign_in() -> str:
    person = User.objects.get(username=REVIEWER)
    session = SessionStore()
    session[SESSION_KEY] = str(person.pk)
    session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    session[HASH_SESSION_KEY] = person.get_session_auth_hash()
    session.save(must_create=True)
    return str(session.session_key)


@contextmanager
def _browser(bench: Bench, url: str, session: str) -> Iterator[Asks]:
    """Asks for a page of a web process of its own, over a connection that is kept."""
    with web(url, folder=bench.folder) as running:
        connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=60)

        def ask(path: str) -> None:
            try:
                status = _get(connection, path, session)
            except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
                connection.close()
                status = _get(connection, path, session)
            if status != 200:
                raise RuntimeError(f"{path} was answered with {status}; see {running.log}.")

        yield ask
        connection.close()


def _get(connection: http.client.HTTPConnection, path: str, session: str) -> int:
    connection.request("GET", path, headers={"Cookie": f"{settings.SESSION_COOKIE_NAME}={session}"})
    response = connection.getresponse()
    response.read()
    return response.status
