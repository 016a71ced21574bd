"""The repositories that a token is limited to, as an operator types them."""

from __future__ import annotations

import io

import pytest
from django.core.management import CommandError, call_command

from apps.accounts.models import ApiToken
from apps.scopes.models import Repository
from apps.scopes.services import scope_register

pytestmark = pytest.mark.django_db


def create(*repos: str) -> tuple[list[str], str]:
    """The slugs that a token made like that is limited to, and what was said."""
    out, err = io.StringIO(), io.StringIO()
    options = [word for repo in repos for word in ("--repo", repo)]
    call_command("token", "create", "x", "--kind", "agent", *options, stdout=out, stderr=err, no_color=True)
    limit = ApiToken.objects.get(name="x").repository_ids
    return sorted(Repository.objects.filter(pk__in=limit).values_list("slug", flat=True)), err.getvalue()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("x y", "“x y” is not known in firm"),
        ("acme/pay acme/web", "Name each repository by itself."),
        ("acme/pay,acme/web", "Name each repository by itself."),
        ("acme/pay; acme/web", "Name each repository by itself."),
        ("acme/pay\tacme/web", "Name each repository by itself."),
        ("acme/pay\u00a0acme/web", "Name each repository by itself."),
        ("https://git.example.com/acme/pay https://git.example.com/acme/web", "Name each repository by itself."),
        ("", "This is blank."),
        ("  ", "This is blank."),
        ("\u200b", "This is blank."),
        ("acme/pay\nacme/web", "a line break"),
        ("acme/p\x00ay", "a NUL character"),
        ("acme/\x1b[31mpay", "a control character"),
        ("acme/\ud800", "half of a surrogate pair"),
        ("a" * 201, "at most 200 characters"),
        (f"https://git.example.com/{'a' * 600}", "at most 500 characters"),
        ("ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a", "There is a secret (github token)"),
    ],
    ids=repr,
)
def test_what_names_no_single_repository_is_refused_and_nothing_is_made(workspace, name, said) -> None:
    with pytest.raises(CommandError) as refused:
        create("acme/ok", name)
    assert str(refused.value).startswith("--repo: ")
    assert said in str(refused.value)
    assert "16C7e42F292c6912E7710c838347Ae178B4a" not in str(refused.value)
    assert not ApiToken.objects.exists()
    assert not Repository.objects.exists()


def test_a_token_that_is_refused_registers_no_repository(workspace) -> None:
    create("acme/pay")
    with pytest.raises(CommandError, match="exists already"):
        create("acme/web")
    assert list(Repository.objects.values_list("slug", flat=True)) == ["acme/pay"]


@pytest.mark.parametrize(
    "name",
    ["acme/pay", " acme/pay ", "payments", "git@git.example.com:Acme/Pay.git", "https://git.example.com/acme/pay"],
)
def test_every_name_of_a_repository_limits_to_it(workspace, name) -> None:
    Repository.objects.create(
        workspace=workspace, slug="acme/pay", remote="git.example.com/acme/pay", aliases=["payments"]
    )

    assert create(name, name) == (["acme/pay"], "")
    assert Repository.objects.count() == 1


@pytest.mark.parametrize("name", ["acme/new", "a&b", "50%_off", "支払い", "acme/new.git"])
def test_a_name_that_was_never_heard_of_is_registered_as_it_is_written(workspace, name) -> None:
    slugs, said = create(name)

    assert slugs == [name]
    assert f"The repository {name} was not known and is now registered, unconfirmed." in said
    assert not Repository.objects.get().confirmed


def test_a_remote_that_was_never_heard_of_is_registered_by_its_path(workspace) -> None:
    slugs, said = create("git@git.example.com:acme/new.git", "https://git.example.com/acme/my%20app")

    assert slugs == ["acme/my app", "acme/new"]
    assert "acme/new was not known" in said
    assert Repository.objects.get(slug="acme/new").remote == "git.example.com/acme/new"


@pytest.mark.parametrize("name", ["a b", "a,b"])
def test_a_name_that_a_proposal_registered_does_whatever_is_in_it(workspace, name) -> None:
    scope_register(workspace, firm=False, domains=[], repos=[name])

    assert create(name) == ([name], "")
