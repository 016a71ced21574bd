from __future__ import annotations

import io
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from apps.accounts.models import ApiToken, Membership, Workspace
from apps.accounts.services import token_digest
from apps.core.clock import now

pytestmark = pytest.mark.django_db


def run(*words: str) -> tuple[str, str]:
    out, err = io.StringIO(), io.StringIO()
    call_command(*words, stdout=out, stderr=err, no_color=True)
    return out.getvalue(), err.getvalue()


def test_member_add_prints_the_password_alone() -> None:
    out, err = run("member", "add", "erin", "--role", "reviewer")
    assert err == ""
    assert out.count("\n") == 1
    assert User.objects.get(username="erin").check_password(out.strip())
    assert Membership.objects.get(user__username="erin", workspace__slug="firm").role == "reviewer"


def test_member_add_for_somebody_who_exists_prints_nothing_on_standard_output() -> None:
    password = run("member", "add", "erin", "--role", "member")[0].strip()
    out, err = run("member", "add", "erin", "--role", "curator")
    assert out == ""
    assert "now curator in firm" in err
    assert User.objects.get(username="erin").check_password(password)


def test_a_workspace_and_its_people() -> None:
    assert run("workspace", "add", "second")[0] == "second\n"
    assert Workspace.objects.get(slug="second").memory_types.exists()
    run("member", "add", "erin", "--role", "admin", "--workspace", "second")
    assert run("member", "list", "--workspace", "second")[0] == "erin\tadmin\n"
    assert run("member", "list")[0] == ""
    run("member", "remove", "erin", "--workspace", "second")
    assert run("member", "list", "--workspace", "second")[0] == ""


@pytest.mark.parametrize("kind", ["agent", "bot"])
def test_token_create_prints_the_token_alone(kind: str) -> None:
    out, err = run("token", "create", "x", "--kind", kind)
    assert err == ""
    assert out.startswith(f"fm_{kind}_") and out.count("\n") == 1
    assert ApiToken.objects.get(digest=token_digest(out.strip())).owner is None


def test_token_create_with_everything() -> None:
    run("member", "add", "erin", "--role", "reviewer")
    out, err = run(
        *("token", "create", "x", "--kind", "reviewer", "--user", "erin", "--read-only", "--expires", "7"),
        *("--ceiling", "0.4", "--repo", "acme/pay", "--repo", "acme/web", "--repo", "acme/pay"),
    )
    token = ApiToken.objects.get(digest=token_digest(out.strip()))
    assert (token.owner.get_username(), token.read_only, token.confidence_ceiling) == ("erin", True, 0.4)
    assert timedelta(days=6.9) < token.expires_at - now() < timedelta(days=7.1)
    assert len(token.repository_ids) == 2
    assert "acme/pay was not known" in err


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ("member add erin", "--role"),
        ("member add erin --role owner", "--role"),
        ("member add erin --role member --workspace nothing", "no workspace named nothing"),
        ("member remove erin", "nobody named erin"),
        ("member", "action"),
        ("workspace add firm", "exists already"),
        ("workspace add a/b", "a/b"),
        ("token create x", "--kind"),
        ("token create x --kind admin", "--kind"),
        ("token create x --kind reviewer", "reviewer"),
        ("token create x --kind reviewer --user erin", "manage.py member add erin"),
        ("token create x --kind agent --expires 0", "days"),
        ("token create x --kind agent --expires soon", "days"),
        ("token create x --kind agent --expires 99999", "3650"),
        ("token create x --kind agent --ceiling 2", "--ceiling: 2.0 is out of range"),
        ("token create x --kind reviewer", "--user: A token of kind reviewer acts for a person"),
        ("token create x --kind agent --ceiling much", "--ceiling"),
        ("token create x --kind agent --workspace nothing", "nothing"),
        ("token revoke x", "no token named x"),
    ],
)
def test_what_will_not_do_is_said_in_a_sentence(words: str, part: str) -> None:
    with pytest.raises(CommandError) as refused:
        run(*words.split())
    assert part in str(refused.value)
    assert not ApiToken.objects.exists()


def test_a_taken_name_is_refused() -> None:
    run("token", "create", "x", "--kind", "agent")
    with pytest.raises(CommandError, match="exists already"):
        run("token", "create", "x", "--kind", "bot")


def test_tokens_are_listed_without_their_secrets_and_revoked() -> None:
    secret = run("token", "create", "x", "--kind", "agent")[0].strip()
    listed = run("token", "list")[0]
    assert listed.startswith("x\tagent\t-\tfm_agent_")
    assert secret not in listed and listed.strip().endswith("active")
    run("token", "revoke", "x")
    assert "revoked" in run("token", "list")[0]
