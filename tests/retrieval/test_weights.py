"""The page on which curators try another weighting before they set it."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.urls import reverse

from apps.accounts.models import AuditEvent, Workspace
from apps.candidates.proposal import ScopeInput
from apps.taxonomy.models import Category
from tests import ledger
from tests.conftest import Issued

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("pool")]

PAGE = "/memories/weights/"
NUMBERS = {"category": "convention", "half_life_days": ""}


@pytest.fixture
def two(botty: Issued, alice: User) -> tuple[str, str]:
    """A decision that answers the question a little better than a convention does."""
    bot, reviewer = ledger.of_token(botty.token), ledger.of_person(alice)
    everywhere = {"scope": ScopeInput(firm=True)}
    decision = ledger.remember(
        bot, reviewer, "Log messages are written as JSON lines.", type="dependency_decisions", **everywhere
    )
    convention = ledger.remember(
        bot, reviewer, "Log messages name the request, as JSON.", type="review_feedback", **everywhere
    )
    return decision.label, convention.label


def order(rows: list[Any]) -> list[str]:
    return [each.row["number"] for each in rows]


def test_it_shows_what_would_change_and_changes_nothing(browser, carol, workspace: Workspace, two) -> None:
    decision, convention = two
    asked = {"q": "log messages written as JSON lines", **NUMBERS, "look-up": "5"}
    answer = browser(carol).get(PAGE, asked)
    assert answer.status_code == 200
    shown = answer.context["compared"]
    assert (order(shown.today), order(shown.tried)) == ([decision, convention], [convention, decision])
    assert [each.by for each in shown.tried] == [1, -1]
    page = answer.content.decode()
    assert "These answers would change places." in page
    assert "up 1" in page
    assert "down 1" in page
    assert Category.objects.get(workspace=workspace, slug="convention").weights == {"implement": 1.15}
    assert not AuditEvent.objects.filter(subject_kind="category").exists()


def test_with_the_numbers_of_today_nothing_changes(browser, carol, two) -> None:
    answer = browser(carol).get(PAGE, {"q": "log messages", "category": "convention"})
    assert answer.context["form"]["implement"].value() == "1.15"
    assert "No answer would change its place." in answer.content.decode()


def test_it_opens_blank_with_what_the_first_category_has(browser, carol) -> None:
    answer = browser(carol).get(PAGE)
    assert answer.status_code == 200
    assert answer.context["form"]["category"].value() == "convention"
    assert answer.context["form"]["implement"].value() == "1.15"


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"category": "nonsense"}, "Use one of: convention, decision"),
        ({"look-up": "11"}, "A weight is a number from 0 to 10"),
        ({"look-up": "much"}, "Enter a number"),
        ({"look-up": "nan"}, "Enter a number"),
        ({"half_life_days": "0"}, "from 1 to 36,500"),
        ({"colour": "red"}, "Nothing can be tried by “colour”"),
        ({"q": "x" * 30_000}, "20,000"),
        ({"q": "a\0b"}, "Null characters"),
    ],
)
def test_what_will_not_do_is_said(browser, carol, values, said) -> None:
    answer = browser(carol).get(PAGE, {"q": "log messages", **NUMBERS} | values)
    assert answer.status_code == 422
    assert said in answer.content.decode()


def test_it_is_for_curators(browser, alice, carol, client) -> None:
    assert browser(alice).get(PAGE).status_code == 403
    assert browser(carol).post(PAGE).status_code == 405
    assert client.get(PAGE).status_code == 302


def test_the_admin_leads_there(browser, carol, workspace) -> None:
    row = Category.objects.get(workspace=workspace, slug="project")
    page = browser(carol).get(reverse("admin:taxonomy_category_change", args=[row.pk])).content.decode()
    assert f"{PAGE}?category=project" in page
