"""Who acts in the demonstration: people and tokens of a workspace of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.contrib.auth.models import User

from apps.accounts.models import ApiToken, Role, TokenKind, Workspace
from apps.accounts.principal import Principal, operator
from apps.accounts.selectors import principal_for_user
from apps.accounts.services import member_add, token_create, workspace_add

WORKSPACE: Final = "demo"
REVIEWER: Final = "demo-reviewer"
BOT: Final = "demo-ci"
AGENT: Final = "demo-agent"


@dataclass(frozen=True, slots=True)
class Cast:
    """``password`` is the reviewer's, on the first run only."""

    workspace: Workspace
    bot: Principal
    agent: Principal
    reviewer: Principal
    password: str | None


def assemble() -> Cast:
    """The workspace and its cast, made where they are missing."""
    workspace = Workspace.objects.filter(slug=WORKSPACE).first() or workspace_add(slug=WORKSPACE)
    password = member_add(principal=operator(workspace), username=REVIEWER, role=Role.REVIEWER)
    return Cast(
        workspace=workspace,
        bot=_token(workspace, BOT, TokenKind.BOT),
        agent=_token(workspace, AGENT, TokenKind.AGENT),
        reviewer=principal_for_user(User.objects.get(username=REVIEWER), workspace, "command"),
        password=password,
    )


def _token(workspace: Workspace, name: str, kind: TokenKind) -> Principal:
    """Acts as its token does over REST. Nobody gets to know the token: nothing else has to use it."""
    token = ApiToken.objects.filter(workspace=workspace, name=name).first()
    if token is None:
        token, _ = token_create(principal=operator(workspace), name=name, kind=kind)
    return Principal(workspace=workspace, user=None, token=token, role=None, audience_ids=frozenset(), via="command")
