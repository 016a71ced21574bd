"""What can go wrong, by what the caller can do about it.

Every error is a ``FirmMemoryError``. None of them holds the token, in its text or in what it carries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final


class FirmMemoryError(Exception):
    """Base of all errors of this package; ``str()`` of it is a sentence to show."""


class Misconfigured(FirmMemoryError):
    """The address or the token will not do, before anything was sent."""


class Unreachable(FirmMemoryError):
    """No answer, none in time, or one that is none of Firm Memory's. Nothing is known about the effect of a write."""


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """What is wrong with one field. ``field`` is its full path: ``scope.repos[1]``."""

    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message


class ProblemError(FirmMemoryError):
    """The service refused, and said why.

    ``status`` is the HTTP status, ``code`` is stable and for programs, ``detail`` a sentence, ``errors`` the fields
    that will not do, ``extra`` how things stand (such as the current version), ``request_id`` what to name in a report.
    """

    def __init__(
        self,
        detail: str,
        *,
        status: int,
        code: str = "",
        errors: tuple[FieldProblem, ...] = (),
        extra: Mapping[str, Any] | None = None,
        request_id: str = "",
        retry_after: float | None = None,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.status = status
        self.code = code
        self.errors = errors
        self.extra = dict(extra or {})
        self.request_id = request_id
        self.retry_after = retry_after

    def __str__(self) -> str:
        if len(self.errors) == 1 and self.errors[0].message == self.detail:
            return str(self.errors[0])
        return "\n".join([self.detail, *(f"  {error}" for error in self.errors)])

    @property
    def fields(self) -> tuple[str, ...]:
        return tuple(error.field for error in self.errors)


class Malformed(ProblemError):
    """400, 405, 413, 415: the request cannot be read, names something unknown, or is too large."""


class NotAuthenticated(ProblemError):
    """401: the token is missing, unknown, expired or revoked."""


class NotAllowed(ProblemError):
    """403: this token may not do that."""


class NotFound(ProblemError):
    """404: it is not there, or not for this token."""


class Conflict(ProblemError):
    """409: things moved on; ``extra`` says how."""


class Invalid(ProblemError):
    """422: a value will not do; ``errors`` names each."""


class Excluded(Invalid):
    """422 for text that must not be remembered: a secret, personal data, code. Nothing was stored."""


class TooMany(ProblemError):
    """429: later; ``retry_after`` says in how many seconds."""


class ServerFault(ProblemError):
    """5xx: something that the service needs is down, or it is broken."""


_BY_STATUS: Final[Mapping[int, type[ProblemError]]] = {
    401: NotAuthenticated,
    403: NotAllowed,
    404: NotFound,
    409: Conflict,
    422: Invalid,
    429: TooMany,
}


def kind_of(status: int, code: str) -> type[ProblemError]:
    if status == 422 and code == "excluded":
        return Excluded
    if status >= 500:
        return ServerFault
    return _BY_STATUS.get(status, Malformed)


class InsecureWarning(UserWarning):
    """A token goes over the network unencrypted."""
