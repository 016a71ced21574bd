from __future__ import annotations

import re
import threading
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connections

from apps.accounts.audit import audit_record
from apps.accounts.models import ApiToken, AuditEvent, Membership, Role, TokenKind, Workspace
from apps.accounts.principal import operator
from apps.accounts.services import (
    first_start,
    member_add,
    member_remove,
    token_create,
    token_digest,
    token_revoke,
    workspace_add,
    workspace_set_second_person,
)
from apps.core.clock import now
from apps.core.errors import Conflict, DomainError, Forbidden, Invalid, NotFound
from tests.conftest import add_person, issue


def test_first_start_makes_somebody_who_can_do_everything_here(db) -> None:
    made = first_start()
    assert made is not None
    user = User.objects.get()
    assert user.check_password(made.password)
    assert (made.username, made.workspace) == ("reviewer", "firm")
    assert Membership.objects.get().role == Role.ADMIN
    assert not user.is_superuser
    kinds = {token.digest: (token.kind, token.owner) for token in ApiToken.objects.all()}
    assert kinds == {
        token_digest(made.bot_token): ("bot", None),
        token_digest(made.agent_token): ("agent", None),
    }


def test_first_start_happens_once(db) -> None:
    assert first_start() is not None
    assert first_start() is None
    assert (User.objects.count(), ApiToken.objects.count()) == (1, 2)


@pytest.mark.parametrize("existing", ["alice", "robo"])
def test_first_start_does_nothing_where_anybody_is(request, existing: str) -> None:
    request.getfixturevalue(existing)
    before = User.objects.count(), ApiToken.objects.count()
    assert first_start() is None
    assert (User.objects.count(), ApiToken.objects.count()) == before


@pytest.mark.django_db(transaction=True)
def test_two_first_starts_at_once_make_one_person() -> None:
    made: list[object] = []

    def start() -> None:
        try:
            made.append(first_start())
        finally:
            connections.close_all()

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 4
    assert sum(one is not None for one in made) == 1
    assert User.objects.count() == 1


def test_a_workspace_starts_with_the_taxonomy(db) -> None:
    workspace = workspace_add(slug="second")
    firm = Workspace.objects.get(slug="firm")
    assert workspace.memory_types.count() == firm.memory_types.count() > 0


@pytest.mark.parametrize("slug", ["", " ", "a b", "a/b", "ü", "a" * 101, "a\x00"])
def test_a_workspace_needs_a_name_that_works_everywhere(db, slug: str) -> None:
    with pytest.raises(Invalid) as refused:
        workspace_add(slug=slug)
    assert refused.value.errors[0].field == "slug"


def test_a_workspace_exists_once(db) -> None:
    with pytest.raises(Conflict):
        workspace_add(slug="firm")


def test_a_new_member_gets_a_password_and_an_old_one_keeps_theirs(workspace, other_workspace) -> None:
    password = member_add(principal=operator(workspace), username="erin", role="member", email="Erin@ACME.example")
    erin = User.objects.get(username="erin")
    assert password is not None and len(password) >= 20 and erin.check_password(password)
    assert erin.email == "Erin@acme.example"
    assert member_add(principal=operator(workspace), username="erin", role="curator") is None
    assert member_add(principal=operator(other_workspace), username="erin", role="reviewer") is None
    erin.refresh_from_db()
    assert erin.check_password(password)
    assert dict(erin.memberships.values_list("workspace__slug", "role")) == {"firm": "curator", "other": "reviewer"}


@pytest.mark.parametrize(
    ("username", "role", "email", "field"),
    [
        ("", "member", "", "username"),
        ("a b", "member", "", "username"),
        ("a\x00", "member", "", "username"),
        ("a\ud83d", "member", "", "username"),
        ("a" * 151, "member", "", "username"),
        ("erin", "owner", "", "role"),
        ("erin", "Member", "", "role"),
        ("erin", "member", "nonsense", "email"),
    ],
)
def test_a_member_that_will_not_do(workspace, username: str, role: str, email: str, field: str) -> None:
    with pytest.raises(Invalid) as refused:
        member_add(principal=operator(workspace), username=username, role=role, email=email)
    assert refused.value.errors[0].field == field
    assert not User.objects.exists()


def test_only_admins_manage(principal, alice, bob, carol, dave, robo, botty, alice_token) -> None:
    for who in (alice, bob, carol, robo, botty, alice_token):
        by = principal(who)
        for act in (
            lambda by=by: member_add(principal=by, username="mallory", role=Role.ADMIN),
            lambda by=by: member_remove(principal=by, user=dave),
            lambda by=by: token_create(principal=by, name="mine", kind="agent", owner=by.user),
            lambda by=by: token_revoke(principal=by, token=robo.token),
            lambda by=by: workspace_set_second_person(principal=by, required=False),
        ):
            with pytest.raises(Forbidden):
                act()
    assert not User.objects.filter(username="mallory").exists()
    assert member_add(principal=principal(dave), username="frank", role=Role.MEMBER)


def test_a_read_only_token_of_an_admin_changes_nothing(workspace, dave, principal) -> None:
    reading = issue(workspace, "reading", TokenKind.REVIEWER, owner=dave, read_only=True)
    with pytest.raises(Forbidden, match="read-only"):
        member_add(principal=principal(reading), username="mallory", role=Role.MEMBER)


def test_an_admin_makes_tokens_in_their_own_name_only(principal, dave, alice) -> None:
    by = principal(dave)
    for owner in (alice, None):
        with pytest.raises(Forbidden):
            token_create(principal=by, name="x", kind=TokenKind.AGENT, owner=owner)
    token, _ = token_create(principal=by, name="x", kind=TokenKind.AGENT, owner=dave)
    assert token.owner == dave


def test_an_admin_does_not_reach_another_workspace(principal, dave, charlie, other_workspace) -> None:
    token = issue(other_workspace, "theirs", TokenKind.AGENT)
    with pytest.raises(NotFound):
        token_revoke(principal=principal(dave), token=token.token)
    with pytest.raises(NotFound):
        member_remove(principal=principal(dave), user=charlie)
    token.token.refresh_from_db()
    assert token.token.revoked_at is None


def test_a_workspace_keeps_an_admin(workspace, principal, dave) -> None:
    by = principal(dave)
    with pytest.raises(Conflict) as refused:
        member_remove(principal=by, user=dave)
    assert refused.value.code == "last_admin"
    with pytest.raises(Conflict):
        member_add(principal=by, username="dave", role=Role.MEMBER)
    add_person(workspace, "eve", Role.ADMIN)
    member_remove(principal=by, user=dave)
    assert not Membership.objects.filter(user=dave).exists()


def test_a_secret_is_long_and_kept_nowhere(workspace, botty) -> None:
    assert re.fullmatch(r"fm_bot_[A-Za-z0-9_-]{32}", botty.secret)  # 192 bits
    kept = ApiToken.objects.filter(pk=botty.token.pk).values().get()
    assert botty.secret not in str(kept)
    assert kept["prefix"] == botty.secret[: len("fm_bot_") + 4]
    events = AuditEvent.objects.filter(subject_kind="token")
    assert events.exists()
    for event in events:
        text = str(event.before) + str(event.after)
        assert botty.secret not in text and token_digest(botty.secret) not in text


def test_revoking_twice_keeps_the_first_moment(principal, dave, robo) -> None:
    first = token_revoke(principal=principal(dave), token=robo.token).revoked_at
    assert token_revoke(principal=principal(dave), token=robo.token).revoked_at == first
    assert AuditEvent.objects.filter(verb="revoke").count() == 1


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "  "}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"name": "a\x00b"}, "name"),
        ({"name": "a\ud83d"}, "name"),
        ({"name": "a" * 101}, "name"),
        ({"kind": "admin"}, "kind"),
        ({"kind": "reviewer"}, "owner"),
        ({"confidence_ceiling": 1.1}, "confidence_ceiling"),
        ({"confidence_ceiling": -0.1}, "confidence_ceiling"),
        ({"confidence_ceiling": float("nan")}, "confidence_ceiling"),
        ({"expires_at": now() - timedelta(seconds=1)}, "expires_at"),
    ],
)
def test_a_token_that_will_not_do(workspace, options: dict, field: str) -> None:
    with pytest.raises(Invalid) as refused:
        token_create(principal=operator(workspace), **{"name": "x", "kind": "agent", **options})
    assert refused.value.errors[0].field == field
    assert not ApiToken.objects.exists()


def test_a_token_needs_a_name_of_its_own_even_after_it_is_revoked(workspace, robo) -> None:
    token_revoke(principal=operator(workspace), token=robo.token)
    with pytest.raises(Conflict) as refused:
        token_create(principal=operator(workspace), name="robo", kind="bot")
    assert refused.value.code == "token_exists"


def test_the_owner_must_be_an_active_member(workspace, charlie, bob) -> None:
    with pytest.raises(Invalid):
        token_create(principal=operator(workspace), name="x", kind="reviewer", owner=charlie)
    bob.is_active = False
    bob.save()
    with pytest.raises(Invalid):
        token_create(principal=operator(workspace), name="x", kind="agent", owner=bob)


def test_a_limit_to_a_repository_of_another_workspace_is_refused(workspace, other_workspace) -> None:
    from apps.core.problems import as_domain_error
    from apps.scopes.models import Repository

    theirs = Repository.objects.create(workspace=other_workspace, slug="theirs")
    with pytest.raises(Exception) as refused:
        token_create(principal=operator(workspace), name="x", kind="agent", repository_ids=[theirs.pk])
    error = as_domain_error(refused.value)
    assert isinstance(error, DomainError) and error.status == 422


def test_changes_are_recorded_with_what_was_before(workspace, principal, dave, bob) -> None:
    member_add(principal=principal(dave, via="admin"), username="bob", role=Role.CURATOR)
    event = AuditEvent.objects.filter(subject_kind="membership", subject_id="bob").latest("id")
    assert (event.actor, event.user, event.verb) == ("dave", dave, "change")
    assert (event.before, event.after) == ({"role": "member"}, {"role": "curator"})
    workspace_set_second_person(principal=principal(dave), required=False)
    event = AuditEvent.objects.latest("id")
    assert (event.before, event.after) == ({"second_person": True}, {"second_person": False})
    count = AuditEvent.objects.count()
    workspace_set_second_person(principal=principal(dave), required=False)
    member_add(principal=principal(dave), username="bob", role=Role.CURATOR)
    assert AuditEvent.objects.count() == count


@pytest.mark.parametrize("named", ["x" * 300, "a\x00b", "\ud83d", "👩" * 200])
def test_an_event_is_recorded_whatever_its_subject_is_called(workspace, named):
    event = audit_record(operator(workspace), "was refused", subject_kind="memory", subject_id=named)
    assert len(AuditEvent.objects.get(pk=event.pk).subject_id) <= 64
