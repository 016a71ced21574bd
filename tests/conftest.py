"""The fixed cast of every test.

In workspace `firm`: alice reviews, bob is a member, carol curates, dave is an admin; robo is an agent's token,
botty a bot's, alice_token alice's own. In workspace `other`: charlie reviews.

``principal(alice)`` is what services take, ``api(robo)`` a REST client, ``browser(alice)`` a signed-in one.
"""

from __future__ import annotations

import gc
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.test import Client

from apps.accounts.models import ApiToken, Role, TokenKind, Workspace
from apps.accounts.principal import Principal, operator
from apps.accounts.selectors import memberships_of, principal_for_token, principal_for_user
from apps.accounts.services import member_add, token_create, workspace_add
from apps.core import embedded_postgres
from apps.core.embedded_postgres import EmbeddedPostgres
from apps.memories.models import Memory
from apps.memories.providers import registry
from apps.memories.providers.mem0.provider import Mem0Provider
from tests import ledger
from tests.memories.providers.doubles import HashingEmbedder


def pytest_collection_finish() -> None:
    """Modules and collected tests stay to the end, and garbage is looked for among what comes and goes alone."""
    gc.collect()
    gc.freeze()


@dataclass(frozen=True)
class Issued:
    """A token with its secret."""

    token: ApiToken
    secret: str


class ApiClient(Client):
    """Sends and reads JSON; a dict as data becomes the body."""

    def post(self, path: str, data: Any = None, **options: Any) -> Any:
        return self._with_body("post", path, data, options)

    def put(self, path: str, data: Any = None, **options: Any) -> Any:
        return self._with_body("put", path, data, options)

    def patch(self, path: str, data: Any = None, **options: Any) -> Any:
        return self._with_body("patch", path, data, options)

    def delete(self, path: str, data: Any = None, **options: Any) -> Any:
        return self._with_body("delete", path, data, options)

    def _with_body(self, method: str, path: str, data: Any, options: dict[str, Any]) -> Any:
        options.setdefault("content_type", "application/json")
        body = data if isinstance(data, str | bytes) else "" if data is None else json.dumps(data)
        return getattr(super(), method)(path, data=body, **options)


@pytest.fixture
def workspace(db: None) -> Workspace:
    return Workspace.objects.get(slug="firm")


@pytest.fixture
def other_workspace(db: None) -> Workspace:
    return workspace_add(slug="other")


def add_person(workspace: Workspace, name: str, role: Role) -> User:
    member_add(principal=operator(workspace), username=name, role=role)
    return User.objects.get(username=name)


def issue(workspace: Workspace, name: str, kind: TokenKind, *, owner: User | None = None, **options: Any) -> Issued:
    return Issued(*token_create(principal=operator(workspace), name=name, kind=kind, owner=owner, **options))


@pytest.fixture
def alice(workspace: Workspace) -> User:
    return add_person(workspace, "alice", Role.REVIEWER)


@pytest.fixture
def bob(workspace: Workspace) -> User:
    return add_person(workspace, "bob", Role.MEMBER)


@pytest.fixture
def carol(workspace: Workspace) -> User:
    return add_person(workspace, "carol", Role.CURATOR)


@pytest.fixture
def dave(workspace: Workspace) -> User:
    return add_person(workspace, "dave", Role.ADMIN)


@pytest.fixture
def charlie(other_workspace: Workspace) -> User:
    return add_person(other_workspace, "charlie", Role.REVIEWER)


@pytest.fixture
def robo(workspace: Workspace) -> Issued:
    return issue(workspace, "robo", TokenKind.AGENT)


@pytest.fixture
def botty(workspace: Workspace) -> Issued:
    return issue(workspace, "botty", TokenKind.BOT)


@pytest.fixture
def alice_token(workspace: Workspace, alice: User) -> Issued:
    return issue(workspace, "alice-token", TokenKind.REVIEWER, owner=alice)


@pytest.fixture
def principal() -> Callable[..., Principal]:
    """``principal(who, via="rest")``: of a person (in their first workspace unless told) or of a token."""

    def make(who: User | Issued, *, via: str = "rest", workspace: Workspace | None = None) -> Principal:
        if isinstance(who, Issued):
            return principal_for_token(who.secret, via)
        return principal_for_user(who, workspace or memberships_of(who)[0].workspace, via)

    return make


@pytest.fixture
def api() -> Callable[..., ApiClient]:
    """``api(who)``: a REST client with a bearer token; a person gets a reviewer token. ``api()`` is nobody."""

    def make(who: User | Issued | None = None, **options: Any) -> ApiClient:
        if isinstance(who, User):
            workspace = memberships_of(who)[0].workspace
            count = ApiToken.objects.filter(owner=who).count()
            who = issue(workspace, f"{who.username} {count}", TokenKind.REVIEWER, owner=who)
        headers = {"Authorization": f"Bearer {who.secret}"} if who else {}
        return ApiClient(headers=headers, **options)

    return make


@pytest.fixture
def browser() -> Callable[..., Client]:
    """``browser(alice)``: a signed-in browser. With ``enforce_csrf_checks=True`` it must send the token."""

    def make(who: User | None = None, **options: Any) -> Client:
        client = Client(**options)
        if who is not None:
            client.force_login(who, backend="django.contrib.auth.backends.ModelBackend")
        return client

    return make


@pytest.fixture
def bot(botty: Issued) -> Principal:
    return ledger.of_token(botty.token)


@pytest.fixture
def reviewer(alice: User) -> Principal:
    return ledger.of_person(alice)


@pytest.fixture
def remember(bot: Principal, reviewer: Principal) -> Callable[..., Memory]:
    """Makes memories by way of the gate: proposed by a bot, approved by a reviewer."""

    def make(content: str | None = None, **changes: Any) -> Memory:
        return ledger.remember(bot, reviewer, content, **changes)

    return make


@pytest.fixture
def embedder() -> HashingEmbedder:
    """Quick, passes for the model that the first pool is made for, and counts what it is asked."""
    return HashingEmbedder(name="local", dimensions=384)


@pytest.fixture
def pool(embedder: HashingEmbedder) -> Iterator[Mem0Provider]:
    """The real pool on Django's own connection, with the quick embedder."""
    with registry.override(Mem0Provider(embedder)) as provider:
        assert isinstance(provider, Mem0Provider)
        yield provider


@pytest.fixture
def own_postgres() -> Iterator[EmbeddedPostgres]:
    """A PostgreSQL of one test's own, which it may kill; not migrated yet."""
    folder = Path(tempfile.mkdtemp(prefix="firm-memory-"))
    folder.chmod(0o711)
    base = folder / ".data"
    embedded_postgres.ensure_running(base, say=lambda _: None)
    yield EmbeddedPostgres(base, say=lambda _: None)
    EmbeddedPostgres(base).stop()
    shutil.rmtree((base / "postgres").resolve(), ignore_errors=True)
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings: None) -> None:
    """Comes before the migrations, whose states are most of the garbage of a run."""
    gc.disable()


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """Threads and processes that tests gave up on may still be connected, and then the database cannot be dropped."""
    pytest_collection_finish()
    gc.enable()
    yield
    with django_db_blocker.unblock(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    connection.close()


@pytest.fixture(scope="module")
def module_transaction(django_db_setup: None, django_db_blocker: Any) -> Iterator[Callable[[], Any]]:
    """A transaction around all tests of a module, for rows that are slow to make.

    They are made under ``with module_transaction():``, once. What a test changes is undone, since its own transaction
    is a savepoint in this one; so a module that uses it has no tests that commit.
    """
    with ExitStack() as stack:
        with django_db_blocker.unblock():
            stack.enter_context(transaction.atomic())
        yield django_db_blocker.unblock
        with django_db_blocker.unblock():
            transaction.set_rollback(True)
            stack.close()


@pytest.fixture(autouse=True)
def _empty_pool_after_flush(request: pytest.FixtureRequest, django_db_blocker: Any) -> Iterator[None]:
    """What a transactional test commits is flushed table by table, and the pool's tables belong to no model."""
    yield
    marker = request.node.get_closest_marker("django_db")
    transactional = {"transactional_db", "live_server"} & set(request.fixturenames)
    if transactional or (marker is not None and marker.kwargs.get("transaction")):
        with django_db_blocker.unblock(), connection.cursor() as cursor:
            cursor.execute("SELECT tablename FROM pg_tables WHERE tablename ~ '^fm_(pool|notes)_g[0-9]+$'")
            for (table,) in cursor.fetchall():
                cursor.execute(f"TRUNCATE {table}")
