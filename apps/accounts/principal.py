"""Who is asking. Every service and selector takes a ``Principal``; trust comes from it and never from text."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from apps.accounts.models import ApiToken, Role, TokenKind, Workspace
from apps.core.errors import Forbidden

if TYPE_CHECKING:
    from django.contrib.auth.models import User


@dataclass(frozen=True, slots=True)
class Principal:
    """An authenticated person or token in one workspace.

    ``user`` and ``role`` are a person's, who comes by session or by a reviewer token. Tokens of kind agent and
    bot have neither, whoever owns them.
    ``via`` names the door: ``rest``, ``ui``, ``admin``, ``mcp``, ``command``, ``import``, ``capture`` or ``python``.
    """

    workspace: Workspace
    user: User | None
    token: ApiToken | None
    role: Role | None
    audience_ids: frozenset[int]
    via: str
    request_id: str = ""
    lent_read_only: bool = False  # the token may write, and whoever it was lent to may not

    @property
    def key(self) -> str:
        """Stable name of the origin: ``token:7`` or ``user:3``."""
        if self.token is not None:
            return f"token:{self.token.pk}"
        return f"user:{self.user.pk}" if self.user is not None else self.name

    @property
    def is_operator(self) -> bool:
        """Whoever can run commands on the server: may manage people and tokens, and decides nothing."""
        return self.user is None and self.token is None and self.via == "command"

    @property
    def kind(self) -> str:
        return self.token.kind if self.token is not None else "person"

    @property
    def name(self) -> str:
        """The name to show and to keep as text: the person's, else the token's."""
        if self.user is not None:
            return self.user.get_username()
        if self.token is not None:
            return self.token.name
        return "operator" if self.is_operator else "nobody"

    @property
    def read_only(self) -> bool:
        return self.lent_read_only or (self.token is not None and self.token.read_only)

    @property
    def repository_limit(self) -> tuple[int, ...]:
        """Ids of the repositories that the token is limited to; empty when it is not limited."""
        return tuple(self.token.repository_ids) if self.token is not None else ()

    @property
    def confidence_ceiling(self) -> float:
        return self.token.confidence_ceiling if self.token is not None else 1.0

    def has_role(self, role: Role) -> bool:
        return self.role is not None and self.role.rank >= role.rank

    @property
    def can_review(self) -> bool:
        return self.has_role(Role.REVIEWER)

    def require_role(self, role: Role, *, to: str) -> None:
        """For a change: raise ``Forbidden`` unless the principal has at least ``role`` and may write.

        ``to`` completes "Only a person with the … role may …".
        """
        self.require_write()
        self.require_reading_role(role, to=to)

    def require_reading_role(self, role: Role, *, to: str) -> None:
        """For a look: the same, and a read-only token will do."""
        if self.has_role(role):
            return
        if self.kind in (TokenKind.AGENT, TokenKind.BOT):
            raise Forbidden(f"A token of kind {self.kind} may not {to}; a person with the {role} role does that.")
        raise Forbidden(f"Only a person with the {role} role may {to}. An admin can give you that role.")

    def require_write(self) -> None:
        if self.read_only:
            raise Forbidden("This token is read-only.")

    def through(self, via: str) -> Principal:
        return replace(self, via=via)


def operator(workspace: Workspace) -> Principal:
    """The principal of a management command."""
    return Principal(workspace=workspace, user=None, token=None, role=None, audience_ids=frozenset(), via="command")
