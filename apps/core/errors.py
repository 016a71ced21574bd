"""One error shape for every door.

A service raises a ``DomainError``; REST renders it as ``application/problem+json``, pages render the
error partial, MCP renders the same dict. The HTTP status says what kind of thing went wrong:

400 malformed or an unknown key · 401 no credentials · 403 may not · 404 not there, or another workspace's ·
409 decided, stale or conflicting · 422 a known field with a value that will not do · 429 too many ·
503 a part we depend on is down.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class FieldError:
    """What is wrong with one field, as a full sentence that says what to do."""

    field: str
    message: str

    def as_dict(self) -> dict[str, str]:
        return {"field": self.field, "message": self.message}


class DomainError(Exception):
    """Base of every refusal that a person or client should read."""

    status = 400
    code = "error"

    def __init__(
        self,
        detail: str,
        *,
        code: str | None = None,
        errors: Iterable[FieldError] = (),
        extra: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.code = code or type(self).code
        self.errors = list(errors)
        self.extra = extra or {}

    def as_dict(self) -> dict[str, Any]:
        body: dict[str, Any] = {"code": self.code, "detail": self.detail, "status": self.status}
        if self.errors:
            body["errors"] = [error.as_dict() for error in self.errors]
        if self.extra:
            body["extra"] = self.extra
        return body


class Malformed(DomainError):
    status, code = 400, "malformed"


class UnknownKeys(Malformed):
    code = "unknown_keys"
    takes_none = "No keys are taken here."

    def __init__(self, names: Iterable[str], *, allowed: Iterable[str]) -> None:
        names, known = sorted(names), ", ".join(sorted(allowed))
        super().__init__(
            f"Unknown: {', '.join(names)}. {f'Known here: {known}.' if known else self.takes_none}",
            errors=[
                FieldError(name, f"This name is not known here. {f'Known: {known}.' if known else self.takes_none}")
                for name in names
            ],
        )


class UnknownParameters(UnknownKeys):
    takes_none = "This address takes no parameters."


class NotAuthenticated(DomainError):
    status, code = 401, "not_authenticated"


class Forbidden(DomainError):
    status, code = 403, "forbidden"


class NotFound(DomainError):
    status, code = 404, "not_found"


class Conflict(DomainError):
    status, code = 409, "conflict"


class Stale(Conflict):
    """The caller decided on a version that is no longer the current one."""

    code = "stale"


class AlreadyDecided(Conflict):
    code = "already_decided"


class Invalid(DomainError):
    """A known field holds a value that will not do."""

    status, code = 422, "invalid"

    @classmethod
    def field(cls, field: str, message: str, *, code: str | None = None) -> Invalid:
        return cls(message, code=code, errors=[FieldError(field, message)])


class Excluded(Invalid):
    """Text that must not be remembered: secrets, source code, diffs, stack traces."""

    code = "excluded"


class Refusals:
    """What is wrong with one request, from several looks at it, to be said all at once."""

    def __init__(self) -> None:
        self._found: list[Invalid] = []

    def add(self, errors: Iterable[FieldError]) -> None:
        if listed := list(errors):
            self._found.append(Invalid(listed[0].message, errors=listed))

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """What the block refuses is kept for later."""
        try:
            yield
        except Invalid as refusal:
            self._found.append(refusal)

    @property
    def errors(self) -> list[FieldError]:
        return [error for refusal in self._found for error in refusal.errors]

    def raise_all(self, detail: str) -> None:
        """Raise what was found, if anything: by itself what was refused alone, else as ``Invalid`` with ``detail``.

        Text that must not be remembered outweighs the rest: whoever sent it should read that first.
        """
        if not self._found:
            return
        leading = next((refusal for refusal in self._found if isinstance(refusal, Excluded)), None)
        if leading is not None:
            raise Excluded(leading.detail, errors=self.errors, extra=leading.extra)
        if len(self._found) == 1 and self._found[0].code != Invalid.code:
            raise self._found[0]
        raise Invalid(detail, errors=self.errors)


class TooMany(DomainError):
    status, code = 429, "too_many"


class Unavailable(DomainError):
    status, code = 503, "unavailable"
