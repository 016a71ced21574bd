"""Handing over files, and looking after the inbox, from a terminal."""

from __future__ import annotations

from io import StringIO
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command

from apps.accounts.models import ApiToken, AuditEvent
from apps.capture.extractors.base import ExtractorError
from apps.capture.extractors.registry import override
from apps.capture.models import CaptureEvent, EventState
from apps.capture.tasks import drain
from tests.capture.doubles import DECISION, Canned, a_fact, an_event
from tests.conftest import issue

pytestmark = pytest.mark.django_db


def run(*arguments: object, **options: object) -> str:
    out = StringIO()
    call_command(*map(str, arguments), stdout=out, stderr=StringIO(), **options)
    return out.getvalue()


@pytest.fixture
def bot(botty, principal):
    return principal(botty)


def test_files_are_handed_over_once(workspace, tmp_path):
    one, two = tmp_path / "one.md", tmp_path / "two.md"
    one.write_text(DECISION)
    two.write_bytes(b"\xff\xfe broken \x00 bytes, and a decision: never do this again.")
    said = run("ingest", one, two, "--kind", "document", "--repo", "acme/pay")
    assert "2 handed over, 0 known before, 0 refused." in said
    assert "0 handed over, 2 known before, 0 refused." in run(
        "ingest", one, two, "--kind", "document", "--repo", "acme/pay"
    )
    events = CaptureEvent.objects.order_by("received_at")
    assert [event.sources[0]["reference"] for event in events] == ["one.md", "two.md"]
    assert {event.origin_name for event in events} == {"ingester"}
    assert ApiToken.objects.get(name="ingester").owner is None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["missing.md", "--repo", "acme/pay"], "There is no file missing.md. Nothing was handed over."),
        (["{file}"], "1 of 1 files were refused."),
        (["{empty}", "--firm"], "1 of 1 files were refused."),
        (["{file}", "{empty}", "--firm", "--url", "https://x.example"], "names where one file can be read"),
        (["{file}", "--firm", "--workspace", "nowhere"], "There is no workspace named nowhere."),
    ],
)
def test_what_will_not_do_is_said_and_nothing_is_kept(workspace, tmp_path, arguments, said):
    (tmp_path / "file.md").write_text(DECISION)
    (tmp_path / "empty.md").write_text(" \n")
    names = {"file": tmp_path / "file.md", "empty": tmp_path / "empty.md"}
    with pytest.raises(CommandError, match=said):
        run("ingest", *(argument.format(**names) for argument in arguments), "--kind", "document")
    assert not CaptureEvent.objects.exists()


def test_a_file_that_will_not_do_costs_the_others_nothing(workspace, tmp_path):
    names = [tmp_path / name for name in ("a.md", "empty.md", "b.md")]
    for path in names:
        path.write_text("" if path.name == "empty.md" else f"{DECISION} In {path.name}.")
    out = StringIO()
    with pytest.raises(CommandError, match="1 of 3 files were refused"):
        call_command("ingest", *map(str, names), "--kind", "document", "--firm", stdout=out, stderr=StringIO())
    assert "empty.md: refused. There is no text in it." in out.getvalue()
    assert CaptureEvent.objects.count() == 2


def test_a_persons_token_of_that_name_is_not_taken_for_the_built_in_bot(workspace, tmp_path):
    (tmp_path / "file.md").write_text(DECISION)
    issue(workspace, "ingester", "agent")
    with pytest.raises(CommandError, match="ingester"):
        run("ingest", tmp_path / "file.md", "--kind", "document", "--firm")


def test_the_status_tells_what_waits_and_what_was_given_up(workspace, bot):
    an_event(bot)
    with override(Canned(ExtractorError("The key is refused.", permanent=True))):
        drain()
    an_event(bot)
    said = run("capture", "status")
    assert said.startswith("1 wait, 0 are being read, 0 failed and will be tried again, 1 were given up.")
    assert "The key is refused." in said


def test_what_was_given_up_is_tried_again_and_that_is_written_down(workspace, bot, other_workspace):
    event = an_event(bot)
    with override(Canned(ExtractorError("The key is refused.", permanent=True))):
        drain()
    with pytest.raises(CommandError):
        run("capture", "retry", uuid4())
    assert run("capture", "--workspace", "other", "retry") == "0 are tried again.\n"
    assert run("capture", "retry") == "1 are tried again.\n"
    event.refresh_from_db()
    assert (event.state, event.attempts) == (EventState.RECEIVED, 0)
    assert AuditEvent.objects.filter(verb="retry capture", actor="operator").count() == 1


def test_the_report_says_what_material_cost(workspace, bot, pool):
    assert run("capture", "report") == "Nothing was finished in 30 days.\n"
    for _ in range(3):
        an_event(bot, "lgtm", kind="chat")
    an_event(bot)
    with override(Canned([a_fact()])):
        drain()
    said = run("capture", "report")
    assert "4 messages × 25.0% read × 1.00 calls each × 110 tokens a call = 110 tokens." in said
    assert "1 events brought candidates: 110 tokens for each of them." in said
    (chat,) = [line.split() for line in said.splitlines() if line.startswith("chat")]
    assert chat[1:] == ["3", "0%", "0", "0", "0", "0", "3", "0", "0", "0"]
