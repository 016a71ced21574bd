"""``Idempotency-Key``: a client that did not hear the answer asks again and gets the same one.

The key is kept in the transaction of the effect: after a crash both are there or neither is. Of two requests
with one key at the same moment the second waits for the first and then repeats its answer.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from django.conf import settings
from django.db import OperationalError, connection, transaction
from django.db.models import Q
from psycopg.pq import TransactionStatus
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.accounts.authentication import principal_of
from apps.accounts.models import IdempotencyKey
from apps.accounts.principal import Principal
from apps.core import problems
from apps.core.clock import now
from apps.core.errors import Conflict, Invalid

HEADER = "Idempotency-Key"
REPLAYED = "Idempotent-Replay"
MAX_KEY_LENGTH = 200
KEPT_FOR = timedelta(hours=24)
CLEANED_AT_ONCE = 50

_KEY = re.compile(rf"[\x21-\x7e]{{1,{MAX_KEY_LENGTH}}}")
_LOCK_TIMEOUT = "55P03"

P = ParamSpec("P")
V = TypeVar("V", bound=APIView)
Handler = Callable[Concatenate[V, Request, P], Response]


def idempotent(handler: Handler[V, P]) -> Handler[V, P]:
    """Have a POST handler obey ``Idempotency-Key``. It runs in one transaction, so it must not be slow.

    A handler with a slow part, such as an embedding, calls ``earlier_answer`` first, then does the slow part,
    and puts the rest into ``once``.
    """

    @wraps(handler)
    def guarded(view: V, request: Request, *args: P.args, **kwargs: P.kwargs) -> Response:
        return earlier_answer(request) or once(request, lambda: handler(view, request, *args, **kwargs))

    return guarded


def earlier_answer(request: Request) -> Response | None:
    """The answer that this key got before, if any; ``Invalid`` for a key that was used for something else."""
    claim = _Claim.of(request)
    row = claim.row() if claim else None
    return claim.replay(row) if claim and row else None


def once(request: Request, effect: Callable[[], Response]) -> Response:
    """Run ``effect`` unless this key has an answer already; keep what it answers, refusals included.

    What may go away by itself is not kept: 429 and 5xx.
    """
    claim = _Claim.of(request)
    if claim is None:
        return effect()
    with transaction.atomic():
        if not claim.take():
            row = claim.row()
            if row is None:  # pragma: no cover - the other one's key expired in this very moment
                raise _in_progress()
            return claim.replay(row)
        try:
            response = effect()
        except Exception as error:
            refusal = problems.as_domain_error(error)
            if refusal is None or connection.needs_rollback or _aborted():
                raise
            response = Response(
                problems.problem(refusal, instance=request.path),
                status=refusal.status,
                headers=problems.problem_headers(refusal),
                content_type=problems.MEDIA_TYPE,
            )
        claim.keep(response)
    return response


class _Claim:
    """One principal's use of one key for one request."""

    def __init__(self, principal: Principal, key: str, request: Request) -> None:
        self.workspace = principal.workspace
        self.principal = principal.key
        self.key = _hash(key)  # a client's own words, and nobody needs to read them again
        self.request = _fitting(f"{request.method} {request.get_full_path()}")
        self.body_hash = _hash(json.dumps(request.data, sort_keys=True, separators=(",", ":")))

    @classmethod
    def of(cls, request: Request) -> _Claim | None:
        key = request.headers.get(HEADER)
        if key is None:
            return None
        if not _KEY.fullmatch(key):
            raise Invalid.field(
                HEADER, f"Use 1 to {MAX_KEY_LENGTH} visible ASCII characters without spaces, such as a UUID."
            )
        return cls(principal_of(request), key, request)

    def take(self) -> bool:
        """True for the first request with this key. Waits for one that is in progress."""
        _forget_expired(self._mine())
        with connection.cursor() as cursor:
            patience = str(settings.FIRM_MEMORY_IDEMPOTENCY_WAIT_MS)
            cursor.execute("SELECT current_setting('lock_timeout'), set_config('lock_timeout', %s, true)", [patience])
            before = cursor.fetchone()[0]
            try:
                with transaction.atomic():
                    cursor.execute(
                        "INSERT INTO accounts_idempotencykey"
                        " (workspace_id, principal, key, request, body_hash) VALUES (%s, %s, %s, %s, %s)"
                        " ON CONFLICT (workspace_id, principal, key) DO NOTHING",
                        [self.workspace.pk, self.principal, self.key, self.request, self.body_hash],
                    )
                    taken = bool(cursor.rowcount)
            except OperationalError as error:
                if getattr(error.__cause__, "sqlstate", None) == _LOCK_TIMEOUT:
                    raise _in_progress() from None
                raise
            cursor.execute("SELECT set_config('lock_timeout', %s, true)", [before])
        return taken

    def row(self) -> IdempotencyKey | None:
        fresh = Q(created_at__gte=now() - KEPT_FOR)
        return IdempotencyKey.objects.filter(self._mine(), fresh, status__isnull=False).first()

    def replay(self, row: IdempotencyKey) -> Response:
        if (row.request, row.body_hash) != (self.request, self.body_hash):
            raise Invalid.field(
                HEADER,
                "This key was used for another request. Use a new key for everything that is not a repetition.",
                code="idempotency_key_reused",
            )
        status = row.status or 200
        problem = status >= 400
        return Response(
            row.response,
            status=status,
            headers={REPLAYED: "true"},
            content_type=problems.MEDIA_TYPE if problem else None,
        )

    def keep(self, response: Response) -> None:
        mine = IdempotencyKey.objects.filter(self._mine())
        if response.status_code == 429 or response.status_code >= 500:
            mine.delete()
        else:
            body = json.loads(JSONRenderer().render(response.data) or b"null")
            mine.update(status=response.status_code, response=body)

    def _mine(self) -> Q:
        return Q(workspace=self.workspace, principal=self.principal, key=self.key)


def _aborted() -> bool:
    """PostgreSQL refused a statement of this transaction: nothing in it can be kept any more."""
    return connection.connection.info.transaction_status == TransactionStatus.INERROR


def _forget_expired(mine: Q) -> None:
    """At every use a few old keys go, so that they never pile up and nobody has to clean."""
    expired = Q(created_at__lt=now() - KEPT_FOR)
    some = IdempotencyKey.objects.filter(expired).order_by("created_at").values("pk")[:CLEANED_AT_ONCE]
    locked = some.select_for_update(skip_locked=True)
    IdempotencyKey.objects.filter(Q(pk__in=locked) | (mine & expired)).delete()


def _in_progress() -> Conflict:
    return Conflict(
        "A request with this Idempotency-Key is still in progress. Ask again in a moment.",
        code="idempotency_in_progress",
    )


def _fitting(text: str, *, length: int = 300) -> str:
    text = text.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= length else f"{text[: length - 65]}#{_hash(text)}"


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
