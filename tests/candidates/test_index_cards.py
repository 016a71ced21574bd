"""Cards: one for each closed issue or merge request, long, through the gate, and found by every search."""

from __future__ import annotations

from typing import Any

import pytest

from apps.candidates.models import Candidate
from apps.candidates.tasks import find_near_by_vector
from apps.memories.models import Memory
from tests.ledger import a_body, approve, fresh, of_person
from tests.pages import text, words

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("pool")]

FIRST = "Refunds arrived twice. The gateway repeats a webhook when we answer late; we answer first and book afterwards."
SECOND = "Closed again after the reopening: bookings are keyed by the gateway's event now, so a repeated one is none."


def a_card(content: str, reference: str = "PAY-77", kind: str = "issue", **changes: Any) -> dict[str, Any]:
    sources = [{"kind": kind, "reference": reference, "url": "https://issues.example.com/PAY-77"}]
    return a_body(content, tier="index", type="bug_fixes", sources=sources, **changes)


def a_long(beginning: str) -> str:
    """Of exactly as many characters as a card may have, no two passages alike."""
    filled = beginning + "".join(f"\n\nComment {number}: what was tried then did not help." for number in range(999))
    return f"{filled[:19_999]}."


@pytest.fixture
def bot_api(api, botty):
    return api(botty)


@pytest.fixture
def card(bot_api, alice) -> Memory:
    proposed = bot_api.post("/api/v1/candidates/", a_card(FIRST)).json()
    return approve(of_person(alice), Candidate.objects.get(pk=proposed["id"])).memory


def test_a_card_of_twenty_thousand_characters_goes_all_the_way(bot_api, api, browser, alice):
    content = a_long(FIRST)
    proposed = bot_api.post("/api/v1/candidates/", a_card(content))
    assert proposed.status_code == 201, proposed.content
    candidate = Candidate.objects.get(pk=proposed.json()["id"])
    page = browser(alice).get(f"/review/{candidate.pk}/")
    assert "Index card" in words(page)
    assert "Comment 300:" in words(page)
    assert 'class="fold' in text(page)
    path = f"/api/v1/candidates/{candidate.pk}/approve/"
    memory = api(alice).post(path, {"version": candidate.version}).json()["memory"]

    assert (memory["tier"], memory["content"]) == ("index", content)
    for more in ("", "&tiers=index", "&tiers=durable&tiers=index"):
        found = bot_api.get(f"/api/v1/memories/search/?q=why+did+refunds+arrive+twice{more}").json()["results"]
        assert [row["number"] for row in found] == [memory["number"]]
    assert bot_api.get("/api/v1/memories/search/?q=why+did+refunds+arrive+twice&tiers=durable").json()["results"] == []
    deep = bot_api.get("/api/v1/memories/search/?q=comment+311+what+was+tried+then&tiers=index").json()["results"]
    assert [row["number"] for row in deep] == [memory["number"]]
    shown = words(browser(alice).get(f"/memories/{memory['number']}/"))
    assert "Index card" in shown


def test_what_is_longer_than_a_card_is_refused_with_the_limit(bot_api):
    for tier, most in (("index", "20,000"), ("durable", "8,000")):
        length = int(most.replace(",", "")) + 1
        answer = bot_api.post("/api/v1/candidates/", a_card("a" * length) | {"tier": tier})
        assert answer.status_code == 422
        assert most in str(answer.json()["errors"])


def test_a_second_card_of_an_issue_is_near_the_first_and_suggested_as_its_successor(bot_api, card, browser, alice):
    """They have hardly a word in common."""
    answer = bot_api.post("/api/v1/candidates/", a_card(SECOND)).json()

    ((near),) = [each for each in answer["near"] if each["id"] == str(card.pk)]
    assert (near["what"], near["how"], near["similarity"]) == ("memory", "card", 1.0)
    assert near["suggests"]["what"] == "replaces"
    assert "one is kept" in near["suggests"]["cues"][0]
    candidate = Candidate.objects.get(pk=answer["id"])
    find_near_by_vector(str(candidate.pk))
    assert fresh(candidate).near[0]["how"] == "card"
    page = words(browser(alice).get(f"/review/{candidate.pk}/"))
    assert "a card of the same issue or merge request" in page
    new = approve(of_person(alice), candidate, supersedes=(card.label,)).memory
    assert fresh(card).status == "superseded"
    found = bot_api.get("/api/v1/memories/search/?q=refunds+arrived+twice+gateway+repeats+webhook").json()["results"]
    assert [row["number"] for row in found] == [new.label]


def test_a_card_that_holds_elsewhere_is_said_to_leave_a_gap(bot_api, card):
    answer = bot_api.post("/api/v1/candidates/", a_card(SECOND, scope={"repos": ["acme/shop"]})).json()
    (near,) = [each for each in answer["near"] if each["id"] == str(card.pk)]
    assert any("does not hold everywhere" in cue for cue in near["suggests"]["cues"])


def test_two_open_cards_of_one_issue_are_near_each_other(bot_api):
    first = bot_api.post("/api/v1/candidates/", a_card(FIRST)).json()
    second = bot_api.post("/api/v1/candidates/", a_card(SECOND)).json()
    assert [(each["what"], each["id"], each["how"]) for each in second["near"]] == [("candidate", first["id"], "card")]


@pytest.mark.parametrize(
    "changes",
    [{"reference": "PAY-78"}, {"kind": "chat"}, {"tier": "durable"}],
    ids=["another issue", "another kind", "no card"],
)
def test_what_is_no_card_of_that_issue_is_not_near_it(bot_api, card, changes):
    tier = changes.pop("tier", "index")
    answer = bot_api.post("/api/v1/candidates/", a_card(SECOND, **changes) | {"tier": tier}).json()
    assert [each for each in answer["near"] if each["how"] == "card"] == []


def test_a_card_of_another_workspace_is_not_near(api, card, other_workspace):
    from tests.conftest import issue

    theirs = api(issue(other_workspace, "their bot", "bot"))
    assert theirs.post("/api/v1/candidates/", a_card(SECOND)).json()["near"] == []


def test_the_same_card_again_joins_the_first(bot_api):
    first = bot_api.post("/api/v1/candidates/", a_card(FIRST)).json()
    again = bot_api.post("/api/v1/candidates/", a_card(FIRST))
    assert (again.status_code, again.json()["duplicate_of"]) == (200, {"what": "candidate", "id": first["id"]})
