"""What was captured, where reviewers see it: the list, one event, the drops of a week, and overruling one."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, connection
from django.db.backends.utils import CursorWrapper
from django.db.models.functions import Now
from django.test import Client
from django.test.utils import CaptureQueriesContext

from apps.accounts.models import Audience, AuditEvent, Workspace
from apps.accounts.principal import Principal
from apps.approvals.restrictions import source_restrict
from apps.candidates.models import Candidate, CandidateStatus
from apps.candidates.proposal import ScopeInput
from apps.capture.models import CaptureEvent, EventOutcome, EventState
from apps.capture.views import READ_QUICKLY, ROWS
from apps.sources.models import Source
from apps.sources.services import SourceInput
from tests import ledger
from tests.capture.doubles import DECISION, an_event
from tests.capture.finished import a_fact_that_became_nothing, done, fact_of, in_state
from tests.conftest import Issued, issue
from tests.pages import form, text, words

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("pool")]

CAPTURED = "/captured/"
DROPS = "/captured/drops/"
HOSTILE = "<img src=x onerror=alert(1)>"
HIDDEN = "\u202egnp.exe\u202c"


@pytest.fixture
def bot(botty: Issued) -> Principal:
    return ledger.of_token(botty.token)


@pytest.fixture
def reviewer(alice: User) -> Principal:
    return ledger.of_person(alice)


@pytest.fixture
def page(browser: Any, alice: User) -> Client:
    return browser(alice)


def at(event: CaptureEvent) -> str:
    return f"/captured/{event.pk}/"


def shown(answer: Any) -> list[UUID]:
    return [row.event.pk for row in answer.context["rows"]]


# --- who ----------------------------------------------------------------------------------------------------
def test_reviewers_alone_see_it(browser: Any, page: Client, bob: User, bot: Principal) -> None:
    for path in (CAPTURED, DROPS, at(done(bot))):
        assert page.get(path).status_code == 200
        assert page.head(path).status_code == 200
        assert page.post(path).status_code == 405
        assert browser(bob).get(path).status_code == 403
        assert browser().get(path).status_code == 302


def test_reviewers_alone_overrule_and_only_by_sending_a_form(
    browser: Any, page: Client, bob: User, bot: Principal
) -> None:
    path = f"{at(done(bot))}overrule/"
    assert page.get(path).status_code == 405
    assert browser().post(path).status_code == 302
    assert browser(bob).post(path).status_code == 403
    assert not Candidate.objects.exists()


def test_another_workspace_has_its_own(browser: Any, charlie: User, bot: Principal) -> None:
    event = done(bot, content="Only firm knows this, because we decided so.")
    theirs = browser(charlie)
    for path in (CAPTURED, DROPS):
        assert "Only firm knows" not in text(theirs.get(path))
        assert "acme/pay" not in text(theirs.get(path))
    assert theirs.get(at(event)).status_code == 404
    assert theirs.post(f"{at(event)}overrule/").status_code == 404
    in_state(bot, EventState.DEAD)
    assert "given up" not in words(theirs.get(CAPTURED))
    assert "Nothing was handed over yet" in words(theirs.get(CAPTURED))


@pytest.fixture
def restricted(workspace: Workspace, bot: Principal, dave: User) -> CaptureEvent:
    """What came from a source that only the board may see; dave is of it."""
    board = Audience.objects.create(workspace=workspace, name="board")
    board.members.add(dave)
    Source.objects.create(workspace=workspace, kind="chat", reference="board/1", audience=board)
    return done(bot, content="The board sells the firm.", sources=(SourceInput(kind="chat", reference="board/1"),))


def test_what_is_restricted_is_not_there_for_others(
    page: Client, browser: Any, dave: User, restricted: CaptureEvent
) -> None:
    assert page.get(at(restricted)).status_code == 404
    assert page.post(f"{at(restricted)}overrule/").status_code == 404
    for path in (CAPTURED, DROPS):
        seen = words(page.get(path))
        assert "The board" not in seen
        assert "board/1" not in seen
        assert "botty" not in seen
    assert page.get(DROPS).context["drops"].dropped == 0
    theirs = browser(dave)
    assert "The board sells the firm." in words(theirs.get(at(restricted)))
    assert shown(theirs.get(CAPTURED)) == [restricted.pk]


def test_of_a_fact_whose_candidate_was_restricted_since_nothing_is_told(
    page: Client, browser: Any, bot: Principal, dave: User, workspace: Workspace
) -> None:
    candidate = ledger.propose(bot, "The board sells the firm.", sources=(ledger.a_source("board/2"),))
    fact = fact_of(candidate, quote="We sell in May.", reason="Said by the chair.")
    event = done(bot, EventOutcome.QUEUED, facts=(fact,))
    board = Audience.objects.create(workspace=workspace, name="board")
    board.members.add(dave)
    source = Source.objects.get(reference="board/2")
    source_restrict(principal=ledger.of_person(dave, via="admin"), source_id=source.pk, audience_id=board.pk)
    for path in (CAPTURED, at(event)):
        seen = text(page.get(path))
        for told in ("The board sells", "We sell in May", "Said by the chair", str(candidate.pk)):
            assert told not in seen, (path, told)
    assert "restricted to others" in words(page.get(at(event)))
    assert "We sell in May." in words(browser(dave).get(at(event)))


# --- the list -----------------------------------------------------------------------------------------------
def test_each_event_says_what_became_of_it_and_why(page: Client, bot: Principal, reviewer: Principal) -> None:
    candidate = ledger.propose(bot, "Webhooks are retried with jitter.")
    done(bot, EventOutcome.QUEUED, facts=(fact_of(candidate),), external_id="acme/pay!7@abc")
    done(bot, EventOutcome.DROPPED_PREFILTER)
    in_state(bot, EventState.FAILED)
    answer = page.get(CAPTURED)
    seen = words(answer)
    for said in (
        *("Queued for review: 1.", "acme/pay!7@abc", "Webhooks are retried with jitter.", "botty", "Merge request"),
        *("It is a whole-message acknowledgement.", "Dropped as noise", "The model did not answer."),
    ):
        assert said in seen, said
    assert f'href="/review/{candidate.pk}/"' in text(answer)
    ledger.approve(reviewer, candidate)
    (row,) = page.get(CAPTURED, {"outcome": "queued"}).context["rows"]
    assert [brought.status for brought in row.brought] == [CandidateStatus.APPROVED]


def test_an_event_is_called_by_the_title_of_its_source(page: Client, bot: Principal) -> None:
    source = SourceInput(kind="merge_request", reference="acme/pay!7", title="Retry webhooks with jitter")
    done(bot, sources=(source,), external_id="")
    answer = page.get(CAPTURED)
    assert "Retry webhooks with jitter" in words(answer)
    assert "sha256:" not in text(answer)


def test_of_many_candidates_a_few_stand_in_the_list_and_all_on_the_page(page: Client, bot: Principal) -> None:
    candidates = [ledger.propose(bot) for _ in range(5)]
    event = done(bot, EventOutcome.QUEUED, facts=tuple(map(fact_of, candidates)))
    listed, whole = text(page.get(CAPTURED)), text(page.get(at(event)))
    assert sum(f"/review/{candidate.pk}/" in listed for candidate in candidates) == 3
    assert "and 2 more" in words(page.get(CAPTURED))
    assert all(f"/review/{candidate.pk}/" in whole for candidate in candidates)


def test_the_filter_narrows(page: Client, bot: Principal, robo: Issued) -> None:
    agent = ledger.of_token(robo.token)
    queued = done(bot, EventOutcome.QUEUED)
    noise = done(agent, EventOutcome.DROPPED_PREFILTER, kind="chat")
    waits = an_event(agent, kind="incident")
    for query, expected in (
        ({}, [waits, noise, queued]),
        ({"outcome": "queued"}, [queued]),
        ({"outcome": "excluded"}, []),
        ({"state": "received"}, [waits]),
        ({"state": "done", "kind": "chat"}, [noise]),
        ({"origin": "robo"}, [waits, noise]),
        ({"origin": "robo", "outcome": "dropped_prefilter"}, [noise]),
        ({"days": "1"}, [waits, noise, queued]),
        ({"kind": "", "origin": " "}, [waits, noise, queued]),
    ):
        assert shown(page.get(CAPTURED, query)) == [event.pk for event in expected], query


def test_days_count_from_when_it_was_received(page: Client, bot: Principal) -> None:
    old = CaptureEvent(**_columns(bot), external_id="old", received_at=_ago(days=3))
    old.save(force_insert=True)
    assert shown(page.get(CAPTURED, {"days": "2"})) == []
    assert shown(page.get(CAPTURED, {"days": "4"})) == [old.pk]


def test_tabs_and_facets_count_what_the_filter_admits(page: Client, bot: Principal, robo: Issued) -> None:
    for _ in range(2):
        done(bot, EventOutcome.DROPPED_PREFILTER, kind="chat")
    done(bot, EventOutcome.QUEUED, kind="issue")
    done(ledger.of_token(robo.token), EventOutcome.QUEUED, kind="issue")
    answer = page.get(CAPTURED, {"origin": "botty"})
    assert answer.context["counts"] == {
        "": 3, "queued": 1, "quarantined": 0, "duplicate": 0, "excluded": 0, "dropped_classifier": 0,
        "dropped_prefilter": 2,
    }  # fmt: skip
    facets = {name: [(each.value, each.count) for each in values] for name, values in _facets(answer).items()}
    assert facets == {"kind": [("chat", 2), ("issue", 1)], "state": [("done", 3)], "origin": [("botty", 3)]}


def _facets(answer: Any) -> Any:
    return answer.context["facets"].values


def test_counts_are_bounded(page: Client, bot: Principal, monkeypatch: pytest.MonkeyPatch) -> None:
    for room in ("apps.capture.browsing", "apps.memories.facets"):
        monkeypatch.setattr(f"{room}.MOST", 2)
    for _ in range(4):
        done(bot)
    answer = page.get(CAPTURED)
    assert answer.context["counts"][""] == 3
    assert not answer.context["facets"].complete
    assert len(answer.context["rows"]) == 4


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ({"colour": "red"}, "“colour”"),
        ({"outcome": "lost"}, "“lost” is not an outcome. Use one of: queued,"),
        ({"state": "gone"}, "“gone” is not a state."),
        ({"kind": "pigeon"}, "“pigeon” is not a kind of source."),
        ({"days": "soon"}, "Give a whole number of days"),
        ({"days": "0"}, "greater than or equal to 1"),
        ({"origin": "x" * 201}, "at most 200 characters"),
        ({"cursor": "abc"}, "This cursor was not given out"),
        ({HOSTILE: "x"}, "“&lt;img src=x"),
        ({"kind": ["chat", "issue"]}, "This takes one value; there are 2."),
        ({"outcome": ["queued", "excluded"]}, "This takes one value; there are 2."),
        ({"cursor": ["abc", "abd"]}, "“cursor” takes one value; there are 2."),
    ],
)
def test_what_is_not_understood_is_said_and_nothing_is_listed(
    page: Client, bot: Principal, query: dict[str, str], says: str
) -> None:
    done(bot)
    answer = page.get(CAPTURED, query)
    assert answer.status_code == 422
    assert says in text(answer)
    assert "Nothing is listed" in words(answer)
    assert "botty" not in text(answer)
    assert HOSTILE not in text(answer)


def test_a_secret_in_the_filter_is_not_repeated(page: Client) -> None:
    assert "AKIAIOSFODNN7EXAMPLE" not in text(page.get(CAPTURED, {"origin": "AKIAIOSFODNN7EXAMPLE"}))


def test_pages_follow_each_other_within_the_budget(
    page: Client, bot: Principal, django_assert_max_num_queries: Any
) -> None:
    candidate = ledger.propose(bot)
    events = [done(bot, EventOutcome.QUEUED, facts=(fact_of(candidate),)) for _ in range(2 * ROWS + 5)]
    there = []
    answer = page.get(CAPTURED)
    while True:
        there.append(shown(answer))
        if answer.context["next"] is None:
            break
        with django_assert_max_num_queries(12) as captured:
            answer = page.get(answer.context["next"])
        assert not any(" OFFSET " in entry["sql"] for entry in captured.captured_queries)
    assert [len(found) for found in there] == [ROWS, ROWS, 5]
    assert [pk for found in there for pk in found] == [event.pk for event in reversed(events)]
    assert shown(page.get(answer.context["previous"])) == there[1]


@pytest.mark.parametrize("path", [CAPTURED, DROPS])
def test_the_number_of_queries_does_not_grow_with_the_rows(page: Client, bot: Principal, path: str) -> None:
    def more() -> None:
        done(bot, EventOutcome.QUEUED, facts=(fact_of(ledger.propose(bot)),))
        done(bot, EventOutcome.DROPPED_CLASSIFIER)
        in_state(bot, EventState.FAILED)

    more()
    with CaptureQueriesContext(connection) as few:
        page.get(path)
    for _ in range(5):
        more()
    with CaptureQueriesContext(connection) as many:
        page.get(path)
    assert len(many) == len(few) <= 12


def test_the_list_reads_no_payload(page: Client, bot: Principal) -> None:
    done(bot)
    with CaptureQueriesContext(connection) as queries:
        page.get(CAPTURED)
    assert not any('"payload"' in query["sql"] for query in queries)


# --- how the inbox is ---------------------------------------------------------------------------------------
def test_an_inbox_without_anything_to_do_says_so(page: Client, bot: Principal) -> None:
    done(bot)
    assert "Nothing waits" in words(page.get(CAPTURED))


def test_what_waits_is_counted(page: Client, bot: Principal) -> None:
    an_event(bot)
    in_state(bot, EventState.FAILED, next_attempt_at=_ago(minutes=-5))
    in_state(bot, EventState.PROCESSING, lease=uuid4(), leased_until=_ago(minutes=-1))
    seen = words(page.get(CAPTURED))
    assert "1 waits to be read, 1 is being read, 1 failed and is tried again. The oldest" in seen
    assert "given up" not in seen
    assert "No worker takes anything up" not in seen


@pytest.mark.parametrize("state", [EventState.RECEIVED, EventState.FAILED])
def test_what_is_overdue_is_a_warning(page: Client, bot: Principal, state: EventState) -> None:
    event = in_state(bot, state, next_attempt_at=_ago(minutes=9))
    assert "No worker takes anything up" not in words(page.get(CAPTURED))
    CaptureEvent.objects.filter(pk=event.pk).update(next_attempt_at=_ago(minutes=14))
    seen = words(page.get(CAPTURED))
    assert "No worker takes anything up. Something has been due for 14 minutes" in seen


def test_what_a_dead_worker_holds_is_a_warning(page: Client, bot: Principal) -> None:
    in_state(bot, EventState.PROCESSING, lease=uuid4(), leased_until=_ago(minutes=30), next_attempt_at=_ago(minutes=40))
    assert "Something has been due for 30 minutes" in words(page.get(CAPTURED))


def test_what_was_given_up_is_a_warning(page: Client, bot: Principal) -> None:
    event = in_state(bot, EventState.DEAD, attempts=8)
    answer = page.get(CAPTURED)
    assert "1 was given up after too many attempts" in words(answer)
    assert 'href="/captured/?state=dead"' in text(answer)
    assert shown(page.get(CAPTURED, {"state": "dead"})) == [event.pk]
    seen = words(page.get(at(event)))
    assert "The model did not answer." in seen
    assert "manage.py capture retry" in seen
    assert "8 of 8" in seen


def test_a_database_that_is_down_is_no_empty_inbox(page: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    execute = CursorWrapper.execute

    def fail(self: Any, sql: str, *arguments: Any, **options: Any) -> Any:
        if "capture_captureevent" in sql:
            raise OperationalError("gone")
        return execute(self, sql, *arguments, **options)

    monkeypatch.setattr(CursorWrapper, "execute", fail)
    for path in (CAPTURED, DROPS, f"/captured/{uuid4()}/"):
        answer = page.get(path)
        assert answer.status_code == 503
        assert "Back in a moment" in words(answer)


# --- one event ----------------------------------------------------------------------------------------------
def test_the_page_of_an_event_has_everything(page: Client, bot: Principal) -> None:
    candidate = ledger.propose(bot, "Webhooks are retried with jitter.", confidence=0.86)
    facts = (
        fact_of(candidate, quote="we decided to retry with jitter"),
        a_fact_that_became_nothing(content="CI is red today.", reason="It is about a passing state."),
        a_fact_that_became_nothing(content="", outcome="excluded", reason="It holds personal data."),
    )
    source = SourceInput(
        kind="merge_request", reference="acme/pay!7", title="Retry webhooks", url="https://git.example.com/7"
    )
    event = done(
        bot,
        EventOutcome.QUEUED,
        f"{DECISION} Ask jane@acme.com about it.",
        reason="Queued for review: 1, excluded: 1, not taken: 1.",
        facts=facts,
        columns={"extractor": "llm", "calls": 2, "prompt_tokens": 1234, "completion_tokens": 56, "attempts": 2},
        sources=(source,),
        scope=ScopeInput(repos=("acme/pay",), domains=("billing",)),
    )
    answer = page.get(at(event))
    seen = words(answer)
    for said in (
        *("Retry webhooks", "Queued for review: 1, excluded: 1, not taken: 1.", "we decided to retry with jitter"),
        *("86 %", "tooling setup", "CI is red today.", "It is about a passing state.", "Not taken", "Excluded"),
        *("It holds personal data.", "acme/pay", "billing", "llm", "1,234 in, 56 out", "botty", "Masked: "),
    ):
        assert said in seen, said
    assert f'href="/review/{candidate.pk}/"' in text(answer)
    assert 'href="https://git.example.com/7"' in text(answer)
    assert "jane@acme.com" not in text(answer)
    assert "overrule/" not in text(answer)


def test_a_fact_has_one_pill(page: Client, bot: Principal, reviewer: Principal) -> None:
    """What became of its candidate says more than that it was handed on."""
    pending, approved = ledger.propose(bot), ledger.propose(bot)
    ledger.approve(reviewer, approved)
    facts = (
        fact_of(pending),
        fact_of(approved),
        fact_of(approved, outcome="quarantined"),
        fact_of(approved, outcome="duplicate"),
        a_fact_that_became_nothing(),
    )
    listed = text(page.get(at(done(bot, EventOutcome.QUEUED, facts=facts)))).split('<li class="near">')[1:]
    pills = [re.findall(r'<span class="status [^>]*>(?:<svg.*?</svg>)?([^<]+)', fact, re.DOTALL) for fact in listed]
    assert pills == [["Pending"], ["Approved"], ["Approved"], ["Known already"], ["Not taken"]]
    assert "What says it already (approved)" in words(page.get(at(CaptureEvent.objects.get())))


def test_an_address_that_is_no_web_address_is_no_link(page: Client, bot: Principal) -> None:
    event = CaptureEvent(**_columns(bot), external_id="x")
    event.sources = [{"kind": "chat", "reference": "r", "title": "t", "url": "javascript:alert(1)", "quote": ""}]
    event.save(force_insert=True)
    assert "javascript:" not in text(page.get(at(event)))


def test_a_failed_event_says_when_it_is_tried_again(page: Client, bot: Principal) -> None:
    event = in_state(bot, EventState.FAILED, attempts=3, next_attempt_at=_ago(minutes=-20))
    seen = words(page.get(at(event)))
    assert "The model did not answer." in seen
    assert "3 of 8" in seen
    assert "tried again in 19" in seen.replace("\xa0", " ") or "tried again in 20" in seen.replace("\xa0", " ")


def test_an_event_costs_few_queries_however_many_facts_it_has(page: Client, bot: Principal) -> None:
    few = done(bot, EventOutcome.QUEUED, facts=(fact_of(ledger.propose(bot)),))
    many = done(bot, EventOutcome.QUEUED, facts=tuple(fact_of(ledger.propose(bot)) for _ in range(8)))
    with CaptureQueriesContext(connection) as of_few:
        page.get(at(few))
    with CaptureQueriesContext(connection) as of_many:
        page.get(at(many))
    assert len(of_many) == len(of_few) <= 10


def test_no_more_of_long_material_is_shown_than_a_candidate_takes(page: Client, bot: Principal) -> None:
    event = done(bot, content=f"{'We talked about nothing. ' * 4_000}THE END")
    seen = text(page.get(at(event)))
    assert "THE END" not in seen
    assert "the beginning of 100,007 characters" in seen
    assert len(seen) < 60_000


def test_an_unknown_event_is_not_there(page: Client) -> None:
    assert page.get(f"/captured/{uuid4()}/").status_code == 404
    assert page.post(f"/captured/{uuid4()}/overrule/").status_code == 404
    assert page.get("/captured/7/").status_code == 404


# --- hostile text ---------------------------------------------------------------------------------------------
def _ago(**time: float) -> Any:
    return Now() - timedelta(**time)


def _columns(principal: Principal, **changes: Any) -> dict[str, Any]:
    """A row that no check has looked at."""
    values: dict[str, Any] = {
        "workspace": principal.workspace,
        "kind": "chat",
        "content_hash": "0" * 64,
        "size": 10,
        "scope": {"firm": True, "domains": [], "repos": []},
        "sources": [{"kind": "chat", "reference": "r", "title": "", "url": "", "quote": ""}],
        "origin_token": principal.token,
        "origin_name": principal.name,
    }
    return values | changes


@pytest.mark.parametrize("hostile", [HOSTILE, HIDDEN], ids=["markup", "hidden characters"])
def test_hostile_text_is_text(page: Client, bot: Principal, hostile: str) -> None:
    values = _columns(
        bot,
        scope={"firm": False, "domains": [hostile], "repos": [hostile]},
        origin_name=hostile,
        sources=[
            {"kind": "chat", "reference": hostile, "title": hostile, "url": "", "quote": hostile, "commit": hostile}
        ],
    )
    facts = [
        a_fact_that_became_nothing(content=hostile, reason=hostile, quote=hostile, type=hostile),
        a_fact_that_became_nothing(content=hostile, outcome="excluded"),
    ]
    event = CaptureEvent(
        **values, external_id=hostile, payload=hostile, notes=[hostile], facts=facts, state=EventState.DONE,
        outcome=EventOutcome.EXCLUDED, reason=hostile, finished_at=Now(), extractor=hostile[:20], last_error=hostile,
    )  # fmt: skip
    event.save(force_insert=True)
    dead = CaptureEvent(**values, external_id=f"{hostile} 2", state=EventState.DEAD, last_error=hostile)
    dead.save(force_insert=True)
    for path, least in ((CAPTURED, 6), (at(event), 12), (at(dead), 6), (DROPS, 3)):
        seen = text(page.get(path))
        assert "<img" not in seen, path
        if hostile == HOSTILE:
            assert seen.count("&lt;img") >= least, path
        else:
            assert '<mark class="hidden"' in seen, path


# --- overruling -----------------------------------------------------------------------------------------------
def test_a_wrong_drop_becomes_a_candidate_in_one_click(page: Client, bot: Principal) -> None:
    event = done(bot, content=DECISION)
    action = f"{at(event)}overrule/"
    for path in (at(event), DROPS):
        assert form(page.get(path), action) == {}
    answer = page.post(action, follow=True)
    candidate = Candidate.objects.get()
    assert answer.redirect_chain == [(f"/review/{candidate.pk}/", 303)]
    assert "A candidate was made of the drop." in words(answer)
    assert DECISION in words(answer)
    assert (candidate.content, candidate.origin_name, candidate.status) == (DECISION, "botty", "pending")
    audited = AuditEvent.objects.get(verb="overrule drop")
    assert (audited.actor, audited.subject_id) == ("alice", str(event.pk))
    seen = words(page.get(at(event)))
    assert "alice overruled the drop" in seen
    assert "Overruled" in seen
    assert "What was dropped" not in seen
    assert [brought.id for row in page.get(CAPTURED).context["rows"] for brought in row.brought] == [candidate.pk]


def test_overruling_counts_in_the_false_drop_rate(page: Client, bot: Principal) -> None:
    events = [done(bot, content=f"{DECISION} Nr. {number}.") for number in range(3)]
    done(bot, EventOutcome.QUEUED)
    done(bot, days_ago=8)
    assert _figures(page.get(DROPS)) == ["3", "0", "0.0 %"]
    page.post(f"{at(events[0])}overrule/")
    answer = page.get(DROPS)
    assert _figures(answer) == ["3", "1", "33.3 %"]
    assert {row.event.pk for row in answer.context["rows"]} == {events[1].pk, events[2].pk}


def _figures(answer: Any) -> list[str]:
    return re.findall(r"<dd>(.*?)</dd>", text(answer))[:3]


@pytest.mark.parametrize("method", ["again", "not dropped", "not kept"])
def test_what_cannot_be_overruled_says_why(page: Client, bot: Principal, method: str) -> None:
    if method == "again":
        event = done(bot)
        page.post(f"{at(event)}overrule/")
    elif method == "not dropped":
        event = done(bot, EventOutcome.QUEUED)
    else:
        event = done(bot, columns={"payload": ""})
    before = Candidate.objects.count()
    answer = page.post(f"{at(event)}overrule/")
    assert answer.status_code == 409
    said = {"again": "was overruled before", "not dropped": "was not dropped", "not kept": "is no longer kept"}
    assert said[method] in words(answer)
    assert 'role="alert"' in text(answer)
    assert Candidate.objects.count() == before
    assert f'action="{at(event)}overrule/"' not in text(answer)


def test_what_must_not_be_remembered_is_not_remembered_by_overruling_either(page: Client, bot: Principal) -> None:
    event = done(bot, EventOutcome.EXCLUDED)
    CaptureEvent.objects.filter(pk=event.pk).update(payload="password = hunter2hunter2hunter2")
    answer = page.post(f"{at(event)}overrule/")
    assert answer.status_code == 422
    assert "No candidate was made." in words(answer)
    assert not Candidate.objects.exists()
    assert not AuditEvent.objects.filter(verb="overrule drop").exists()


def test_a_full_queue_is_said_and_the_drop_stays(
    page: Client, workspace: Workspace, bot: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apps.candidates.services.MAX_OPEN_PER_ORIGIN", 0)
    event = done(bot)
    answer = page.post(f"{at(event)}overrule/")
    assert answer.status_code == 429
    assert f'action="{at(event)}overrule/"' in text(answer)
    assert ledger.fresh(event).overruled_at is None


def test_a_statement_that_was_rejected_before_is_shown_as_it_is(
    page: Client, bot: Principal, reviewer: Principal
) -> None:
    source = SourceInput(kind="merge_request", reference="acme/pay!70")
    ledger.reject(reviewer, ledger.propose(bot, DECISION, type="task_learnings", sources=(source,)), "Not so.")
    event = done(bot, content=DECISION, sources=(source,))
    answer = page.post(f"{at(event)}overrule/", follow=True)
    assert "The same statement was rejected before, and this is it." in words(answer)


# --- drops ----------------------------------------------------------------------------------------------------
def test_the_sample_has_ten_with_their_reasons(page: Client, bot: Principal) -> None:
    for number in range(12):
        done(bot, EventOutcome.DROPPED_PREFILTER, f"lgtm {number}", reason=f"It is noise of kind {number}.")
    answer = page.get(DROPS)
    assert len(answer.context["rows"]) == 10
    assert words(answer).count("It is noise of kind") == 10
    assert text(answer).count("/overrule/") == 10
    assert [row.event.pk for row in page.get(DROPS).context["rows"]] == shown(answer)


def test_a_long_drop_is_shown_in_part(page: Client, bot: Principal) -> None:
    done(bot, content=f"{'We talked about nothing. ' * 1_000}THE END")
    answer = page.get(DROPS)
    (row,) = answer.context["rows"]
    assert len(row.text) == READ_QUICKLY
    assert "The beginning of 25,007 characters." in words(answer)


def test_a_week_without_drops_says_so(page: Client, bot: Principal) -> None:
    assert "Nothing was dropped this week" in words(page.get(DROPS))
    done(bot, columns={"payload": ""})
    assert "Nothing is left to read" in words(page.get(DROPS))


# --- in place -------------------------------------------------------------------------------------------------
def test_htmx_gets_the_content_alone_from_the_same_markup(page: Client, bot: Principal) -> None:
    event = done(bot)
    headers = {"HX-Request": "true", "HX-Target": "content", "HX-Boosted": "true"}
    for path in (CAPTURED, DROPS, at(event)):
        alone, whole = text(page.get(path, headers=headers)), text(page.get(path))
        assert "<html" not in alone
        assert 'id="content"' in alone
        part = alone.split('id="content"', 1)[1].split("</div>\n<div hx-swap-oob", 1)[0].strip()
        part = part.split("csrfmiddlewaretoken")[0]
        assert part and part in whole


def test_reviewers_alone_find_it_in_the_head_of_every_page(browser: Any, page: Client, bob: User) -> None:
    assert 'href="/captured/"' in text(page.get("/memories/"))
    assert 'href="/captured/"' not in text(browser(bob).get("/memories/"))


def test_what_a_token_of_another_name_handed_over_is_found_by_it(page: Client, workspace: Workspace) -> None:
    spaced = issue(workspace, "ci & cd", "bot")
    event = done(ledger.of_token(spaced.token))
    answer = page.get(CAPTURED)
    assert "origin=ci+%26+cd" in text(answer)
    assert shown(page.get("/captured/?origin=ci+%26+cd")) == [event.pk]


def test_a_drop_tells_the_reasons_of_its_facts(page: Client, bot: Principal) -> None:
    fact = a_fact_that_became_nothing(content="", outcome="excluded", reason="It is about an individual engineer.")
    done(bot, EventOutcome.EXCLUDED, reason="Excluded: 2.", facts=(fact, fact))
    assert "Excluded: 2. It is about an individual engineer. " in words(page.get(DROPS))


def test_a_drop_tells_no_reason_twice(page: Client, bot: Principal) -> None:
    back = "It points back to something that the material does not say."
    known = "It is known already."
    facts = (
        a_fact_that_became_nothing(reason=back, outcome="dropped_classifier"),
        a_fact_that_became_nothing(reason=known, outcome="dropped_classifier"),
    )
    done(bot, EventOutcome.DROPPED_CLASSIFIER, reason=f"Not taken: 2. {back}", facts=facts)
    told = words(page.get(DROPS))
    assert told.count(back) == 1
    assert f"Not taken: 2. {back} {known}" in told
