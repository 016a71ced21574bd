"""Handing raw material over: what is kept, what is not, and that the same is received once."""

from __future__ import annotations

import threading

import pytest
from django.db import IntegrityError, connection, transaction
from django_q.models import OrmQ

from apps.accounts.models import Audience
from apps.candidates.proposal import ScopeInput
from apps.capture.inbox import OWN_NAME, event_receive, events_receive, source_from_json
from apps.capture.models import CaptureEvent, EventState
from apps.core.errors import Forbidden, Invalid
from apps.sources.models import Source
from apps.sources.services import SourceInput
from tests.capture.doubles import DECISION, a_material, an_event
from tests.conftest import issue

KEY = "AKIAIOSFODNN7EXAMPLA"

pytestmark = pytest.mark.django_db


@pytest.fixture
def bot(botty, principal):
    return principal(botty)


def test_what_is_received_waits_for_the_worker_with_a_message_in_the_same_transaction(bot):
    before = OrmQ.objects.count()
    received = event_receive(principal=bot, material=a_material())
    event = CaptureEvent.objects.get(pk=received.event.pk)
    assert received.created
    assert (event.state, event.outcome, event.attempts) == (EventState.RECEIVED, "", 0)
    assert (event.kind, event.origin_name, event.scope["repos"]) == ("merge_request", "botty", ["acme/pay"])
    assert event.payload == DECISION
    assert OrmQ.objects.count() == before + 1


def test_the_same_external_id_twice_is_one_event(bot):
    first = event_receive(principal=bot, material=a_material(external_id="acme/pay!7@abc"))
    waiting = OrmQ.objects.count()
    again = event_receive(principal=bot, material=a_material("Something else.", external_id="acme/pay!7@abc"))
    assert not again.created
    assert again.event.pk == first.event.pk
    assert CaptureEvent.objects.count() == 1
    assert OrmQ.objects.count() == waiting


def test_the_same_name_of_another_kind_is_another_event(bot):
    first = an_event(bot, external_id="7")
    assert an_event(bot, external_id="7", kind="issue").pk != first.pk


def test_without_a_name_the_same_words_about_the_same_are_one_event(bot):
    source = (SourceInput(kind="chat", reference="C1/9"),)
    first = event_receive(principal=bot, material=a_material(external_id="", sources=source))
    again = event_receive(principal=bot, material=a_material(external_id="", sources=source))
    elsewhere = event_receive(
        principal=bot, material=a_material(external_id="", sources=source, scope=ScopeInput(repos=("acme/other",)))
    )
    assert first.event.external_id.startswith(OWN_NAME)
    assert again.event.pk == first.event.pk
    assert elsewhere.created


@pytest.mark.django_db(transaction=True)
def test_many_at_once_with_one_name_are_one_event(bot):
    material, found = a_material(external_id="once"), []

    def hand_over() -> None:
        try:
            found.append(event_receive(principal=bot, material=material))
        finally:
            connection.close()

    threads = [threading.Thread(target=hand_over) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 12
    assert sum(one.created for one in found) == 1
    assert CaptureEvent.objects.count() == 1


@pytest.mark.parametrize(
    ("secret", "kind"),
    [
        (KEY, "aws"),
        ("postgres://pay:h8Jk2mQz7Lw0@db.internal/pay", "password"),
        ("anna.schmidt@acme-corp.io", "e-mail"),
        ("4111 1111 1111 1111", "card"),
        ("DE89 3704 0044 0532 0130 00", "account"),
    ],
)
def test_secrets_and_personal_data_are_kept_nowhere(bot, secret, kind):
    material = a_material(
        f"{DECISION}\nFor now with {secret} in it.",
        external_id=f"thread {secret}",
        sources=(SourceInput(kind="chat", reference=f"C1 {secret}", title=f"About {secret}", quote=f"use {secret}"),),
    )
    event = CaptureEvent.objects.defer(None).get(pk=event_receive(principal=bot, material=material).event.pk)
    kept = f"{event.payload} {event.external_id} {event.sources} {event.notes} {event.content_hash}"
    assert secret not in kept
    assert "Masked: " in " ".join(event.notes)
    assert DECISION in event.payload


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("The card is 4111 1111\n1111 1111 as before.", "1111 1111\n1111 1111"),
        ("The account is DE89 3704 0044\n0532 0130 00 as before.", "0044\n0532"),
        ("DB_PASSWORD\\u003dh8Jk2mQz7Lw0xY is set.", "h8Jk2mQz7Lw0xY"),
    ],
)
def test_a_secret_that_is_broken_or_escaped_is_masked_all_the_same(bot, text, secret):
    event = an_event(bot, f"{DECISION}\n{text}")
    assert secret not in CaptureEvent.objects.values_list("payload", flat=True).get(pk=event.pk)


def test_an_escaped_quotation_mark_ends_no_turn_of_a_session(bot):
    said = "We call it \\u0022jitter\\u0022, because bursts broke it."
    turn = f'{{"type": "user", "message": {{"role": "user", "content": "{said}"}}}}'
    event = an_event(bot, f"{turn}\n{turn}", kind="transcript")
    payload = CaptureEvent.objects.values_list("payload", flat=True).get(pk=event.pk)
    assert payload.count('We call it "jitter", because bursts broke it.') == 2
    assert "u0022" not in payload


def test_names_that_are_masked_stay_apart(bot):
    names = [f"mail of {who}.mueller@acme-corp.io" for who in ("anna", "hans", "petra")]
    events = [an_event(bot, external_id=name) for name in (*names, names[0])]
    assert len({event.pk for event in events}) == 3
    assert not any("mueller" in event.external_id for event in events)


def test_of_another_of_the_same_name_it_is_said_what_it_is(bot, robo, principal):
    event_receive(principal=bot, material=a_material(external_id="7"))
    same = event_receive(principal=bot, material=a_material(external_id="7"))
    other = event_receive(principal=bot, material=a_material("We never do that, since it broke.", external_id="7"))
    others = event_receive(principal=principal(robo), material=a_material(external_id="7"))
    assert same.note.startswith("This material was handed over before")
    assert other.note.startswith("Other material of this kind and name")
    assert others.note.startswith("Somebody else handed over")


@pytest.mark.parametrize("commit", ["glpat-Xk3vR8mWqP2nL5tYbZ7d", KEY])
def test_a_commit_that_is_a_secret_is_none(bot, commit):
    event = an_event(bot, sources=(SourceInput(kind="chat", reference="C1", commit=commit),))
    assert event.sources[0]["commit"] is None


def test_a_remote_is_kept_without_whoever_fetches_it(bot):
    event = an_event(bot, scope=ScopeInput(repos=("https://deploy:s3cr3tP4ss@git.acme-corp.io/acme/pay.git",)))
    assert event.scope["repos"] == ["https://git.acme-corp.io/acme/pay"]


def test_an_address_with_a_secret_leads_nowhere(bot):
    url = f"https://ci.acme-corp.io/log?token={KEY}"
    event = an_event(bot, sources=(SourceInput(kind="chat", reference="C1", url=url),))
    assert source_from_json(event.sources[0]).url == ""


def test_code_diffs_and_traces_are_cut_out_and_said(bot):
    code = "```python\ndef retry(webhook):\n    for attempt in range(5):\n        send(webhook)\n    return None\n```"
    diff = "diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@\n-old = 1\n+new = 2"
    trace = 'Traceback (most recent call last):\n  File "x.py", line 3, in <module>\n    main()\nValueError: no'
    event = an_event(bot, f"{DECISION}\n\n{code}\n\nThen this:\n\n{diff}\n\nand this:\n\n{trace}\n\nThat was all.")
    payload = CaptureEvent.objects.values_list("payload", flat=True).get(pk=event.pk)
    for gone in ("range(5)", "+new = 2", "ValueError"):
        assert gone not in payload
    for kept in (DECISION, "Then this:", "That was all.", "[source code left out]", "[diff left out]"):
        assert kept in payload
    assert sum("Left out" in note for note in event.notes) == 3


def test_what_no_column_holds_is_taken_out_with_a_note(bot):
    event = an_event(bot, f"{DECISION}\x00 \ud83d And \x1b[31mred\x1b[0m.")
    payload = CaptureEvent.objects.values_list("payload", flat=True).get(pk=event.pk)
    assert payload.startswith(DECISION)
    assert not {"\x00", "\ud83d", "\x1b"} & set(payload)
    assert any("NUL" in note for note in event.notes)
    assert any("surrogate" in note for note in event.notes)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"content": " \x00\n"}, "content"),
        ({"kind": "gossip"}, "kind"),
        ({"scope": ScopeInput()}, "scope"),
        ({"sources": ()}, "sources"),
        ({"sources": (SourceInput(kind="chat", reference=""),)}, "sources[0].reference"),
        ({"external_id": "x" * 501}, "external_id"),
        ({"external_id": "a\nb"}, "external_id"),
    ],
)
def test_what_will_not_do_is_named_and_nothing_is_kept(bot, changes, field):
    with pytest.raises(Invalid) as refused:
        event_receive(principal=bot, material=a_material(**changes))
    assert field in [error.field for error in refused.value.errors]
    assert not CaptureEvent.objects.exists()


def test_of_several_all_or_none_are_kept(bot):
    with pytest.raises(Invalid) as refused:
        events_receive(principal=bot, materials=[a_material(), a_material(kind="gossip"), a_material(" ")])
    assert [error.field for error in refused.value.errors] == ["[1].kind", "[2].content"]
    assert not CaptureEvent.objects.exists()
    assert len(events_receive(principal=bot, materials=[a_material() for _ in range(5)])) == 5


def test_a_read_only_token_hands_nothing_over(workspace, principal):
    with pytest.raises(Forbidden):
        an_event(principal(issue(workspace, "looker", "bot", read_only=True)))


@pytest.mark.parametrize(
    "scope",
    [
        ScopeInput(firm=True),
        ScopeInput(domains=("payments",)),
        ScopeInput(repos=("acme/other",)),
        ScopeInput(repos=("acme/pay", "acme/nobody-knows")),
    ],
)
def test_a_token_limited_to_repositories_hands_over_what_is_about_those_alone(workspace, principal, scope):
    from apps.scopes.services import scope_register

    ids = scope_register(workspace, firm=False, domains=(), repos=("acme/pay", "acme/other")).scope.repo_ids
    pay = workspace.repositories.get(slug="acme/pay").pk
    assert len(ids) == 2
    limited = principal(issue(workspace, "limited", "bot", repository_ids=[pay]))
    with pytest.raises(Forbidden):
        an_event(limited, scope=scope)
    assert an_event(limited, scope=ScopeInput(repos=("acme/pay",))).pk


def test_what_comes_from_a_restricted_source_is_restricted(workspace, bot):
    audience = Audience.objects.create(workspace=workspace, name="board")
    Source.objects.create(workspace=workspace, kind="chat", reference="C9", audience=audience)
    event = an_event(bot, sources=(SourceInput(kind="chat", reference="C9"), SourceInput(kind="chat", reference="C1")))
    event.refresh_from_db(fields=["audience_ids"])
    assert event.audience_ids == [audience.pk]


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "issue"},
        {"external_id": "other"},
        {"origin_name": "somebody"},
        {"size": 1},
    ],
)
def test_what_was_received_stays_as_it_was(bot, change):
    event = an_event(bot)
    with pytest.raises(Exception, match=r"read.?only|Cannot update|cannot"), transaction.atomic():
        CaptureEvent.objects.filter(pk=event.pk).update(**change)


def test_postgresql_itself_refuses_to_delete_an_event(bot):
    event = an_event(bot)
    with pytest.raises(Exception, match="delete"), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("DELETE FROM capture_captureevent WHERE id = %s", [event.pk])


def test_an_outcome_without_a_reason_is_refused_by_postgresql(bot):
    event = an_event(bot)
    with pytest.raises(IntegrityError), transaction.atomic():
        CaptureEvent.objects.filter(pk=event.pk).update(state=EventState.DONE, outcome="queued")
