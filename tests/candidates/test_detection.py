"""Whether a statement looks as if it replaces, or repeats, one that is known."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

import pytest
from django.contrib.auth.models import User

from apps.accounts.models import Audience, Workspace
from apps.accounts.principal import Principal
from apps.approvals.restrictions import source_restrict
from apps.approvals.services import memory_retire
from apps.candidates.detection import Statement, replacement, suggest, suggestion
from apps.candidates.models import Candidate
from apps.candidates.proposal import ScopeInput
from apps.candidates.tasks import find_near_by_vector
from apps.memories.models import Memory
from tests import ledger
from tests.conftest import Issued

KAFKA = "Events are sent through Kafka.\n\nBilling and shipping read them from there."


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (KAFKA, "Events are written to an outbox. This replaces sending events through Kafka."),
        (KAFKA, "Events go to an outbox instead of Kafka, since nobody wants to run a cluster for events."),
        (KAFKA, "Events go to an outbox. Kafka is switched off for events."),
        (KAFKA, "We moved away from Kafka; events stand in an outbox."),
        ("Calls end after two seconds.", "Calls end after five seconds."),
        ("Calls to the bank end after 2 s.", "Calls to the bank end after 5 s."),
        ("Refunds need a second person.", "Refunds never need a second person."),
        ("Style guide 2023", "Style guide 2024"),
        ("Shipping labels are owned by team Falcon.", "Shipping labels are owned by Heron instead of team Falcon."),
        ("Carts are stored in Redis.", "Carts are no longer stored in Redis; they are stored in PostgreSQL."),
        ("Builds run on Jenkins.", "Builds moved from Jenkins to GitHub Actions."),
        ("A search times out after 30 seconds.", "A search now times out after 10 seconds instead of 30."),
        ("New services use REST.", "New services use gRPC rather than REST."),
    ],
)
def test_plain_cues_make_a_suggestion(old: str, new: str) -> None:
    found = replacement(Statement(old), Statement(new))
    assert found is not None
    assert found.what == "replaces"
    assert 0.6 <= found.score <= 1
    assert all(cue.endswith((".", "”")) for cue in found.cues)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # A possibility, a refusal, a question, the future, a part.
        (KAFKA, "An outbox would replace sending events through Kafka."),
        (KAFKA, "Some day an outbox may supersede Kafka for events."),
        (KAFKA, "The outbox does not replace Kafka for events."),
        (KAFKA, "Should an outbox replace Kafka for events?"),
        (KAFKA, "The outbox partially replaces Kafka for events of billing."),
        (KAFKA, "This proposal replaces Kafka by an outbox for events."),
        # About something else.
        (KAFKA, "Log lines are shipped by Vector instead of Fluentd."),
        (KAFKA, "What a shop sets supersedes the defaults of the platform."),
        (KAFKA, "Billing no longer prints invoices on paper."),
        # The same tool, and another subject.
        (
            "Images are served through CloudFront.",
            "Videos are served through Mux instead of CloudFront, since it transcodes them.",
        ),
        (
            "Retries of the payment client use exponential backoff.",
            "Retries of the mail client no longer use exponential backoff, because mails may wait.",
        ),
        ("Docker images are built with Kaniko.", "Lambda packages are built with SAM instead of Kaniko."),
        (
            "TLS certificates are issued by Let's Encrypt.",
            "TLS certificates for internal hosts are issued by our own CA instead of Let's Encrypt.",
        ),
        ("The discount engine rounds half up.", "The tax engine rounds half even instead of half up."),
        ("Logs of the shop are kept for a week.", "Logs of the ledger are kept for ten years instead of a week."),
        ("The mobile app caches prices for an hour.", "The web shop no longer caches prices for an hour."),
        ("Backups are written to tape.", "Exports are written to S3 instead of tape."),
        ("The order service uses Kafka.", "The invoice service moved from Kafka to an outbox."),
        ("Team Otter owns billing.", "Team Heron owns search instead of Team Otter."),
        # The same subject, and both hold.
        ("Team X owns repo A.", "Team X reviews repo B."),
        ("Charges are tried again three times.", "Refunds are paid out at night."),
        ("Calls to the bank end after two seconds.", "Calls to the warehouse of another firm end after five seconds."),
        # An earlier version is no successor.
        ("Style guide 2024", "Style guide 2023"),
        ("Style guide 2024", "Style guide 2024"),
        ("", "Anything."),
        ("決済は三回まで再試行する。", "支払いは夜に行う。"),
    ],
)
def test_anything_else_makes_none(old: str, new: str) -> None:
    assert suggest(old, new) is None


def test_who_is_named_is_meant() -> None:
    old = Statement("Events are sent through Kafka.", ("M-12", "acme/adr:0007-kafka"))
    assert suggestion(old, Statement("This supersedes M-12: an outbox it is.")) is not None
    assert suggestion(old, Statement("This supersedes M-120: an outbox it is.")) is None
    assert suggestion(old, Statement("Outbox first. It replaces acme/adr:0007-kafka as a whole.")) is not None
    announced = Statement("Status: superseded by acme/adr:0031-outbox.\n\nEvents are sent through Kafka.")
    assert suggestion(announced, Statement("Outbox first.", ("acme/adr:0031-outbox",))) is not None
    assert suggestion(announced, Statement("Outbox first.", ("acme/adr:0032-other",))) is None


def test_the_same_in_nearly_the_same_words_repeats() -> None:
    old = Statement("Refunds are paid out in the currency of the invoice, never converted.")
    again = suggestion(old, Statement("Refunds are paid out in the currency of the invoice and never converted!"))
    assert again is not None
    assert again.what == "repeats"
    other = suggestion(old, Statement("Refunds are paid out in the currency of the customer's country, converted."))
    assert other is None or other.what == "replaces"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("The mobile team uses Realm on every phone.", "The mobile team uses SQLite on every phone."),
        ("Java services are built with Maven.", "Java services are built with Gradle."),
        ("Team Otter owns the order state machine.", "Team Otter owns the refund state machine."),
        ("Calls end after two seconds.", "Calls end after five seconds."),
    ],
)
def test_another_word_or_value_is_no_repetition(old: str, new: str) -> None:
    found = suggestion(Statement(old), Statement(new))
    assert found is None or found.what == "replaces"


def test_the_same_text_repeats_itself_and_replaces_nothing() -> None:
    text = "Widget builds of lambdas are packaged with SAM instead of Kaniko."
    for again in (text, text.replace(".", "!")):
        found = suggestion(Statement(text), Statement(again))
        assert found is not None
        assert found.what == "repeats"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "Retries wait longer each time.",
            "Retries wait longer each time!",
            "neither says anything that the other does not",
        ),
        (
            "Retries, refunds and chargebacks wait exponentially longer each time.",
            "Retries, refunds and chargebacks wait exponentially longer each time, up to a day.",
            "this adds to what the other says",
        ),
        (
            "Retries, refunds and chargebacks wait exponentially longer each time, up to a day.",
            "Retries, refunds and chargebacks wait exponentially longer each time.",
            "this says nothing beyond the other",
        ),
    ],
)
def test_a_repetition_says_which_of_the_two_says_more(old: str, new: str, said: str) -> None:
    found = suggestion(Statement(old), Statement(new))
    assert found is not None
    assert found.what == "repeats"
    (cue,) = found.cues
    assert said in cue


@pytest.mark.parametrize(
    "text",
    ["instead of " * 4_000, "a. " * 20_000, "no longer " * 9_000, "is replaced " * 9_000, "1" * 60_000, "x " * 50_000],
)
def test_no_text_takes_long(text: str) -> None:
    started = time.process_time()
    suggest(text, text[::-1])
    suggest(text, "This replaces " + text)
    assert time.process_time() - started < 2


# --- on the way through the queue -------------------------------------------------------------------------------


@pytest.fixture
def bot(botty: Issued) -> Principal:
    return ledger.of_token(botty.token)


@pytest.fixture
def known(bot: Principal, alice: User) -> Memory:
    return ledger.remember(bot, ledger.of_person(alice), "Calls to the card network end after two seconds.")


def suggestions(candidate: Candidate) -> dict[str, Any]:
    return {entry["id"]: entry["suggests"] for entry in ledger.fresh(candidate).near if "suggests" in entry}


@pytest.mark.django_db
@pytest.mark.usefixtures("pool")
def test_a_proposal_carries_the_suggestion_and_applies_nothing(known: Memory, bot: Principal) -> None:
    candidate = ledger.propose(bot, "Calls to the card network end after five seconds.")
    found = suggestions(candidate)[str(known.pk)]
    assert found["what"] == "replaces"
    assert "differ in a value" in found["cues"][0]
    assert ledger.fresh(candidate).supersedes == []
    find_near_by_vector(str(candidate.pk))
    assert str(known.pk) in suggestions(candidate)
    assert ledger.fresh(known).status == "active"


@pytest.mark.django_db
@pytest.mark.usefixtures("pool")
@pytest.mark.parametrize(
    ("changes", "suggested"),
    [
        ({}, True),
        ({"scope": ScopeInput(firm=True)}, True),
        ({"scope": ScopeInput(repos=("acme/pay", "acme/shop"))}, True),
        ({"scope": ScopeInput(repos=("acme/shop",))}, False),
        ({"valid_from": datetime(2020, 1, 1, tzinfo=UTC)}, False),
        ({"valid_from": datetime(2024, 1, 1, tzinfo=UTC)}, True),
    ],
)
def test_what_is_replaced_is_replaced_everywhere_and_from_then_on(
    bot: Principal, alice: User, changes: dict[str, Any], suggested: bool
) -> None:
    begun = datetime(2022, 1, 1, tzinfo=UTC)
    known = ledger.remember(bot, ledger.of_person(alice), "Calls to the bank end after two seconds.", valid_from=begun)
    candidate = ledger.propose(bot, "Calls to the bank end after five seconds.", **changes)
    assert (str(known.pk) in suggestions(candidate)) is suggested
    named = ledger.propose(bot, f"Budgets end calls; this supersedes {known.label}.", **changes)
    (found,) = suggestions(named).values()
    assert len(found["cues"]) == (1 if suggested else 2)


@pytest.mark.django_db
@pytest.mark.usefixtures("pool")
def test_what_the_text_names_is_near(known: Memory, bot: Principal) -> None:
    candidate = ledger.propose(bot, f"Timeouts follow the budget of each request; this supersedes {known.label}.")
    (entry,) = [each for each in ledger.fresh(candidate).near if each["id"] == str(known.pk)]
    assert entry["how"] == "name"
    assert entry["suggests"]["score"] >= 0.9


@pytest.mark.django_db
@pytest.mark.usefixtures("pool")
def test_the_reviewer_is_asked_and_can_take_it_up_with_one_link(
    known: Memory, bot: Principal, alice: User, browser: Any
) -> None:
    candidate = ledger.propose(bot, "Calls to the card network end after five seconds.")
    address = f"/review/{candidate.pk}/"
    page = browser(alice).get(address).content.decode()
    assert f"It may replace {known.label}." in page
    assert f"replaces={known.label}" in page
    taken_up = browser(alice).get(address, {"replaces": known.label})
    assert taken_up.context["approve"]["supersedes"].value() == known.label
    assert taken_up.context["approve"].amends is True
    untouched = browser(alice).get(address, {"replaces": "M-999"})
    assert untouched.context["approve"].amends is False
    assert browser(alice).get(address, {"type": "tooling_setup", "replaces": known.label}).status_code == 200


@pytest.mark.django_db
@pytest.mark.usefixtures("pool")
def test_nothing_is_suggested_about_what_was_decided_or_has_ended(
    known: Memory, bot: Principal, alice: User, browser: Any
) -> None:
    other = ledger.propose(bot, "Calls to the card network end after three seconds.")
    candidate = ledger.propose(bot, "Calls to the card network end after five seconds.")
    address, said = f"/review/{candidate.pk}/", "A suggestion; nothing is replaced"
    assert browser(alice).get(address).content.decode().count(said) == 2
    ledger.reject(ledger.of_person(alice), other)
    page = browser(alice).get(address).content.decode()
    assert "the other candidate." not in page
    assert page.count(said) == 1
    memory_retire(principal=ledger.of_person(alice), reference=known.pk, reason="It has ended.")
    answer = browser(alice).get(address)
    assert said not in answer.content.decode()
    assert answer.context["sheet"].suggested == []


@pytest.mark.django_db
@pytest.mark.usefixtures("pool")
def test_cues_are_for_those_who_may_read_both_texts(
    known: Memory, bot: Principal, robo: Issued, alice: User, carol: User, workspace: Workspace, browser: Any, api: Any
) -> None:
    hidden = ledger.propose(bot, "Calls to the bank end after three seconds.")
    mine = ledger.propose(ledger.of_token(robo.token), "Calls to the bank end after five seconds.")
    assert str(hidden.pk) in suggestions(mine)
    shown = {row["id"]: row for row in api(robo).get(f"/api/v1/candidates/{mine.pk}/").json()["near"]}
    assert shown[str(hidden.pk)]["content"] is None
    assert "suggests" not in shown[str(hidden.pk)]
    board = Audience.objects.create(workspace=workspace, name="board")
    source = known.evidence.get().source
    source_restrict(principal=ledger.of_person(carol), source_id=source.pk, audience_id=board.pk)
    late = ledger.propose(bot, "Calls to the card network end after nine seconds.")
    page = browser(alice).get(f"/review/{late.pk}/")
    assert page.context["sheet"].suggested == []
    assert "two seconds" not in page.content.decode()


@pytest.mark.django_db
@pytest.mark.usefixtures("pool")
def test_hostile_text_in_a_cue_is_text(bot: Principal, alice: User, browser: Any) -> None:
    hostile = "<img src=x onerror=alert(1)> calls end after two seconds."
    ledger.remember(bot, ledger.of_person(alice), hostile)
    candidate = ledger.propose(bot, "<img src=x onerror=alert(1)> calls end after five seconds.")
    assert suggestions(candidate)
    assert "<img" not in browser(alice).get(f"/review/{candidate.pk}/").content.decode()


@pytest.mark.django_db
@pytest.mark.usefixtures("pool")
def test_a_successor_that_holds_in_fewer_places_is_flagged(
    bot: Principal, alice: User, browser: Any, api: Any, botty: Issued
) -> None:
    known = ledger.remember(bot, ledger.of_person(alice), "All services log in JSON.", scope=ScopeInput(firm=True))
    narrow = ledger.propose(
        bot, "Kiosks log plain text.", scope=ScopeInput(repos=("acme/kiosk",)), supersedes=(str(known.pk),)
    )
    wide = ledger.propose(bot, "Services log in logfmt.", scope=ScopeInput(firm=True), supersedes=(str(known.pk),))
    flags = api(botty).get(f"/api/v1/candidates/{narrow.pk}/").json()["flags"]
    assert {
        "kind": "narrower-than-target",
        "field": "supersedes",
        "shown": known.label,
        "memory": str(known.pk),
    } in flags
    page = browser(alice).get(f"/review/{narrow.pk}/").content.decode()
    assert "holds where this would not" in page
    assert "holds where this would not" not in browser(alice).get(f"/review/{wide.pk}/").content.decode()
