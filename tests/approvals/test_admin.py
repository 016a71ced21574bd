"""Ledger, queue and sources in the admin: there to be looked at, by whoever may see them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.urls import reverse
from django_q.models import Schedule, Task

from apps.accounts.models import Audience, AuditEvent, Role
from apps.accounts.principal import operator
from apps.accounts.services import member_add
from apps.approvals.restrictions import source_restrict
from apps.approvals.services import candidate_approve, candidate_reject
from apps.candidates.models import Candidate, CandidateEvidence
from apps.candidates.proposal import Proposal, ScopeInput
from apps.candidates.services import candidate_propose
from apps.memories.models import Memory, MemoryEvidence, PoolGeneration, Supersession, Verdict
from apps.memories.providers import registry
from apps.memories.providers.inmemory import InMemoryProvider
from apps.sources.models import Source
from apps.sources.services import SourceInput
from tests.memories.providers.doubles import HashingEmbedder

LEDGER = [Memory, MemoryEvidence, Supersession, Verdict, Candidate, CandidateEvidence]
HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(autouse=True)
def provider() -> Iterator[InMemoryProvider]:
    with registry.override(InMemoryProvider(HashingEmbedder())) as made:
        yield made


def propose(principal, content: str, *, reference: str, supersedes: tuple[str, ...] = (), **source) -> Candidate:
    proposal = Proposal(
        content=content,
        type="bug_fixes",
        scope=ScopeInput(firm=True, domains=("payments",), repos=("acme/pay",)),
        sources=(SourceInput(kind="document", reference=reference, **source),),
        supersedes=supersedes,
    )
    return candidate_propose(principal=principal, proposal=proposal).candidate


def approve(principal, candidate: Candidate) -> Memory:
    return candidate_approve(principal=principal, candidate_id=candidate.pk, version=candidate.version).memory


@dataclass(frozen=True)
class Ledger:
    old: Memory
    new: Memory
    rejected: Candidate
    waiting: Candidate


@pytest.fixture
def ledger(principal, botty, alice) -> Ledger:
    bot, reviewer = principal(botty), principal(alice)
    old = approve(reviewer, propose(bot, "Retries back off linearly.", reference="adr-1", quote="linearly"))
    better = propose(bot, "Retries back off exponentially.", reference="adr-2", supersedes=(old.label,))
    new = approve(reviewer, better)
    rejected = propose(bot, "Retries never stop.", reference="adr-3")
    candidate_reject(
        principal=reviewer, candidate_id=rejected.pk, version=rejected.version, reason="They stop after five."
    )
    waiting = propose(bot, "Retries carry jitter.", reference="adr-4")
    return Ledger(old, new, rejected, waiting)


@pytest.fixture
def foreign(principal, other_workspace, charlie) -> Ledger:
    """One of each in another workspace, proposed by a colleague of charlie's."""
    member_add(principal=operator(other_workspace), username="chloe", role=Role.MEMBER)
    chloe = principal(User.objects.get(username="chloe"))
    old = approve(principal(charlie), propose(chloe, "Foreign one.", reference="foreign-1"))
    new = approve(principal(charlie), propose(chloe, "Foreign two.", reference="foreign-2", supersedes=(old.label,)))
    waiting = propose(chloe, "Foreign three.", reference="foreign-3")
    return Ledger(old, new, waiting, waiting)


def listing(model) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")


def page_of(row, page: str = "change") -> str:
    return reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_{page}", args=[row.pk])


def shown(client, model, query: str = "") -> list:
    return list(client.get(f"{listing(model)}{query}").context["cl"].result_list)


# --- to be looked at ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", LEDGER)
def test_curators_look_at_lists_and_rows(browser, carol, ledger, model) -> None:
    rows = shown(browser(carol), model)
    assert rows
    for row in rows:
        assert browser(carol).get(page_of(row)).status_code == 200


@pytest.mark.parametrize("model", LEDGER)
def test_nothing_can_be_added_changed_or_deleted(browser, dave, ledger, model) -> None:
    client, row, count = browser(dave), model.objects.all()[0], model.objects.count()
    before = model.objects.filter(pk=row.pk).values().get()
    adding = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_add")
    assert client.get(adding).status_code == 403
    assert client.post(adding, {"content": "Mine."}).status_code == 403
    assert client.post(page_of(row), {"content": "Mine.", "status": "retired", "reason": "x"}).status_code == 403
    assert client.get(page_of(row, "delete")).status_code == 403
    assert client.post(page_of(row, "delete"), {"post": "yes"}).status_code == 403
    client.post(listing(model), {"action": "delete_selected", "_selected_action": [row.pk], "post": "yes"})
    page = client.get(listing(model)).content.decode()
    assert 'name="action"' not in page
    assert (model.objects.count(), model.objects.filter(pk=row.pk).values().get()) == (count, before)


@pytest.mark.parametrize("model", [*LEDGER, Source])
def test_who_is_let_in(browser, alice, bob, model) -> None:
    for who in (alice, bob):
        assert browser(who).get(listing(model), follow=True).status_code == 403
    assert browser().get(listing(model), follow=True).redirect_chain[-1][0].startswith("/accounts/login/")


@pytest.mark.parametrize("model", [*LEDGER, Source])
def test_an_agent_is_not_let_in(api, robo, alice_token, model) -> None:
    for who in (robo, alice_token):
        assert "/login/" in api(who).get(listing(model)).headers["Location"]


@pytest.mark.parametrize("model", [*LEDGER, Source])
def test_another_workspace_is_invisible(browser, carol, ledger, foreign, workspace, model) -> None:
    client = browser(carol)
    assert {row.workspace_id for row in shown(client, model)} == {workspace.pk}
    theirs = model.objects.exclude(workspace=workspace)[0]
    for page in ("change", "history"):
        assert client.get(page_of(theirs, page)).status_code == 302
    assert client.post(page_of(theirs), {}).status_code in (302, 403)
    assert shown(client, model, "?q=foreign") == []


def test_a_superuser_of_elsewhere_sees_elsewhere(browser, ledger, foreign, other_workspace) -> None:
    root = User.objects.create_superuser("root", password="irrelevant-here")
    assert browser(root).get(listing(Memory), follow=True).status_code == 403
    member_add(principal=operator(other_workspace), username="root", role=Role.ADMIN)
    assert {row.workspace_id for row in shown(browser(root), Memory)} == {other_workspace.pk}
    assert browser(root).get(page_of(ledger.new)).status_code == 302


def test_a_memory_leads_to_what_belongs_to_it(browser, carol, ledger) -> None:
    page = browser(carol).get(page_of(ledger.old)).content.decode()
    assert "the whole firm, domain payments, repository acme/pay" in page
    assert f'<a href="{page_of(ledger.new)}">{ledger.new.label} (full)</a>' in page
    assert f'<a href="{page_of(ledger.old.verdict)}">Approved by alice' in page
    assert "Superseded by alice" in page
    source = Source.objects.get(reference="adr-1")
    assert f'<a href="{page_of(source)}">document adr-1</a> “linearly”' in page


def test_a_candidate_leads_to_what_belongs_to_it(browser, carol, ledger) -> None:
    page = browser(carol).get(page_of(ledger.rejected)).content.decode()
    assert "Rejected by alice" in page
    assert "botty," in page
    approved = Candidate.objects.get(content="Retries back off exponentially.")
    assert (
        f'<a href="{page_of(ledger.old)}">{ledger.old.label}</a>'
        in browser(carol).get(page_of(approved)).content.decode()
    )


def test_a_verdict_leads_to_its_subject(browser, carol, ledger) -> None:
    verdict = Verdict.objects.get(action="reject")
    page = browser(carol).get(page_of(verdict)).content.decode()
    assert f'<a href="{page_of(ledger.rejected)}">candidate ' in page
    assert "They stop after five." in page


@pytest.mark.parametrize("query", ["?q=exponentially", "?q=EXPONENTIALLY,%20back%20off"])
def test_statements_are_found_by_words(browser, carol, ledger, query) -> None:
    assert shown(browser(carol), Memory, query) == [ledger.new]
    assert [row.content for row in shown(browser(carol), Candidate, query)] == [ledger.new.content]


def test_rows_are_found_by_number_and_id(browser, carol, ledger) -> None:
    client = browser(carol)
    for term in (ledger.old.label, ledger.old.label.lower(), str(ledger.old.pk)):
        assert shown(client, Memory, f"?q={term}") == [ledger.old]
    assert shown(client, Candidate, f"?q={ledger.waiting.pk}") == [ledger.waiting]
    assert {row.action for row in shown(client, Verdict, f"?q={ledger.old.pk}")} == {"supersede"}
    assert [edge.new_id for edge in shown(client, Supersession, f"?q={ledger.old.number}")] == [ledger.new.pk]


@pytest.mark.parametrize(
    "term", ["`", "the", "a/b-c", '"', ":*", "!", "(", "%00", "\\", "M-", "M-9" + "9" * 30, "支払い"]
)
@pytest.mark.parametrize("model", [Memory, Verdict])
def test_no_search_term_is_a_server_error(browser, carol, ledger, model, term) -> None:
    assert browser(carol).get(f"{listing(model)}?q={term}").status_code in (200, 302)


@pytest.mark.parametrize(
    "query",
    ["content__regex=(", "number__exact=" + "9" * 30, "type__id__exact=nope", "audience_ids__overlap=x", "p=99999"],
)
def test_no_filter_is_a_server_error(browser, carol, ledger, query) -> None:
    assert browser(carol).get(f"{listing(Memory)}?{query}").status_code < 500


@pytest.mark.parametrize("page", ["nope/change/", "0/history/", "%00/change/", "_00/delete/"])
def test_no_address_is_a_server_error(browser, carol, page) -> None:
    for model in (Memory, Source, Verdict):
        assert browser(carol).get(f"{listing(model)}{page}").status_code < 500


@pytest.mark.parametrize(
    ("model", "query", "count"),
    [
        (Memory, "?status__exact=superseded", 1),
        (Memory, "?tier__exact=index", 0),
        (Candidate, "?status__exact=pending", 1),
        (Verdict, "?action__exact=reject", 1),
        (Supersession, "?voided_by__isempty=1", 1),
        (MemoryEvidence, "?source__kind__exact=document", 2),
    ],
)
def test_lists_are_filtered(browser, carol, ledger, model, query, count) -> None:
    assert len(shown(browser(carol), model, query)) == count


@pytest.mark.parametrize("model", [*LEDGER, Source])
def test_a_list_takes_as_many_queries_for_many_rows(
    browser, carol, principal, botty, alice, ledger, model, django_assert_max_num_queries
) -> None:
    earlier = ledger.new
    for at in range(12):
        words = f"Rule {at} of {'abcdefghijkl'[at] * 5}."
        candidate = propose(principal(botty), words, reference=f"r{at}", supersedes=(earlier.label,))
        earlier = approve(principal(alice), candidate)
    client = browser(carol)
    with django_assert_max_num_queries(10):
        assert client.get(listing(model)).status_code == 200


def test_hostile_text_is_shown_as_text(browser, carol, principal, botty, alice) -> None:
    named = {"reference": HOSTILE, "title": HOSTILE, "quote": HOSTILE, "url": f"https://example.com/{HOSTILE}"}
    candidate = propose(principal(botty), f"Beware of {HOSTILE}", **(named | {"url": ""}))
    rejected = propose(principal(botty), f"Never {HOSTILE}", reference="other")
    candidate_reject(
        principal=principal(alice), candidate_id=rejected.pk, version=rejected.version, reason=f"No {HOSTILE}"
    )
    approve(principal(alice), candidate)
    client = browser(carol)
    for model in (Memory, MemoryEvidence, Verdict, Candidate, CandidateEvidence, Source):
        addresses = [listing(model), *(page_of(row) for row in model.objects.all())]
        for address in addresses:
            page = client.get(address).content.decode()
            assert "<img src=x" not in page, address
    assert "&lt;img src=x onerror=alert(1)&gt;" in client.get(listing(Memory)).content.decode()


# --- audiences ------------------------------------------------------------------------------------------------


@pytest.fixture
def board(workspace, dave) -> Audience:
    audience = Audience.objects.create(workspace=workspace, name="board")
    audience.members.add(dave)
    return audience


def restrict(client, source: Source, audience: Audience | int):
    return client.post(page_of(source), {"audience": getattr(audience, "pk", audience)}, follow=True)


def test_a_source_is_restricted_with_all_that_came_from_it(browser, carol, dave, ledger, board) -> None:
    source = Source.objects.get(reference="adr-2")
    page = restrict(browser(carol), source, board).content.decode()
    assert "is restricted to board. You are not in it, so it is gone here." in page
    ledger.new.refresh_from_db()
    assert ledger.new.audience_ids == [board.pk]
    event = AuditEvent.objects.get(verb="restrict")
    assert (event.actor, event.subject_id, event.after) == ("carol", str(source.pk), {"audience": "board"})


def test_a_source_is_called_by_what_it_is(browser, carol, workspace, board) -> None:
    source = Source.objects.create(workspace=workspace, kind="merge_request", reference="secret/x!1")
    client = browser(carol)
    shown = client.get(page_of(source)).content.decode()
    assert "merge request secret/x!1" in shown
    assert "merge_request secret/x!1" not in shown
    page = restrict(client, source, board).content.decode()
    assert "The merge request secret/x!1 is restricted to board." in page


@pytest.mark.parametrize("model", [*LEDGER, Source])
def test_whoever_is_not_in_the_audience_sees_nothing_of_it(
    browser, carol, dave, principal, ledger, board, model
) -> None:
    rows = {row.pk for row in shown(browser(carol), model)}
    source = Source.objects.get(reference="adr-2")
    source_restrict(principal=principal(dave), source_id=source.pk, audience_id=board.pk)
    left = {row.pk for row in shown(browser(carol), model)}
    assert left < rows
    for pk in rows - left:
        assert browser(carol).get(page_of(model.objects.get(pk=pk))).status_code == 302
    assert {row.pk for row in shown(browser(dave), model)} == rows
    for row in shown(browser(carol), model):
        assert "exponentially" not in browser(carol).get(page_of(row)).content.decode()


def test_the_page_says_that_it_cannot_be_undone(browser, carol, ledger, board) -> None:
    source = Source.objects.get(reference="adr-2")
    assert "This cannot be undone" in browser(carol).get(page_of(source)).content.decode()


def test_a_restriction_cannot_be_changed_or_taken_off(browser, dave, workspace, ledger, board) -> None:
    other = Audience.objects.create(workspace=workspace, name="legal")
    source = Source.objects.get(reference="adr-2")
    restrict(browser(dave), source, board)
    assert browser(dave).post(page_of(source), {"audience": other.pk}).status_code == 403
    assert browser(dave).post(page_of(source), {"audience": ""}).status_code == 403
    source.refresh_from_db()
    assert source.audience == board


def test_an_audience_has_to_be_named(browser, carol, ledger, board) -> None:
    source = Source.objects.get(reference="adr-2")
    assert "This field is required" in restrict(browser(carol), source, "").content.decode()
    source.refresh_from_db()
    assert source.audience is None


def test_an_audience_of_another_workspace_cannot_be_chosen(browser, carol, ledger, board, other_workspace) -> None:
    theirs = Audience.objects.create(workspace=other_workspace, name="theirs")
    source = Source.objects.get(reference="adr-2")
    page = browser(carol).get(page_of(source))
    assert list(page.context["adminform"].form.fields["audience"].queryset) == [board]
    assert "not one of the available choices" in restrict(browser(carol), source, theirs).content.decode()
    assert f"audience__id__exact={theirs.pk}" not in browser(carol).get(listing(Source)).content.decode()


def test_nothing_else_of_a_source_changes(browser, carol, ledger, board) -> None:
    source = Source.objects.get(reference="adr-2")
    browser(carol).post(page_of(source), {"audience": board.pk, "reference": "mine", "url": "https://evil.example"})
    source.refresh_from_db()
    assert (source.reference, source.url) == ("adr-2", "")


def test_a_source_is_neither_added_nor_deleted(browser, dave, ledger) -> None:
    source = Source.objects.get(reference="adr-2")
    client = browser(dave)
    assert client.get(reverse("admin:sources_source_add")).status_code == 403
    assert client.post(page_of(source, "delete"), {"post": "yes"}).status_code == 403
    client.post(listing(Source), {"action": "delete_selected", "_selected_action": [source.pk], "post": "yes"})
    assert Source.objects.filter(pk=source.pk).exists()


def test_a_source_links_to_where_it_is(browser, carol, principal, botty) -> None:
    propose(principal(botty), "One.", reference="doc", url="https://docs.example.com/a?b=1&c=2")
    page = browser(carol).get(page_of(Source.objects.get(reference="doc"))).content.decode()
    assert 'href="https://docs.example.com/a?b=1&amp;c=2"' in page


# --- the rest of the site -------------------------------------------------------------------------------------


def test_pool_generations_are_for_admins(browser, carol, dave, db) -> None:
    assert browser(carol).get(listing(PoolGeneration)).status_code == 403
    (live,) = shown(browser(dave), PoolGeneration)
    assert live.state == "live"
    assert browser(dave).post(page_of(live), {"state": "retired"}).status_code == 403
    assert browser(dave).post(page_of(live, "delete"), {"post": "yes"}).status_code == 403


def test_what_other_packages_register_is_not_here(browser, dave) -> None:
    labels = {model._meta.app_label for model in admin.site._registry}
    assert labels <= {"accounts", "taxonomy", "scopes", "sources", "memories", "candidates", "capture"}
    for model in (Task, Schedule, User):
        address = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
        assert browser(dave).get(address, follow=True).status_code == 404


def test_the_index_lists_what_a_role_may_use(browser, carol, dave) -> None:
    page = browser(carol).get(reverse("admin:index")).content.decode()
    assert "Memory types" in page
    assert "Pool generations" not in page
    assert "Pool generations" in browser(dave).get(reverse("admin:index")).content.decode()
