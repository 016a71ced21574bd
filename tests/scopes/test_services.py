"""Names become scopes: registered as they are written, matched exactly, never everything by accident."""

from __future__ import annotations

import pytest

from apps.core.errors import Invalid
from apps.scopes.models import Domain, Repository
from apps.scopes.selectors import find_repository, search_scope
from apps.scopes.services import scope_register

pytestmark = pytest.mark.django_db


def register(workspace, *, firm=False, domains=(), repos=()):
    return scope_register(workspace, firm=firm, domains=domains, repos=repos)


def test_names_not_seen_before_are_registered_unconfirmed_and_said(workspace):
    first = register(workspace, domains=["payments"], repos=["acme/pay"])
    again = register(workspace, domains=["payments"], repos=["acme/pay"])

    assert (first.new_domains, first.new_repos) == (("payments",), ("acme/pay",))
    assert (again.new_domains, again.new_repos) == ((), ())
    assert first.scope == again.scope
    assert not Domain.objects.get().confirmed
    assert not Repository.objects.get().confirmed


@pytest.mark.parametrize(
    "names", [["支払いサービス", "決済サービス"], ["a_b", "axb", "a%b"], ["A", "a"], ["100%", "100"]]
)
def test_names_are_verbatim_and_no_patterns(workspace, names):
    registered = register(workspace, domains=names, repos=names)

    assert len(registered.scope.domain_ids) == len(registered.scope.repo_ids) == len(names)
    for name in names:
        found = search_scope(workspace, domains=[name], repos=[name])
        assert (len(found.domain_ids), len(found.repo_ids), found.unknown) == (1, 1, ())
    assert search_scope(workspace, domains=["%"], repos=["_"]).unknown == ("%", "_")


def test_ids_are_sorted_and_distinct(workspace):
    registered = register(workspace, repos=["b", "a", "b", " a "])

    assert len(registered.scope.repo_ids) == 2
    assert registered.scope.repo_ids == tuple(sorted(registered.scope.repo_ids))


def test_nothing_at_all_is_not_everything(workspace):
    with pytest.raises(Invalid) as refusal:
        register(workspace)

    assert [error.field for error in refusal.value.errors] == ["scope"]


def test_two_hosts_with_one_path_are_two_repositories(workspace):
    one = register(workspace, repos=["https://github.com/acme/pay"])
    other = register(workspace, repos=["https://gitlab.example.com/acme/pay"])

    assert one.scope != other.scope
    assert set(Repository.objects.values_list("slug", flat=True)) == {"acme/pay", "gitlab.example.com/acme/pay"}
    assert find_repository(workspace, "git@gitlab.example.com:acme/pay.git").slug == "gitlab.example.com/acme/pay"


def test_a_remote_names_the_repository_that_was_written_plainly(workspace):
    plain = register(workspace, repos=["acme/pay"])

    assert register(workspace, repos=["git@github.com:acme/pay.git"]).scope == plain.scope


def test_an_alias_leads_to_its_repository(workspace):
    Repository.objects.create(workspace=workspace, slug="acme/pay", aliases=["payments-service"])

    registered = register(workspace, repos=["payments-service"])

    assert registered.new_repos == ()
    assert Repository.objects.count() == 1


def test_a_repository_brings_its_domains_to_a_search(workspace):
    domain = Domain.objects.create(workspace=workspace, slug="payments")
    repository = Repository.objects.create(workspace=workspace, slug="acme/pay", domain_ids=[domain.pk])

    found = search_scope(workspace, domains=[], repos=["acme/pay"])

    assert (found.everything, found.domain_ids, found.repo_ids) == (False, (domain.pk,), (repository.pk,))


def test_unknown_names_widen_nothing(workspace):
    found = search_scope(workspace, domains=["nowhere"], repos=["acme/nowhere"])

    assert (found.everything, found.domain_ids, found.repo_ids) == (False, (), ())
    assert found.unknown == ("nowhere", "acme/nowhere")


def test_names_belong_to_their_workspace(workspace, other_workspace):
    register(workspace, domains=["payments"], repos=["acme/pay"])

    assert search_scope(other_workspace, domains=["payments"], repos=["acme/pay"]).unknown == ("payments", "acme/pay")
    assert register(other_workspace, repos=["acme/pay"]).new_repos == ("acme/pay",)
