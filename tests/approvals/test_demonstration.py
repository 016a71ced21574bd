"""``manage.py demo``: the main job on this project's own decision records."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from django.conf import settings as configured
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from apps.accounts.models import ApiToken, AuditEvent, Workspace
from apps.approvals.demonstration import story
from apps.approvals.demonstration.cast import assemble
from apps.approvals.demonstration.records import UnreadableRecord, read_records
from apps.candidates.models import Candidate, CandidateEvidence
from apps.core.screening import screen
from apps.memories.models import Memory, MemoryEvidence, Supersession, Verdict
from apps.memories.providers import registry
from apps.memories.providers.inmemory import InMemoryProvider
from apps.sources.models import Source
from tests.memories.providers.doubles import HashingEmbedder

RECORDS = configured.BASE_DIR / "docs" / "adr"
ROWS = [Candidate, CandidateEvidence, Memory, MemoryEvidence, Supersession, Verdict, Source, AuditEvent, ApiToken, User]
A_RECORD = """# 7. Two clocks

Date: 2026-11-29

## Status

Accepted. Supersedes [3](0003-one-clock.md) and
[4](0004-no-clock.md). Supersedes [5](0005-a-sundial.md).

## Context

One timestamp
is not enough.

A second paragraph.

## Decision

Keep two. Both bound a search.

## Consequences

More columns.
"""


@pytest.fixture(autouse=True)
def provider() -> Iterator[InMemoryProvider]:
    with registry.override(InMemoryProvider(HashingEmbedder())) as made:
        yield made


@pytest.fixture(autouse=True)
def a_server_of_its_own(settings) -> None:
    """The command would otherwise look after the embedded server, and leave the tests' database."""
    settings.DATABASE_URL = "postgresql://somewhere/else"
    settings.STARTUP_CHECKS = []


def demo() -> str:
    told = StringIO()
    call_command("demo", stdout=told, stderr=told)
    return told.getvalue()


def write(folder: Path, text: str) -> Path:
    path = folder / "0007-two-clocks.md"
    path.write_text(text)
    return path


def test_a_record_is_read(tmp_path) -> None:
    write(tmp_path, A_RECORD)
    (tmp_path / "README.md").write_text("No record.")
    (record,) = read_records(tmp_path)
    assert (record.label, record.status, record.path) == ("7. Two clocks", "accepted", "docs/adr/0007-two-clocks.md")
    assert record.decided_at.isoformat() == "2026-11-29T00:00:00+00:00"
    assert record.supersedes == (3, 5)
    assert record.content == (
        "Two clocks.\n\nKeep two. Both bound a search.\n\n"
        "Why: One timestamp is not enough.\n\nA second paragraph.\n\nWhat follows from it: More columns."
    )
    (source,) = record.proposal(()).sources
    assert source.quote == "Keep two"


@pytest.mark.parametrize(
    ("left_out", "said"),
    [
        ("# 7. Two clocks", "a title"),
        ("Date: 2026-11-29", "a line such as “Date: 2026-11-29”"),
        ("Keep two. Both bound a search.", "the section Decision"),
        ("## Consequences", "the section Consequences"),
    ],
)
def test_what_a_record_lacks_is_said(tmp_path, left_out, said) -> None:
    path = write(tmp_path, A_RECORD.replace(left_out, ""))
    with pytest.raises(UnreadableRecord, match=said) as refused:
        read_records(tmp_path)
    assert path.name in str(refused.value)


def test_our_own_records_are_readable_and_may_be_remembered() -> None:
    records = read_records(RECORDS)
    assert [record.number for record in records] == list(range(1, len(records) + 1))
    numbers = {record.number: record for record in records}
    for record in records:
        screening = screen({"content": record.content})
        assert not screening.refusals, record.path
        assert not screening.flags, record.path
        assert len(record.content) < 8_000
        assert record.status in ("accepted", "superseded", "proposed")
        for replaced in record.supersedes:
            assert numbers[replaced].status == "superseded"
            assert numbers[replaced].decided_at <= record.decided_at
    told_of = {number for record in records for number in record.supersedes}
    assert told_of == {record.number for record in records if record.status == "superseded"}


def test_the_story_refers_to_records_that_are_there() -> None:
    numbers = {record.number: record for record in read_records(RECORDS)}
    assert numbers[story.REPORTED].status == "accepted"
    for number in story.AMENDED:
        assert numbers[number].status == "accepted"
    assert any(record.status == "proposed" for record in numbers.values())


def test_everything_happens_once(db) -> None:
    records = read_records(RECORDS)
    told = demo()
    workspace = Workspace.objects.get(slug="demo")
    kept = [record for record in records if record.status != "proposed"]
    assert Memory.objects.of(workspace).count() == len(kept)
    assert told.count("  approved  ") == len(kept) - 1
    assert told.count("  amended   M-4") == told.count("  rejected  20.") == 1
    amended = Memory.objects.select_related("type", "verdict").get(workspace=workspace, number=4)
    assert amended.type.slug == "dependency_decisions"
    assert amended.verdict.before["type"] == "architecture_decisions"
    rejected = Candidate.objects.get(workspace=workspace, status="rejected")
    assert rejected.decision.reason == story.UNDECIDED
    edges = {(edge.new.content.split(".")[0], edge.old.status) for edge in Supersession.objects.all()}
    assert edges == {
        ("Words are ranked by BM25, computed in SQL", "superseded"),
        ("A supervisor of our own runs web, worker and PostgreSQL", "superseded"),
    }
    assert (
        Memory.objects.of(workspace).get(status="disputed").evidence.get().source.reference.startswith("docs/adr/0011")
    )
    assert set(Verdict.objects.values_list("via", flat=True)) == {"command"}


def test_questions_are_answered_with_the_reason(db) -> None:
    told = demo()
    _, questions = told.split("Questions from a checkout of firm-memory")
    assert questions.count("Why: ") >= 4
    asked = questions.split("Why does the pool write on Django's connection?")[1]
    assert "The pool writes on Django's own connection." in asked.split("What happens when")[0]
    as_of = questions.split("How were words ranked on 28 November 2026?")[1]
    assert "(superseded," in as_of
    assert "Words are ranked by PostgreSQL's ts_rank." in as_of
    assert "was rejected: no search returns it." in questions
    assert "Redaction overwrites text" not in questions.replace("(20. Redaction overwrites text", "")


def test_telling_it_again_writes_nothing(db) -> None:
    demo()
    before = {model: model.objects.count() for model in ROWS}
    again = demo()
    assert {model: model.objects.count() for model in ROWS} == before
    assert again.count("  known     ") == len(read_records(RECORDS)) + 1
    for done in ("approved", "amended", "rejected ", "reported"):
        assert f"  {done} " not in again
    assert "who is known already" in again
    assert "This is already known as M-1." in " ".join(again.split())


def test_a_run_that_was_cut_short_is_finished_by_the_next(db, monkeypatch) -> None:
    def cut(*args, **kwargs) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(story, "candidate_approve", cut)
    with pytest.raises(KeyboardInterrupt):
        demo()
    assert Candidate.objects.open().exists()
    monkeypatch.undo()
    demo()
    assert not Candidate.objects.open().filter(corrects__isnull=True).exists()
    assert Memory.objects.count() == len([r for r in read_records(RECORDS) if r.status != "proposed"])


def test_no_other_workspace_is_touched(workspace) -> None:
    demo()
    assert not Candidate.objects.of(workspace).exists()
    assert not Memory.objects.of(workspace).exists()
    cast = assemble()
    assert cast.reviewer.workspace == cast.bot.workspace == cast.agent.workspace == cast.workspace
    assert not cast.bot.is_operator
    assert not cast.agent.can_review


def test_an_installation_that_starts_with_it_still_gets_its_first_people(db) -> None:
    assert "First start. This is shown once" in demo()
    assert User.objects.filter(username="reviewer").exists()
    assert ApiToken.objects.filter(workspace__slug="firm").count() == 2


def test_a_rejection_by_the_reviewer_of_the_report_is_told(db) -> None:
    from apps.approvals.services import candidate_reject

    demo()
    report = Candidate.objects.open().get()
    candidate_reject(
        principal=assemble().reviewer, candidate_id=report.pk, version=report.version, reason="It still holds."
    )
    assert "It still holds." in demo()


def test_no_records_is_said(settings, tmp_path, db) -> None:
    settings.BASE_DIR = tmp_path
    with pytest.raises(CommandError, match="There are no decision records"):
        demo()
    (tmp_path / "docs" / "adr").mkdir(parents=True)
    write(tmp_path / "docs" / "adr", "nothing")
    with pytest.raises(CommandError, match=r"0007-two-clocks\.md lacks"):
        demo()
