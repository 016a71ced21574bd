"""All that was approved goes out as one snapshot and comes into an empty workspace as it was, through the gate."""

from __future__ import annotations

import json
import os
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import InterfaceError, OperationalError, connection

from apps.accounts.models import Audience, AuditEvent, Role
from apps.accounts.principal import operator
from apps.accounts.services import workspace_add
from apps.agents.files.whole.writing import export_lines
from apps.approvals.restrictions import source_restrict
from apps.approvals.services import memory_restore, memory_retire
from apps.candidates.models import Candidate
from apps.candidates.proposal import ScopeInput
from apps.core.errors import Forbidden
from apps.memories.models import EdgeKind, Memory, Supersession, Verdict
from apps.memories.providers.base import ProviderError
from apps.scopes.models import Domain, Repository
from apps.taxonomy.models import Category, MemoryType
from tests.agents.files.exports import brought_in, exported, forget_everything, lines_of, memory_of, refused, resealed
from tests.conftest import add_person, issue
from tests.ledger import a_source, approve, fresh, of_person, propose, reject, remember, reopen, report

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("pool")]


@pytest.fixture
def firm(workspace, bot, reviewer, carol, alice):
    """A little of everything that a ledger can hold, and of what no export may hold."""
    made = {"first": remember(bot, reviewer, "Use tabs in makefiles.", type="coding_conventions", confidence=0.9)}
    made["second"] = remember(
        bot, reviewer, "Use spaces in makefiles.", supersedes=[made["first"]], scope=ScopeInput(True, ("build",), ())
    )
    made["amended"] = approve(reviewer, propose(bot, "Unapproved wording."), content="Approved wording.").memory
    made["retired"] = remember(bot, reviewer, "Deploy on Fridays.")
    memory_retire(principal=reviewer, reference=made["retired"].pk, reason="We do not.")
    made["restored"] = remember(bot, reviewer, "Deploy on Mondays.")
    memory_retire(principal=reviewer, reference=made["restored"].pk, reason="By mistake.")
    memory_restore(principal=reviewer, reference=made["restored"].pk, reason="It was one.")
    undone = approve(reviewer, propose(bot, "Undone statement.", supersedes=(made["restored"].label,)))
    reopen(reviewer, undone.candidate)
    approve(reviewer, undone.candidate, content="Done again.")
    twice = propose(bot, "Undone for good.")
    approve(reviewer, twice)
    reopen(reviewer, twice)
    reject(reviewer, twice, "Rejected for unspeakable reasons.")
    made["disputed"] = remember(bot, reviewer, "The queue holds a day.")
    report(bot, made["disputed"], reason="Reported for secretive reasons.")
    board = a_source("#board/1", kind="chat", quote="Initech!", title="Board")
    made["restricted"] = remember(bot, reviewer, "Initech is bought.", sources=(board,))
    audience = Audience.objects.create(workspace=workspace, name="board")
    audience.members.add(alice)
    source_restrict(
        principal=of_person(carol), source_id=made["restricted"].evidence.get().source_id, audience_id=audience.pk
    )
    remember(bot, reviewer, "A card.", tier="index", sources=(a_source("acme/pay!9", commit="4f2a9c1"), a_source("x")))
    propose(bot, "Pending statement.", scope=ScopeInput(repos=("acme/pending",)))
    reject(reviewer, propose(bot, "Rejected statement."))
    Repository.objects.filter(slug="acme/pay").update(
        aliases=["pay"], confirmed=True, domain_ids=[Domain.objects.get(slug="build").pk]
    )
    Category.objects.filter(slug="convention").update(weights={"implement": 1.5})
    MemoryType.objects.filter(slug="ownership").update(is_active=False)
    return made


def without_what_must_differ(records: list[dict]) -> list[dict]:
    """The header's name and time, the trailer's sum, and that verdicts were brought in."""
    kept = json.loads(json.dumps(records))
    for record in kept:
        for name in ("workspace", "exported_at", "sha256"):
            record.pop(name, None)
        for verdict in record.get("verdicts", ()):
            verdict.pop("restored")
    return kept


def test_what_went_out_comes_in_as_it_was(firm, workspace, empty, dora, tmp_path, pool):
    text = exported(workspace, tmp_path / "all.jsonl")
    before = [json.loads(line) for line in text.splitlines()]
    forget_everything()

    told = brought_in(tmp_path / "all.jsonl")

    after = lines_of(empty)
    assert without_what_must_differ(after) == without_what_must_differ(before)
    assert {v["restored"] for r in after for v in r.get("verdicts", ())} == {True}
    assert f"{Memory.objects.count():>8,}  memory" in told
    assert {row.id for row in pool.iterate()} == set(Memory.objects.values_list("pk", flat=True))
    statement = fresh(firm["second"])
    assert (statement.label, statement.recorded_at) == (firm["second"].label, firm["second"].recorded_at)
    assert statement.verdict.reviewer_name == "alice"
    assert statement.verdict.reviewer == dora
    assert statement.verdict.via == "restored:ui"
    connection.check_constraints()


def test_what_comes_in_goes_on_as_if_nothing_had_been(firm, workspace, empty, dora, tmp_path):
    exported(workspace, tmp_path / "all.jsonl")
    forget_everything()
    brought_in(tmp_path / "all.jsonl")
    last = Memory.objects.latest("number").number
    bot, reviewer = of_agent(empty), of_person(dora)

    memory = remember(bot, reviewer, "Use tabs after all.", supersedes=[fresh(firm["second"])])

    assert memory.number == last + 1
    assert fresh(firm["second"]).status == "superseded"
    assert not Candidate.objects.open().filter(origin_name="restorer").exists()
    memory_retire(principal=reviewer, reference=firm["amended"].pk, reason="Moot.")
    undone = Candidate.objects.get(pk=fresh(firm["amended"]).verdict.subject_id)
    assert reopen(reviewer, undone).status == "pending"


def of_agent(workspace):
    from tests.ledger import of_token

    return of_token(issue(workspace, "newcomer", "agent").token)


def test_an_export_of_an_import_of_an_export_is_the_same(firm, workspace, empty, dora, tmp_path):
    exported(workspace, tmp_path / "1.jsonl")
    forget_everything()
    brought_in(tmp_path / "1.jsonl")
    exported(empty, tmp_path / "2.jsonl")
    forget_everything()
    other = workspace_add(slug="third")
    add_person(other, "erin", Role.REVIEWER)
    brought_in(tmp_path / "2.jsonl", "third", "erin")

    assert [line for line in lines_of(other) if line["record"] not in ("header", "trailer")] == [
        json.loads(line)
        for line in (tmp_path / "2.jsonl").read_text().splitlines()
        if '"record":"header"' not in line and '"record":"trailer"' not in line
    ]


def test_nothing_that_was_not_approved_goes_out(firm, workspace, tmp_path, botty):
    text = exported(workspace, tmp_path / "all.jsonl")

    for unspoken in (
        *("Pending statement", "Rejected statement", "Unapproved wording", "unspeakable", "secretive", "acme/pending"),
        *(botty.secret, botty.token.digest, "botty", "password", "pbkdf2", "md5$"),
    ):
        assert unspoken not in text, unspoken
    assert (tmp_path / "all.jsonl").stat().st_mode & 0o777 == 0o600
    assert not (tmp_path / "all.jsonl.part").exists()


@pytest.mark.parametrize("kind", ["dash", "folder", "pipe", "link to a pipe", "missing folder"])
def test_where_no_file_can_be_put_nothing_is_put(workspace, tmp_path, monkeypatch, kind):
    """Such as /dev/stdout, in whose place a file would stand from then on."""
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    Path("link").symlink_to("pipe")
    Path("folder").mkdir()
    there = sorted(path.name for path in tmp_path.iterdir())
    named = {"dash": "-", "folder": "folder", "pipe": "pipe", "link to a pipe": "link", "missing folder": "no/file"}
    with pytest.raises(CommandError, match=r"is no file|cannot be written"):
        call_command("export_all", named[kind], stdout=StringIO(), stderr=StringIO())
    assert sorted(path.name for path in tmp_path.iterdir()) == there
    assert (tmp_path / "link").is_symlink() and (tmp_path / "pipe").is_fifo()


def test_a_link_to_a_file_stays_a_link(workspace, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "export.jsonl")
    exported(workspace, tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "export.jsonl").stat().st_mode & 0o777 == 0o600


def test_each_line_says_what_it_is(firm, workspace):
    lines = lines_of(workspace)
    header, trailer = lines[0], lines[-1]
    counts = {record: sum(line["record"] == record for line in lines) for record in header["counts"]}

    assert (header["format"], header["version"], header["left_out"]) == ("firm-memory-export", 1, 0)
    assert header["counts"] == counts
    assert header["last_number"] == Memory.objects.latest("number").number == counts["memory"]
    assert trailer["lines"] == len(lines) - 1
    memory = next(line for line in lines if line.get("number") == firm["amended"].number)
    assert memory["content"] == "Approved wording."
    assert memory["verdicts"][0]["amended"] == ["content"]
    assert memory["verdicts"][0]["before"] == memory["verdicts"][0]["after"] == {}
    undone = next(line for line in lines if line.get("content") == "Undone statement.")
    assert [verdict["action"] for verdict in undone["verdicts"]] == ["approve", "reopen", "retire"]
    assert [line["voided_by"] is None for line in lines if line["record"] == "edge"] == [True, False, True]


# --- refusals -------------------------------------------------------------------------------------------------
def test_a_workspace_that_holds_something_is_refused(file):
    brought_in(file)
    with pytest.raises(CommandError, match="is not empty: it holds memories, candidates"):
        brought_in(file)


def test_what_this_installation_holds_already_is_refused(firm, workspace, empty, dora, tmp_path):
    exported(workspace, tmp_path / "all.jsonl")

    with pytest.raises(CommandError, match="in this installation already, perhaps in another workspace"):
        brought_in(tmp_path / "all.jsonl")
    assert not Memory.objects.filter(workspace=empty).exists()
    assert not Candidate.objects.filter(workspace=empty).exists()


def test_a_file_that_was_cut_off_is_refused(file):
    lines = file.read_text().splitlines(keepends=True)

    for kept in (lines[:-2], [*lines[:-1], lines[-1][:-20]], lines[:-1], [*lines[:5], *lines[6:]], []):
        file.write_text("".join(kept))
        refused(file, "cut off|not what was exported|is empty")


CHANGED = [
    (lambda text: text.replace("Use tabs", "Use tubs"), "not what was exported"),
    (
        lambda text: text.replace('"version":1', '"version":2'),
        "It is of version 2; this Firm Memory",
    ),
    (lambda text: text.replace('"format":"firm', '"format":"farm'), "no export of a firm memory"),
    (lambda text: text + text, "Something follows the trailer|stands behind"),
    (lambda text: "\n".join(reversed(text.splitlines())) + "\n", "no export of a firm memory"),
    (lambda text: text.replace('{"record":"source"', '["record":"source"'), "is not JSON"),
    (lambda text: text.replace('"record":"edge"', '"record":"hedge"'), "no record that this version knows"),
]


def test_a_file_that_was_changed_is_refused(file):
    text = file.read_text()

    for change, match in CHANGED:
        file.write_text(change(text))
        refused(file, match)


def test_a_secret_in_a_file_is_masked(file):
    secret = "AKIA" + "Z7Q4K2M9X1B3N5V8"
    resealed(file, lambda rows: memory_of(rows).update(content=f"Log in with {secret} as the key."))

    brought_in(file)

    assert not Memory.objects.filter(content__contains=secret).exists()
    assert Memory.objects.filter(content__contains="[secret").exists()


@pytest.mark.parametrize(
    ("record", "key"),
    [
        ("repository", "slug"),
        ("repository", "remote"),
        ("repository", "aliases"),
        ("type", "name"),
        ("source", "commit"),
    ],
    ids=range(5),
)
def test_a_secret_in_a_name_is_refused(file, record, key):
    secret = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
    value = [secret] if key == "aliases" else secret

    resealed(file, lambda rows: next(row for row in rows if row["record"] == record).update({key: value}))

    refused(file, f"There is a secret in {key}")
    assert not Memory.objects.filter(workspace__slug="elsewhere").exists()


def test_somebody_who_reviews_there_answers_for_it(file, empty, bob, alice):
    add_person(empty, "mia", Role.MEMBER)
    for name, match in (("mia", "reviewer role"), ("alice", "not a member"), ("nobody", "no person nobody")):
        refused(file, match, reviewer=name)


def test_there_must_be_a_file(dora, tmp_path):
    with pytest.raises(CommandError, match="There is no file"):
        brought_in(tmp_path / "nothing")


@pytest.mark.parametrize(
    "failure",
    [ProviderError("The embedder does not answer.", permanent=False), OperationalError("gone"), InterfaceError("gone")],
    ids=lambda failure: type(failure).__name__,
)
@pytest.mark.parametrize("place", ["prepare_many", "insert_many"])
def test_what_could_not_be_embedded_is_said_and_embedded_later(file, empty, pool, monkeypatch, failure, place):
    def fail(*_: object) -> None:
        raise failure

    with monkeypatch.context() as patch:
        patch.setattr(pool, place, fail)
        with pytest.raises(CommandError, match=r"All of the file is written, .*pool audit --repair") as told:
            brought_in(file)
    assert "does not answer." in str(told.value)
    assert Memory.objects.filter(workspace=empty).count() == 3
    assert not list(pool.iterate())

    call_command("pool", "audit", "--repair", "--workspace", "elsewhere", stdout=StringIO(), stderr=StringIO())

    assert {row.id for row in pool.iterate()} == set(Memory.objects.values_list("pk", flat=True))


def test_a_database_that_goes_away_in_the_middle_leaves_nothing(file, monkeypatch):
    def fail(*_: object, **__: object) -> None:
        raise OperationalError("gone")

    monkeypatch.setattr(Supersession.objects, "bulk_create", fail)
    with pytest.raises(OperationalError):
        brought_in(file)
    assert not Memory.objects.exists()
    assert not Verdict.objects.exists()


# --- REST -----------------------------------------------------------------------------------------------------
def test_an_admin_gets_everything_that_their_audiences_admit(api, dave, firm, workspace):
    answer = api(dave).get("/api/v1/export/")
    lines = [json.loads(line) for line in answer.streaming_content]

    assert answer.status_code == 200
    assert answer["Content-Type"] == "application/x-ndjson; charset=utf-8"
    assert answer["Content-Disposition"].startswith('attachment; filename="firm-memory-firm-')
    assert "Initech" not in json.dumps(lines)
    assert "board" not in json.dumps(lines).lower()
    assert lines[0]["left_out"] == 1
    assert lines[0]["counts"]["memory"] == sum(line["record"] == "memory" for line in lines)
    Audience.objects.get(name="board").members.add(dave)
    assert "Initech" in b"".join(api(dave).get("/api/v1/export/").streaming_content).decode()
    assert AuditEvent.objects.filter(verb="export", actor="dave").count() == 2


def test_a_file_of_an_admin_who_does_not_see_all_can_be_brought_in(api, dave, firm, empty, dora, tmp_path):
    (tmp_path / "all.jsonl").write_bytes(b"".join(api(dave).get("/api/v1/export/").streaming_content))
    forget_everything()

    brought_in(tmp_path / "all.jsonl")

    assert Memory.objects.count() == lines_of(empty)[0]["counts"]["memory"]


def test_nobody_else_gets_it(api, firm, workspace, alice, carol, robo, botty, dave, charlie):
    for who in (alice, carol, robo, botty, charlie):
        answer = api(who).get("/api/v1/export/")
        assert answer.status_code == 403, who
        assert b"tabs" not in answer.content
    assert api().get("/api/v1/export/").status_code == 401
    admin = issue(workspace, "dave reads", "reviewer", owner=dave, read_only=True)
    assert api(admin).get("/api/v1/export/").status_code == 200
    pay = Repository.objects.get(slug="acme/pay")
    limited = issue(workspace, "dave limited", "reviewer", owner=dave, repository_ids=[pay.pk])
    assert api(limited).get("/api/v1/export/").status_code == 403
    assert api(dave).get("/api/v1/export/", {"format": "csv"}).status_code == 400
    assert api(dave).post("/api/v1/export/", {}).status_code == 405


def test_who_is_no_operator_is_asked_for_a_role(principal, alice, firm):
    with pytest.raises(Forbidden):
        export_lines(principal(alice))


@pytest.mark.django_db(transaction=True)
def test_it_is_one_snapshot_however_long_it_takes(workspace, bot, reviewer, monkeypatch):
    from apps.agents.files.whole import writing

    monkeypatch.setattr(writing, "AT_ONCE", 1)
    remember(bot, reviewer, "First.")
    second = remember(bot, reviewer, "Second.")
    lines = export_lines(operator(workspace))
    header = json.loads(next(lines))

    elsewhere(lambda: memory_retire(principal=reviewer, reference=second.pk, reason="Meanwhile."))
    elsewhere(lambda: remember(bot, reviewer, "Third."))
    rest = [json.loads(line) for line in lines]

    memories = [line for line in rest if line["record"] == "memory"]
    assert [(line["content"], line["status"]) for line in memories] == [("First.", "active"), ("Second.", "active")]
    assert header["counts"]["memory"] == 2
    assert [each["content"] for each in lines_of(workspace) if each["record"] == "memory"][2] == "Third."


def elsewhere(do) -> None:
    """On a connection of its own, while another one is in the middle of reading."""
    import threading

    from django.db import connections

    def run():
        try:
            do()
        finally:
            connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(30)
    assert not thread.is_alive()


def test_partial_and_amending_edges_stay_what_they_are(firm, workspace, reviewer, empty, dora, tmp_path):
    from apps.core.clock import now
    from apps.memories.verdicts import verdict_record

    verdict = verdict_record(
        reviewer, "supersede", subject_kind="memory", subject_id=firm["amended"].pk, at=now(), reason="In part."
    )
    Supersession.objects.create(
        workspace=workspace,
        old=firm["amended"],
        new=firm["restored"],
        kind=EdgeKind.PARTIAL,
        holds_from=now(),
        verdict=verdict,
    )
    exported(workspace, tmp_path / "all.jsonl")
    forget_everything()
    brought_in(tmp_path / "all.jsonl")

    assert Supersession.objects.filter(kind=EdgeKind.PARTIAL).get().old_id == firm["amended"].pk
    assert fresh(firm["amended"]).status == "active"
