"""Domains and repositories in the admin."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.urls import reverse

from apps.accounts.models import AuditEvent, Role
from apps.accounts.principal import operator
from apps.accounts.services import member_add
from apps.candidates.proposal import ScopeInput
from apps.core.errors import Forbidden, NotFound
from apps.scopes.curation import domain_change, repository_add, scopes_confirm
from apps.scopes.models import Domain, Repository
from apps.scopes.selectors import find_repository, search_scope
from apps.scopes.services import scope_register
from tests import ledger

MODELS = ["domain", "repository"]
HOSTILE = "<img src=x onerror=alert(1)>"


def listing(model: str) -> str:
    return reverse(f"admin:scopes_{model}_changelist")


def changing(row) -> str:
    return reverse(f"admin:scopes_{row._meta.model_name}_change", args=[row.pk])


def adding(model: str) -> str:
    return reverse(f"admin:scopes_{model}_add")


def errors(answer) -> str:
    return " ".join(str(error) for listed in answer.context["errors"] for error in listed)


@pytest.fixture
def payments(workspace) -> Domain:
    return Domain.objects.create(workspace=workspace, slug="payments")


@pytest.fixture
def pay(workspace) -> Repository:
    return Repository.objects.create(workspace=workspace, slug="acme/pay")


@pytest.fixture
def foreign(other_workspace) -> Domain:
    return Domain.objects.create(workspace=other_workspace, slug="foreign")


def test_a_curator_confirms_what_proposals_have_named(browser, carol, workspace) -> None:
    scope_register(workspace, firm=False, domains=["a&b", "50%_off"], repos=["acme/billing-svc"])
    rows = list(Domain.objects.filter(workspace=workspace))
    answer = browser(carol).post(
        listing("domain"), {"action": "confirm", "_selected_action": [row.pk for row in rows]}, follow=True
    )
    assert "2 confirmed." in answer.content.decode()
    assert all(Domain.objects.filter(workspace=workspace).values_list("confirmed", flat=True))
    events = AuditEvent.objects.filter(subject_kind="domain", verb="change")
    assert {(event.subject_id, event.after["confirmed"]) for event in events} == {(str(row.pk), True) for row in rows}


def test_confirming_again_records_nothing(browser, carol, workspace, payments) -> None:
    values = {"action": "confirm", "_selected_action": [payments.pk]}
    browser(carol).post(listing("domain"), values)
    assert "0 confirmed." in browser(carol).post(listing("domain"), values, follow=True).content.decode()
    assert AuditEvent.objects.filter(subject_kind="domain").count() == 1


def test_rows_of_another_workspace_are_not_confirmed(browser, carol, principal, foreign, workspace) -> None:
    browser(carol).post(listing("domain"), {"action": "confirm", "_selected_action": [foreign.pk]})
    assert scopes_confirm(principal=principal(carol), model=Domain, ids=[foreign.pk]) == 0
    foreign.refresh_from_db()
    assert not foreign.confirmed


def test_a_repository_gets_a_remote_aliases_and_domains(browser, carol, workspace, pay, payments) -> None:
    answer = browser(carol).post(
        changing(pay),
        {
            "remote": "ssh://git@Git.Example.com:2222/acme/pay.git",
            "aliases": "pay\r\n\r\n  git@old.example.com:acme/payments.git \npay",
            "domain_ids": [payments.pk],
            "confirmed": "on",
        },
    )
    assert answer.status_code == 302
    pay.refresh_from_db()
    assert (pay.remote, pay.aliases) == ("git.example.com/acme/pay", ["pay", "old.example.com/acme/payments"])
    assert (pay.domain_ids, pay.confirmed) == ([payments.pk], True)
    event = AuditEvent.objects.get(subject_kind="repository")
    assert event.before == {"remote": "", "aliases": [], "domain_ids": [], "confirmed": False}
    assert event.after["domain_ids"] == [payments.pk]


@pytest.mark.parametrize(
    "name", ["pay", "https://old.example.com/acme/payments", "acme/pay", "git@git.example.com:acme/pay"]
)
def test_every_name_leads_to_the_repository(browser, carol, workspace, pay, payments, name) -> None:
    values = {
        "remote": "https://git.example.com/acme/pay.git",
        "aliases": "pay\ngit@old.example.com:acme/payments.git",
        "domain_ids": [payments.pk],
    }
    browser(carol).post(changing(pay), values)
    assert find_repository(workspace, name) == pay
    assert search_scope(workspace, domains=[], repos=[name]).domain_ids == (payments.pk,)


def test_the_page_shows_aliases_one_a_line_and_keeps_them(browser, carol, workspace, pay, payments) -> None:
    browser(carol).post(changing(pay), {"remote": "git.example.com/acme/pay", "aliases": "a\nb", "domain_ids": []})
    form = browser(carol).get(changing(pay)).context["adminform"].form
    assert form["aliases"].value() == "a\nb"
    browser(carol).post(changing(pay), {name: form[name].value() or "" for name in ("remote", "aliases")})
    pay.refresh_from_db()
    assert (pay.remote, pay.aliases) == ("git.example.com/acme/pay", ["a", "b"])


def test_the_slug_stays_as_it_was_given(browser, carol, pay, payments) -> None:
    for row in (pay, payments):
        before = row.slug
        browser(carol).post(changing(row), {"slug": "other", "remote": "", "aliases": "", "confirmed": "on"})
        row.refresh_from_db()
        assert (row.slug, row.confirmed) == (before, True)


def test_rows_are_registered_ahead_of_the_first_proposal(browser, carol, workspace) -> None:
    client = browser(carol)
    assert client.post(adding("domain"), {"slug": "支払い"}).status_code == 302
    assert client.post(adding("repository"), {"slug": "acme/new", "remote": "", "aliases": ""}).status_code == 302
    assert Domain.objects.get(workspace=workspace, slug="支払い").confirmed
    row = Repository.objects.get(workspace=workspace, slug="acme/new")
    assert row.confirmed
    assert AuditEvent.objects.get(subject_kind="repository").after == {"slug": "acme/new", "confirmed": True}


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"slug": ""}, "required"),
        ({"slug": "a" * 201}, "200"),
        ({"slug": "acme/pay"}, "already"),
        ({"slug": "payments-api"}, "leads to the repository acme/pay already"),
        ({"slug": "git@git.example.com:acme/new.git"}, "This is a remote"),
        ({"remote": "not a remote"}, "as `git clone` takes it"),
        ({"remote": "https://git.example.com/acme/pay"}, "leads to the repository acme/pay already"),
        ({"aliases": "payments-api"}, "leads to the repository acme/pay already"),
        ({"aliases": "acme/pay"}, "leads to the repository acme/pay already"),
        ({"aliases": "ssh://git.example.com/acme/pay.git"}, "leads to the repository acme/pay already"),
        ({"aliases": "a" * 201}, "too long"),
        ({"aliases": "\n".join(f"a{at}" for at in range(51))}, "at most 50"),
        ({"domain_ids": ["999999"]}, "not one of the available choices"),
        ({"domain_ids": ["x"]}, "not one of the available choices"),
    ],
)
def test_names_that_will_not_do(browser, carol, workspace, pay, values, said) -> None:
    Repository.objects.filter(pk=pay.pk).update(remote="git.example.com/acme/pay", aliases=["payments-api"])
    answer = browser(carol).post(adding("repository"), {"slug": "acme/new", "remote": "", "aliases": ""} | values)
    assert answer.status_code == 200
    assert said in errors(answer)
    assert Repository.objects.filter(workspace=workspace).count() == 1


def test_a_domain_named_twice_is_refused(browser, carol, payments) -> None:
    answer = browser(carol).post(adding("domain"), {"slug": "payments"})
    assert "already" in errors(answer)


def test_domains_of_another_workspace_are_neither_offered_nor_taken(
    browser, carol, principal, pay, payments, foreign
) -> None:
    page = browser(carol).get(changing(pay))
    assert page.context["adminform"].form.fields["domain_ids"].choices == [(payments.pk, "payments")]
    answer = browser(carol).post(changing(pay), {"remote": "", "aliases": "", "domain_ids": [foreign.pk]})
    assert "not one of the available choices" in errors(answer)
    with pytest.raises(Exception, match="will not do"):
        repository_add(principal=principal(carol), slug="acme/new", domain_ids=[foreign.pk])


def test_another_workspace_is_invisible(browser, carol, principal, foreign, payments) -> None:
    client = browser(carol)
    assert client.get(changing(foreign)).status_code == 302
    assert client.post(changing(foreign), {"confirmed": "on"}).status_code == 302
    assert [row.slug for row in client.get(listing("domain")).context["cl"].result_list] == ["payments"]
    with pytest.raises(NotFound):
        domain_change(principal=principal(carol), domain_id=foreign.pk, confirmed=True)
    foreign.refresh_from_db()
    assert not foreign.confirmed


@pytest.mark.parametrize("model", MODELS)
def test_who_is_let_in(browser, alice, bob, carol, dave, model) -> None:
    for who in (carol, dave):
        assert browser(who).get(listing(model)).status_code == 200
    for who in (alice, bob):
        assert browser(who).get(listing(model), follow=True).status_code == 403
        assert browser(who).post(adding(model), {"slug": "mine"}, follow=True).status_code == 403
    assert not Domain.objects.exists()
    assert browser().get(listing(model), follow=True).redirect_chain[-1][0].startswith("/accounts/login/")


@pytest.mark.parametrize("who", ["bob", "alice", "robo", "botty", "alice_token"])
def test_only_curators_may(request, principal, payments, who) -> None:
    asking = principal(request.getfixturevalue(who))
    with pytest.raises(Forbidden):
        scopes_confirm(principal=asking, model=Domain, ids=[payments.pk])
    with pytest.raises(Forbidden):
        repository_add(principal=asking, slug="mine")


def test_a_superuser_of_elsewhere_gets_nothing(browser, payments, other_workspace) -> None:
    root = User.objects.create_superuser("root", password="irrelevant-here")
    assert browser(root).get(listing("domain"), follow=True).status_code == 403
    member_add(principal=operator(other_workspace), username="root", role=Role.ADMIN)
    assert browser(root).get(changing(payments)).status_code == 302
    assert list(browser(root).get(listing("domain")).context["cl"].result_list) == []


@pytest.mark.parametrize("model", MODELS)
def test_nothing_is_deleted(browser, dave, pay, payments, model) -> None:
    row = {"domain": payments, "repository": pay}[model]
    client = browser(dave)
    deleting = reverse(f"admin:scopes_{model}_delete", args=[row.pk])
    assert client.get(deleting).status_code == 403
    assert client.post(deleting, {"post": "yes"}).status_code == 403
    client.post(listing(model), {"action": "delete_selected", "_selected_action": [row.pk], "post": "yes"})
    assert type(row).objects.filter(pk=row.pk).exists()
    assert "delete_selected" not in client.get(listing(model)).content.decode()


def test_hostile_names_are_shown_as_text(browser, carol, workspace, pay) -> None:
    scope_register(workspace, firm=False, domains=[HOSTILE], repos=[HOSTILE])
    hostile = Repository.objects.get(workspace=workspace, slug=HOSTILE)
    domain = Domain.objects.get(workspace=workspace, slug=HOSTILE)
    client = browser(carol)
    client.post(changing(pay), {"remote": "", "aliases": f"{HOSTILE} too", "domain_ids": [domain.pk]})
    pages = [listing("domain"), listing("repository"), changing(domain), changing(hostile), changing(pay)]
    for address in [*pages, reverse("admin:scopes_repository_history", args=[pay.pk])]:
        page = client.get(address).content.decode()
        assert "<img src=x" not in page
        assert "&lt;img src=x onerror=alert(1)&gt;" in page


@pytest.mark.parametrize("model", MODELS)
def test_a_list_takes_as_many_queries_for_many_rows(
    browser, carol, workspace, model, payments, django_assert_max_num_queries
) -> None:
    client = browser(carol)
    Repository.objects.bulk_create(
        Repository(workspace=workspace, slug=f"r{at}", aliases=["x"], domain_ids=[payments.pk]) for at in range(30)
    )
    Domain.objects.bulk_create(Domain(workspace=workspace, slug=f"d{at}") for at in range(30))
    with django_assert_max_num_queries(12):
        assert client.get(listing(model)).status_code == 200


def test_repositories_are_found_by_any_of_their_names(browser, carol, pay) -> None:
    browser(carol).post(changing(pay), {"remote": "git.example.com/acme/pay", "aliases": "kasse", "domain_ids": []})
    for word in ("pay", "git.example", "kasse"):
        rows = browser(carol).get(f"{listing('repository')}?q={word}").context["cl"].result_list
        assert [row.slug for row in rows] == ["acme/pay"]
    assert not browser(carol).get(f"{listing('repository')}?q=nothing").context["cl"].result_list


def test_what_a_change_of_a_scope_affects(browser, carol, workspace, botty, alice, pool) -> None:
    ledger.remember(
        ledger.of_token(botty.token),
        ledger.of_person(alice),
        scope=ScopeInput(domains=("payments",), repos=("acme/a&b",)),
    )
    ledger.propose(ledger.of_token(botty.token), scope=ScopeInput(repos=("acme/a&b",)))
    client = browser(carol)
    repository = Repository.objects.get(slug="acme/a&b")
    page = client.get(reverse("admin:scopes_repository_change", args=[repository.pk])).content.decode()
    assert "1 memory" in page
    assert "1 open candidate" in page
    assert "repo=acme%2Fa%26b" in page
    assert "is registered as unconfirmed" in page
    domain = Domain.objects.get(slug="payments")
    page = client.get(reverse("admin:scopes_domain_change", args=[domain.pk])).content.decode()
    assert "1 memory" in page
    assert "no open candidates" in page
    listed = client.get(reverse("admin:scopes_repository_changelist"), {"domains": "none"})
    assert [row.slug for row in listed.context["cl"].result_list] == ["acme/a&b"]
