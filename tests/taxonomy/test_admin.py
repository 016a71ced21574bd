"""The taxonomy in the admin: curators can do their job, and nobody else can do it for them."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.urls import reverse

from apps.accounts.models import Audience, AuditEvent, Role
from apps.accounts.principal import operator
from apps.accounts.services import member_add
from apps.candidates.models import Candidate
from apps.candidates.proposal import Proposal, ScopeInput
from apps.candidates.services import candidate_propose
from apps.sources.services import SourceInput
from apps.taxonomy.models import Category, Exclusion, MemoryType

MODELS = ["memorytype", "category", "exclusion"]
HOSTILE = "<img src=x onerror=alert(1)>"


def listing(model: str) -> str:
    return reverse(f"admin:taxonomy_{model}_changelist")


def adding(model: str) -> str:
    return reverse(f"admin:taxonomy_{model}_add")


def changing(row) -> str:
    return reverse(f"admin:taxonomy_{row._meta.model_name}_change", args=[row.pk])


def a_type(workspace, slug: str = "bug_fixes") -> MemoryType:
    return MemoryType.objects.get(workspace=workspace, slug=slug)


def type_values(row: MemoryType, **changes) -> dict[str, object]:
    values = {
        "description": row.description,
        "category": row.category_id,
        "always_human": row.always_human,
        "min_confidence": row.min_confidence,
        "is_active": row.is_active,
    }
    # A browser leaves an unticked box out.
    return {name: value for name, value in (values | changes).items() if value is not False}


def new_type(workspace, **changes) -> dict[str, object]:
    return {
        "slug": "data_contracts",
        "name": "DATA_CONTRACT",
        "description": "What two systems have agreed to exchange.",
        "category": Category.objects.get(workspace=workspace, slug="decision").pk,
        "min_confidence": "0.7",
    } | changes


def errors(answer) -> str:
    return " ".join(str(error) for listed in answer.context["errors"] for error in listed)


def test_a_curator_changes_a_type_and_the_change_is_recorded(browser, carol, workspace) -> None:
    row = a_type(workspace)
    answer = browser(carol).post(changing(row), type_values(row, description="Cause and cure.", min_confidence="0.75"))
    assert answer.status_code == 302
    row.refresh_from_db()
    assert (row.description, row.min_confidence) == ("Cause and cure.", 0.75)
    event = AuditEvent.objects.get(workspace=workspace, subject_kind="memorytype", subject_id=str(row.pk))
    assert (event.actor, event.verb) == ("carol", "change")
    assert event.before == {"description": a_seeded("bug_fixes"), "min_confidence": 0.6}
    assert event.after == {"description": "Cause and cure.", "min_confidence": 0.75}


def a_seeded(slug: str) -> str:
    from apps.taxonomy.seed import TYPES

    return next(row.description for row in TYPES if row.slug == slug)


def test_another_category_is_recorded_by_name(browser, carol, workspace) -> None:
    row, reference = a_type(workspace), Category.objects.get(workspace=workspace, slug="reference")
    browser(carol).post(changing(row), type_values(row, category=reference.pk))
    event = AuditEvent.objects.get(subject_kind="memorytype", subject_id=str(row.pk))
    assert (event.before, event.after) == ({"category": "project"}, {"category": "reference"})


def test_saving_without_a_change_records_nothing(browser, carol, workspace) -> None:
    row = a_type(workspace)
    assert browser(carol).post(changing(row), type_values(row)).status_code == 302
    assert not AuditEvent.objects.filter(subject_kind="memorytype").exists()


def test_a_type_is_added_and_can_be_proposed_at_once(browser, carol, workspace, botty, principal) -> None:
    assert browser(carol).post(adding("memorytype"), new_type(workspace)).status_code == 302
    row = a_type(workspace, "data_contracts")
    assert row.is_active
    event = AuditEvent.objects.get(subject_kind="memorytype", subject_id=str(row.pk))
    assert (event.verb, event.before, event.after["name"]) == ("add", {}, "DATA_CONTRACT")
    assert propose(principal(botty), "Data_Contract").candidate.type == row


def propose(principal, type_: str, content: str = "Retries back off exponentially."):
    sources = (SourceInput(kind="document", reference="doc"),)
    return candidate_propose(
        principal=principal,
        proposal=Proposal(content=content, type=type_, scope=ScopeInput(firm=True), sources=sources),
    )


def test_both_spellings_stay_as_they_were_given(browser, carol, workspace) -> None:
    row = a_type(workspace)
    browser(carol).post(changing(row), type_values(row, slug="other", name="OTHER"))
    row.refresh_from_db()
    assert (row.slug, row.name) == ("bug_fixes", "BUG_FIX")


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("slug", "Data Contracts", "letters, numbers, underscores or hyphens"),
        ("slug", "DataContracts", "small letters"),
        ("slug", "bug_fix", "leads to the type bug_fixes already"),
        ("slug", "bug_fixes", "already"),
        ("name", "data_contract", "capital letters"),
        ("name", "BUG_FIXES", "leads to the type bug_fixes already"),
        ("description", "", "required"),
        ("description", "a" * 2_001, "2000"),
        ("description", "Ask for password: hunter2-Tr0ub4dor!x9", "There is a secret"),
        ("min_confidence", "1.5", "Give a number from 0 to 1"),
        ("min_confidence", "nan", "Enter a number"),
        ("category", "999999", "not one of the available choices"),
    ],
)
def test_values_that_will_not_do(browser, carol, workspace, field, value, said) -> None:
    answer = browser(carol).post(adding("memorytype"), new_type(workspace, **{field: value}))
    assert answer.status_code == 200
    assert said in errors(answer)
    assert MemoryType.objects.filter(workspace=workspace).count() == 13


def test_a_retired_type_takes_no_proposals_and_its_open_ones_are_named(
    browser, carol, workspace, botty, principal
) -> None:
    row = a_type(workspace)
    propose(principal(botty), "bug_fixes")
    answer = browser(carol).post(changing(row), type_values(row, is_active=False), follow=True)
    assert "Candidates of this type that wait for review: 1." in answer.content.decode()
    with pytest.raises(Exception, match="is retired"):
        propose(principal(botty), "bug_fixes", "Another one.")
    browser(carol).post(changing(row), type_values(row, is_active=True))
    assert propose(principal(botty), "bug_fixes", "Another one.").created


def test_the_last_type_in_use_stays(browser, carol, workspace) -> None:
    row = a_type(workspace)
    MemoryType.objects.filter(workspace=workspace).exclude(pk=row.pk).update(is_active=False)
    answer = browser(carol).post(changing(row), type_values(row, is_active=False), follow=True)
    assert "is the only type in use" in answer.content.decode()
    row.refresh_from_db()
    assert row.is_active


def test_how_much_a_type_is_used(browser, carol, workspace, botty, principal) -> None:
    for content in ("One.", "Two."):
        propose(principal(botty), "bug_fixes", content)
    page = browser(carol).get(changing(a_type(workspace))).content.decode()
    assert "no memories" in page
    assert "2 open candidates" in page
    assert "use this type." in page
    rows = browser(carol).get(listing("memorytype")).context["cl"].result_list
    assert {row.slug: row.waiting_count for row in rows if row.waiting_count} == {"bug_fixes": 2}


def test_a_category_is_weighed(browser, carol, workspace) -> None:
    row = Category.objects.get(workspace=workspace, slug="project")
    values = {"half_life_days": "200", "ttl_days": "", "weights": '{"incident": 1.5, "explain-why": 0}'}
    assert browser(carol).post(changing(row), values).status_code == 302
    row.refresh_from_db()
    assert (row.half_life_days, row.ttl_days, row.weights) == (200, None, {"incident": 1.5, "explain-why": 0})
    event = AuditEvent.objects.get(subject_kind="category")
    assert event.before == {"half_life_days": 365, "ttl_days": 90, "weights": {"incident": 1.1}}


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"weights": '{"why": 1}'}, "“why” is no intent"),
        ({"weights": '{"history": "much"}'}, "A weight is a number from 0 to 10"),
        ({"weights": '{"history": true}'}, "A weight is a number"),
        ({"weights": '{"history": 11}'}, "A weight is a number"),
        ({"weights": '{"history": NaN}'}, "A weight is a number"),
        ({"weights": '{"history": 1e999}'}, "A weight is a number"),
        ({"weights": "[1]"}, "Write an object"),
        ({"weights": "{"}, "valid JSON"),
        ({"half_life_days": "0"}, "from 1 to 36,500"),
        ({"half_life_days": "-1"}, "greater than or equal to 0"),
        ({"ttl_days": "99999999"}, "from 1 to 36,500"),
        ({"ttl_days": "9" * 40}, "from 1 to 36,500"),
    ],
)
def test_lifetimes_and_weights_that_will_not_do(browser, carol, workspace, values, said) -> None:
    row = Category.objects.get(workspace=workspace, slug="project")
    answer = browser(carol).post(changing(row), {"half_life_days": "", "ttl_days": "", "weights": "{}"} | values)
    assert answer.status_code == 200
    assert said in errors(answer)
    assert not AuditEvent.objects.filter(subject_kind="category").exists()


def test_a_category_is_added_for_a_new_lifetime(browser, carol, workspace) -> None:
    values = {"slug": "experiment", "half_life_days": "60", "ttl_days": "30", "weights": ""}
    assert browser(carol).post(adding("category"), values).status_code == 302
    assert Category.objects.get(workspace=workspace, slug="experiment").weights == {}


def test_an_exclusion_is_described_and_retired(browser, carol, workspace) -> None:
    row = Exclusion.objects.get(workspace=workspace, slug="restatement")
    browser(carol).post(changing(row), {"description": "No echoes."})
    row.refresh_from_db()
    assert (row.description, row.is_active) == ("No echoes.", False)
    event = AuditEvent.objects.get(subject_kind="exclusion")
    assert event.after == {"description": "No echoes.", "is_active": False}


def test_the_page_says_what_an_exclusion_really_switches(browser, carol, workspace) -> None:
    secrets = Exclusion.objects.get(workspace=workspace, slug="secrets-personal-data")
    assert "retiring this only takes it out of prompts" in browser(carol).get(changing(secrets)).content.decode()


def test_an_exclusion_is_added(browser, carol, workspace) -> None:
    values = {"slug": "prices", "description": "No price lists."}
    assert browser(carol).post(adding("exclusion"), values).status_code == 302
    assert AuditEvent.objects.get(subject_kind="exclusion").after == values


@pytest.mark.parametrize("model", MODELS)
def test_who_is_let_in(browser, alice, bob, carol, dave, model) -> None:
    for who in (carol, dave):
        assert browser(who).get(listing(model)).status_code == 200
        assert browser(who).get(adding(model)).status_code == 200
    for who in (alice, bob):
        assert browser(who).get(listing(model), follow=True).status_code == 403
    assert browser().get(listing(model), follow=True).redirect_chain[-1][0].startswith("/accounts/login/")


@pytest.mark.parametrize("role", [Role.MEMBER, Role.REVIEWER])
def test_the_wrong_role_changes_nothing(browser, alice, bob, workspace, role) -> None:
    row = a_type(workspace)
    who = bob if role == Role.MEMBER else alice
    answer = browser(who).post(changing(row), type_values(row, description="Mine."), follow=True)
    assert answer.status_code == 403
    row.refresh_from_db()
    assert row.description != "Mine."


def test_a_token_is_no_way_in(api, robo, alice_token, workspace) -> None:
    for who in (robo, alice_token):
        answer = api(who).get(listing("memorytype"))
        assert answer.status_code == 302
        assert "/login/" in answer.headers["Location"]


def test_a_superuser_of_nowhere_or_elsewhere_gets_nothing(browser, workspace, other_workspace) -> None:
    root = User.objects.create_superuser("root", password="irrelevant-here")
    assert browser(root).get(listing("memorytype"), follow=True).status_code == 403
    member_add(principal=operator(other_workspace), username="root", role=Role.ADMIN)
    row = a_type(workspace)
    client = browser(root)
    assert client.get(changing(row)).status_code == 302
    assert client.post(changing(row), type_values(row, description="Mine.")).status_code == 302
    row.refresh_from_db()
    assert row.description != "Mine."
    assert {found.workspace_id for found in client.get(listing("memorytype")).context["cl"].result_list} == {
        other_workspace.pk
    }


def test_the_category_of_another_workspace_cannot_be_chosen(browser, carol, workspace, other_workspace) -> None:
    foreign = Category.objects.get(workspace=other_workspace, slug="reference")
    row = a_type(workspace)
    page = browser(carol).get(changing(row))
    offered = page.context["adminform"].form.fields["category"].queryset
    assert {category.workspace_id for category in offered} == {workspace.pk}
    answer = browser(carol).post(changing(row), type_values(row, category=foreign.pk))
    assert "not one of the available choices" in errors(answer)


def test_filters_offer_only_own_categories(browser, carol, other_workspace) -> None:
    foreign = Category.objects.get(workspace=other_workspace, slug="reference")
    page = browser(carol).get(listing("memorytype"))
    assert f"category__id__exact={foreign.pk}" not in page.content.decode()
    assert browser(carol).get(f"{listing('memorytype')}?category__id__exact={foreign.pk}").status_code == 200


@pytest.mark.parametrize("model", MODELS)
def test_nothing_is_deleted(browser, dave, workspace, model) -> None:
    row = {"memorytype": MemoryType, "category": Category, "exclusion": Exclusion}[model].objects.filter(
        workspace=workspace
    )[0]
    client = browser(dave)
    deleting = reverse(f"admin:taxonomy_{model}_delete", args=[row.pk])
    assert client.get(deleting).status_code == 403
    assert client.post(deleting, {"post": "yes"}).status_code == 403
    client.post(listing(model), {"action": "delete_selected", "_selected_action": [row.pk], "post": "yes"})
    assert type(row).objects.filter(pk=row.pk).exists()
    assert "delete_selected" not in client.get(listing(model)).content.decode()


def test_hostile_text_is_shown_as_text(browser, carol, workspace) -> None:
    row = Exclusion.objects.get(workspace=workspace, slug="restatement")
    client = browser(carol)
    client.post(changing(row), {"description": HOSTILE, "is_active": "on"})
    for address in (
        listing("exclusion"),
        changing(row),
        reverse("admin:taxonomy_exclusion_history", args=[row.pk]),
        f"{listing('exclusion')}?q={HOSTILE}",
    ):
        page = client.get(address).content.decode()
        assert "<img src=x" not in page
        assert "&lt;img src=x onerror=alert(1)&gt;" in page


@pytest.mark.parametrize("model", MODELS)
def test_a_list_takes_as_many_queries_for_many_rows(
    browser, carol, workspace, model, django_assert_max_num_queries
) -> None:
    client = browser(carol)
    client.get(listing(model))
    with django_assert_max_num_queries(13):
        client.get(listing(model))
    category = Category.objects.get(workspace=workspace, slug="project")
    for at in range(20):
        Category.objects.create(workspace=workspace, slug=f"c{at}")
        Exclusion.objects.create(workspace=workspace, slug=f"e{at}", description="…")
        MemoryType.objects.create(workspace=workspace, slug=f"t{at}", name=f"T{at}", description="…", category=category)
    with django_assert_max_num_queries(13):
        assert client.get(listing(model)).status_code == 200


def test_history_is_the_audit_trail(browser, carol, workspace) -> None:
    row = a_type(workspace)
    browser(carol).post(changing(row), type_values(row, min_confidence="0.9"))
    page = browser(carol).get(reverse("admin:taxonomy_memorytype_history", args=[row.pk])).content.decode()
    assert "min_confidence: 0.6" in page
    assert "min_confidence: 0.9" in page


def test_what_a_description_said_is_shown_with_who_changed_it(browser, carol, workspace) -> None:
    row = a_type(workspace)
    before = row.description
    assert "It has not been changed since it was written." in browser(carol).get(changing(row)).content.decode()
    browser(carol).post(changing(row), type_values(row, description=f"{before} And <b>why</b>."))
    page = browser(carol).get(changing(row)).content.decode()
    assert "<strong>carol</strong>" in page
    assert "<b>why</b>" not in page
    assert "&lt;b" in page or "&lt;" in page


def test_uses_that_a_curator_may_not_see_are_not_counted(browser, carol, workspace, botty, principal) -> None:
    proposed = propose(principal(botty), "bug_fixes", "For the board alone.")
    board = Audience.objects.create(workspace=workspace, name="board")
    Candidate.objects.filter(pk=proposed.candidate.pk).update(audience_ids=[board.pk])
    page = browser(carol).get(changing(a_type(workspace))).content.decode()
    assert "No memory and no open candidate that you may see uses this type." in page
    rows = browser(carol).get(listing("memorytype")).context["cl"].result_list
    assert [row.slug for row in rows if row.waiting_count] == []
