"""Importing decision records: every record becomes searchable, nothing twice, every refusal has a reason."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, ManagementUtility, call_command
from django.db import connection, connections

from apps.accounts.models import ApiToken, Audience, AuditEvent, Workspace
from apps.approvals.importing import services
from apps.candidates.models import Candidate
from apps.memories.models import EdgeKind, Memory, MemoryStatus, Supersession, Verdict
from apps.memories.providers.base import ProviderError
from apps.retrieval.request import SearchRequest
from apps.retrieval.services import search
from apps.scopes.models import Repository
from apps.sources.models import Source
from tests import ledger

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("pool")]


def a_record(number: int, **changes: Any) -> dict[str, Any]:
    values = {
        "id": f"ADR-{number}",
        "set": "adr",
        "repo": "acme/pay",
        "commit": "f" * 40,
        "title": f"Decision {number} about subject {number * 7}",
        "date": f"2020-01-{number:02}",
        "status": "accepted",
        "text": f"Context {number}: the subject {number * 7} needed a rule.",
        "decision": f"We do it the way number {number * 13} says.",
    }
    return values | changes


def an_edge(old: int, new: int, kind: str = "supersedes", **changes: Any) -> dict[str, Any]:
    values = {
        "old": f"ADR-{old}",
        "new": f"ADR-{new}",
        "kind": kind,
        "effective": True,
        "new_date": f"2020-01-{new:02}",
        "stated_in": {"date": "2021-05-05"},
        "set": "adr",
    }
    return values | changes


@pytest.fixture
def run(tmp_path: Path, alice: User) -> Any:
    def imported(records: list[Any], edges: list[Any] | None = None, **options: Any) -> str:
        file = tmp_path / "records.jsonl"
        file.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in records) + "\n")
        if edges is not None:
            options["edges"] = tmp_path / "edges.jsonl"
            options["edges"].write_text("".join(json.dumps(row) + "\n" for row in edges))
        out = StringIO()
        call_command("import_records", str(file), reviewer="alice", stdout=out, stderr=StringIO(), **options)
        return out.getvalue()

    return imported


def memory(number: int) -> Memory:
    return Memory.objects.get(evidence__source__reference=f"ADR-{number}")


def found(alice: User, q: str, **values: Any) -> list[str]:
    answer = search(principal=ledger.of_person(alice), request=SearchRequest(q=q, **values))
    return [result["sources"][0]["reference"] for result in answer.results]


def test_a_record_becomes_a_memory_of_its_repository_with_its_date(run: Any, alice: User) -> None:
    assert "1  imported" in run([a_record(1)])
    row = memory(1)
    assert row.content == (
        "Decision 1 about subject 7\n\nContext 1: the subject 7 needed a rule.\n\n"
        "Decision: We do it the way number 13 says.\n\nStatus where it was written: accepted."
    )
    assert (row.type.name, row.tier, row.status) == ("ARCHITECTURE_DECISION", "durable", "active")
    assert row.valid_from is not None and row.valid_from.isoformat() == "2020-01-01T00:00:00+00:00"
    assert row.verdict.via == "import"
    assert row.verdict.reviewer == alice
    source = row.evidence.get().source
    assert (source.reference, source.commit, source.title) == ("ADR-1", "f" * 40, "Decision 1 about subject 7")
    assert Candidate.objects.get().origin_name == services.IMPORTER
    assert AuditEvent.objects.filter(verb="import").count() == 1
    assert found(alice, "subject 7 rule", repos=("acme/pay",)) == ["ADR-1"]


@pytest.mark.parametrize(("status", "name"), [("rejected", "REJECTED_APPROACH"), ("withdrawn", "REJECTED_APPROACH")])
def test_what_was_turned_down_is_a_rejected_approach(run: Any, status: str, name: str) -> None:
    run([a_record(1, status=status)])
    assert memory(1).type.name == name
    assert f"Status where it was written: {status}." in memory(1).content


def test_rows_of_a_retrieval_corpus_hold_for_the_firm_or_their_project(run: Any) -> None:
    run([{"_id": "a1", "title": "T", "text": "Alone."}, {"_id": "a2", "text": "B.", "metadata": {"project": "curl"}}])
    alone, project = Memory.objects.order_by("number")
    assert alone.firm and alone.valid_from is None
    assert not project.firm and len(project.domain_ids) == 1


def test_long_records_are_index_cards_and_what_is_too_long_is_cut_and_reported(run: Any) -> None:
    output = run([a_record(1, text="x" * 9_000), a_record(2, text="word " * 5_000)])
    assert memory(1).tier == "index"
    assert len(memory(2).content) == 20_000
    assert "ADR-2: cut at 20,000 characters." in output


def test_again_changes_nothing_and_a_longer_file_goes_on(run: Any) -> None:
    run([a_record(1), a_record(2)])
    before = list(Memory.objects.order_by("number").values())
    output = run([a_record(1), a_record(2), a_record(3)])
    assert "2  already there" in output and "1  imported" in output
    assert list(Memory.objects.order_by("number").values())[:2] == before


def test_an_import_that_was_stopped_goes_on_where_it_was(run: Any, monkeypatch: pytest.MonkeyPatch, pool: Any) -> None:
    monkeypatch.setattr("apps.approvals.management.commands.import_records.BATCH", 2)
    prepare_many, calls = pool.prepare_many, []

    def fails_at_the_second(texts: list[str]) -> Any:
        calls.append(len(texts))
        if len(calls) == 2:
            raise ProviderError("The embedding model did not answer.", permanent=False)
        return prepare_many(texts)

    monkeypatch.setattr(pool, "prepare_many", fails_at_the_second)
    records = [a_record(number) for number in range(1, 6)]
    with pytest.raises(CommandError, match="What was imported stays"):
        run(records)
    assert Memory.objects.count() == 2
    assert "2  already there" in run(records)
    assert Memory.objects.count() == 5


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{not json", "not JSON"),
        ("[1, 2]", "not a JSON object"),
        ({"title": "no id"}, "no id"),
        ({"id": "A", "title": " ", "text": ""}, "neither title nor text"),
        ({"id": "A", "text": ["a"]}, "text is not text"),
        ({"id": "x" * 501, "text": "t"}, "longer than 500"),
    ],
)
def test_a_line_that_will_not_do_is_reported_and_the_rest_goes_on(run: Any, line: Any, reason: str) -> None:
    output = run([a_record(1), line, a_record(2)])
    assert "2  imported" in output and "1  refused" in output
    assert "line 2" in output and reason in output


@pytest.mark.parametrize("date", ["soon", "2023-14-05", "0000-00-00", 2023, ["2024-05-31"]])
def test_a_date_that_is_none_is_left_out_and_the_record_stays(run: Any, date: Any) -> None:
    output = run([a_record(1, date=date)])
    assert "1  imported" in output and "1  without a date" in output
    assert "imported without a date" in output
    assert memory(1).valid_from is None


def test_secrets_and_personal_data_are_masked_before_they_are_stored(run: Any) -> None:
    secret = "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3z5A"
    output = run([a_record(1, text=f"Ask jane.doe@firm-intern.de; the token is {secret}. Nothing else.")])
    content = memory(1).content
    assert secret not in content and "jane.doe" not in content
    assert "[secret: e-mail address]" in content
    assert secret not in output


def test_nul_and_lone_surrogates_are_cleaned(run: Any) -> None:
    run(['{"id": "A", "title": "t", "text": "a\\u0000b \\ud83d c"}'])
    assert "\x00" not in Memory.objects.get().content


def test_the_same_words_twice_are_two_memories(run: Any) -> None:
    run([a_record(1), a_record(1, id="ADR-9")])
    assert Memory.objects.count() == 2
    run([a_record(1), a_record(1)])
    assert Memory.objects.count() == 2


def test_a_full_edge_ends_the_old_one_on_the_day_it_was_stated(run: Any, alice: User) -> None:
    run([a_record(1), a_record(2)], [an_edge(1, 2)])
    old = memory(1)
    assert old.status == MemoryStatus.SUPERSEDED
    assert old.valid_to is not None and old.valid_to.date().isoformat() == "2021-05-05"
    assert Supersession.objects.get().kind == EdgeKind.FULL
    assert "ADR-1" not in found(alice, "subject decision rule number")
    assert Verdict.objects.filter(subject_id=old.pk, action="supersede", via="import").count() == 1


def test_without_a_stated_day_the_new_records_date_counts(run: Any) -> None:
    run([a_record(1), a_record(2)], [an_edge(1, 2, stated_in=None)])
    assert memory(1).valid_to == memory(2).valid_from


def test_forks_and_merges_are_normal(run: Any) -> None:
    records = [a_record(number) for number in range(1, 6)]
    run(records, [an_edge(1, 2), an_edge(1, 3), an_edge(4, 5), an_edge(2, 5)])
    assert [memory(number).status for number in range(1, 6)] == [
        "superseded",
        "superseded",
        "active",
        "superseded",
        "active",
    ]


@pytest.mark.parametrize(("kind", "stored"), [("partially_supersedes", "partial"), ("amends", "amends")])
def test_partial_edges_and_amendments_hide_nothing(run: Any, kind: str, stored: str) -> None:
    run([a_record(1), a_record(2)], [an_edge(1, 2, kind)])
    assert memory(1).status == "active" and memory(1).valid_to is None
    assert Supersession.objects.get().kind == stored


def test_a_claim_that_was_not_accepted_hides_nothing_and_is_reported(run: Any, alice: User) -> None:
    output = run([a_record(1), a_record(2)], [an_edge(1, 2, effective=False)])
    assert memory(1).status == "active"
    assert not Supersession.objects.exists()
    assert "ADR-2 claims ADR-1" in output


def test_dangling_and_cyclic_edges_are_reported(run: Any) -> None:
    output = run([a_record(1), a_record(2)], [an_edge(1, 2), an_edge(2, 1), an_edge(1, 1), an_edge(1, 8)])
    assert Supersession.objects.count() == 1
    assert "2  cyclic edges" in output and "1  dangling edges" in output


def test_edges_may_name_records_of_an_earlier_import_and_come_again(run: Any) -> None:
    run([a_record(1)])
    run([a_record(2)], [an_edge(1, 2)])
    output = run([a_record(2)], [an_edge(1, 2)])
    assert "1  edges already there" in output
    assert Supersession.objects.count() == 1


def test_an_old_record_that_ends_before_it_begins_is_reported(run: Any) -> None:
    output = run([a_record(1), a_record(2)], [an_edge(1, 2, stated_in={"date": "2019-01-01"})])
    assert "before its own date" in output


def test_a_set_leaves_other_sets_and_their_edges_alone(run: Any) -> None:
    output = run(
        [a_record(1), a_record(2, set="pep")], [an_edge(1, 2, set="pep"), an_edge(2, 1, set="pep")], only_set="adr"
    )
    assert Memory.objects.count() == 1
    assert "dangling" not in output


def test_another_workspace_stays_as_it_was(run: Any, charlie: User, other_workspace: Workspace) -> None:
    person = ledger.of_person(charlie)
    assert person.workspace == other_workspace
    run([a_record(1)])
    assert not Memory.objects.filter(workspace=other_workspace).exists()
    assert not Candidate.objects.filter(workspace=other_workspace).exists()


@pytest.mark.parametrize(("name", "said"), [("nobody", "no person nobody"), ("bob", "reviewer role")])
def test_only_a_reviewer_answers_for_records(run: Any, bob: User, tmp_path: Path, name: str, said: str) -> None:
    file = tmp_path / "one.jsonl"
    file.write_text(json.dumps(a_record(1)))
    with pytest.raises(CommandError, match=said):
        call_command("import_records", str(file), reviewer=name, stdout=StringIO())
    assert not Memory.objects.exists()


# --- restricted sources -------------------------------------------------------------------------------------
@pytest.fixture
def board(workspace: Workspace) -> Audience:
    """Of this audience is what is known of `ADR-1`."""
    audience = Audience.objects.create(workspace=workspace, name="board")
    Source.objects.create(
        workspace=workspace, kind="document", reference="ADR-1", commit="f" * 40, title="Earlier", audience=audience
    )
    return audience


def test_a_record_inherits_the_audience_of_its_source(run: Any, alice: User, bob: User, board: Audience) -> None:
    board.members.add(alice)
    assert "2  imported" in run([a_record(1), a_record(2)])
    assert (memory(1).audience_ids, memory(2).audience_ids) == ([board.pk], [])
    assert Candidate.objects.get(content=memory(1).content).audience_ids == [board.pk]
    connection.check_constraints()  # the deferred trigger on evidence
    assert found(alice, "subject 7 rule") == ["ADR-1", "ADR-2"]
    assert found(bob, "subject 7 rule") == ["ADR-2"]


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_record_that_its_reviewer_may_not_see_is_refused_alone(run: Any, board: Audience, dry_run: bool) -> None:
    out = run([a_record(1), a_record(2)], dry_run=dry_run)
    assert "line 1 (ADR-1): Its source is restricted to an audience that alice is not in." in out
    assert "1  refused" in out
    assert Memory.objects.count() == (0 if dry_run else 1)


# --- what a run says ----------------------------------------------------------------------------------------
def test_keys_that_are_not_read_are_named(run: Any, tmp_path: Path) -> None:
    odd = {"licence": "CC0", "\x1b[2J": 1, "metadata": {"project": "curl", "url": "x"}}
    report = tmp_path / "report.txt"
    out = run([a_record(1, **odd), a_record(2, licence="CC0")], [an_edge(1, 2, note="x")], report=report)
    told = "Keys that were not read: licence (2), '\\x1b[2J' (1), 'metadata.url' (1), note (1)."
    assert told in out
    assert "\x1b" not in out
    assert "not read: licence (2)" in report.read_text()
    assert "Keys that" not in run([a_record(3)])


def test_the_counts_stand_last(run: Any) -> None:
    lines = run([a_record(1), "nonsense", a_record(2, date=None)]).splitlines()
    assert lines[0].strip() == "line 2 (no id): The line is not JSON."
    assert [line.split()[1] for line in lines[1:]] == ["refused", "imported", "without"]


def test_a_dry_run_says_what_would_become_of_everything_and_writes_nothing(run: Any) -> None:
    run([a_record(1)])
    before = {model: model.objects.count() for model in (Memory, Candidate, Verdict, Source, AuditEvent, Repository)}
    records = [a_record(1), a_record(2), a_record(2), "nonsense", a_record(3, repo="new/one"), a_record(4, date=None)]
    edges = [an_edge(1, 2), an_edge(2, 3), an_edge(3, 1), an_edge(2, 9), an_edge(4, 3, effective=False), an_edge(2, 2)]

    out = run(records, edges, dry_run=True)

    assert {model: model.objects.count() for model in before} == before
    assert not Supersession.objects.exists()
    counts = dict(reversed(line.split(maxsplit=1)) for line in out.splitlines() if line[:8].strip().isdigit())
    assert counts == {
        "already there": "1",
        "would be imported": "3",
        "refused": "2",
        "without a date": "1",
        "edges that would be stored (full)": "2",
        "cyclic edges": "2",
        "dangling edges": "1",
        "edges not in effect": "1",
    }
    assert out.splitlines()[-1] == "Nothing was written: this was a dry run."


def test_a_dry_run_needs_no_importer_and_makes_none(run: Any) -> None:
    run([a_record(1)], dry_run=True)
    assert not ApiToken.objects.filter(name=services.IMPORTER).exists()


@pytest.fixture
def command_line(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Runs a command as ``manage.py`` does, but for what would be set up anew in a process that goes on.

    Logging is: it would write to where this one test's output is captured, long after that is closed.
    """
    monkeypatch.setattr("django.setup", lambda: None)
    monkeypatch.setattr(connections, "close_all", lambda: None)  # the one of this test's transaction
    return lambda *arguments: ManagementUtility(["manage.py", *arguments]).execute()


@pytest.mark.usefixtures("alice")
@pytest.mark.parametrize(("lines", "code"), [(1, 0), (2, 3)])
def test_the_exit_code_tells_refusals_from_success(
    tmp_path: Path, capsys: Any, command_line: Callable[..., None], lines: int, code: int
) -> None:
    file = tmp_path / "records.jsonl"
    file.write_text("\n".join([json.dumps(a_record(1)), "nonsense"][:lines]))
    try:
        command_line("import_records", str(file), "--reviewer", "alice")
        ended = 0
    except SystemExit as end:
        ended = end.code
    assert ended == code
    assert "1  imported" in capsys.readouterr().out
    assert Memory.objects.count() == 1


def test_the_exit_code_of_what_cannot_begin_is_another(capsys: Any, command_line: Callable[..., None]) -> None:
    with pytest.raises(SystemExit) as end:
        command_line("import_records", "/nowhere", "--reviewer", "alice")
    assert end.value.code == 1
    assert "There is no file /nowhere." in capsys.readouterr().err


@pytest.mark.parametrize("name", ["PRODUCTION_ISSUE", "production_issues"])
def test_a_record_may_name_its_type(run: Any, name: str) -> None:
    run([a_record(1, memory_type=name), a_record(2, memory_type=name, status="rejected"), a_record(3)])
    assert [memory(number).type.name for number in (1, 2, 3)] == [
        *("PRODUCTION_ISSUE", "PRODUCTION_ISSUE", "ARCHITECTURE_DECISION")
    ]


def test_a_type_that_is_not_there_is_reported_and_the_rest_goes_on(run: Any) -> None:
    output = run([a_record(1, memory_type="GOSSIP"), a_record(2)])
    assert "There is no type “GOSSIP”" in output and "1  imported" in output and "1  refused" in output
