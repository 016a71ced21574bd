"""A file that somebody forged, with counts and a sum that fit: nothing comes in as approved that nobody approved."""

from __future__ import annotations

import json
import re

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError

from apps.accounts.models import ApiToken, Audience, AuditEvent, Membership
from apps.accounts.principal import operator
from apps.accounts.services import workspace_set_second_person
from apps.approvals.restrictions import source_restrict
from apps.approvals.services import memory_retire
from apps.candidates.models import Candidate
from apps.memories.models import Memory, Verdict
from apps.scopes.models import Repository
from apps.sources.models import Source
from apps.taxonomy.models import Category, Exclusion, MemoryType
from tests.agents.files.exports import brought_in, exported, forget_everything, resealed
from tests.ledger import a_source, approve, of_person, propose, remember, reopen

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("pool")]

ELSEWHERE = "11111111-2222-4333-8444-555555555555"


@pytest.fixture
def rich(workspace, bot, reviewer, carol, alice, dora, tmp_path):
    """A file with a memory in each state that somebody may want to forge into another one."""
    remember(bot, reviewer, "Plain.", sources=(a_source("acme/pay!1", quote="tabs"),))
    old = remember(bot, reviewer, "Old.")
    remember(bot, reviewer, "New.", supersedes=[old])
    retired = remember(bot, reviewer, "Retired.")
    memory_retire(principal=reviewer, reference=retired.pk, reason="Moot.")
    undone = propose(bot, "Undone.")
    approve(reviewer, undone)
    reopen(reviewer, undone)
    board = remember(bot, reviewer, "Board.", sources=(a_source("#board/1", kind="chat"),))
    audience = Audience.objects.create(workspace=workspace, name="board")
    audience.members.add(alice)
    source_restrict(principal=of_person(carol), source_id=board.evidence.get().source_id, audience_id=audience.pk)
    exported(workspace, tmp_path / "all.jsonl")
    forget_everything()
    return tmp_path / "all.jsonl"


def named(records, content):
    return next(record for record in records if record.get("content") == content)


def of(records, record):
    return next(each for each in records if each["record"] == record)


def verdict(records, content, action="approve"):
    return next(each for each in named(records, content)["verdicts"] if each["action"] == action)


def in_force(records, content, status="active"):
    named(records, content).update(status=status, valid_to=None, closed_at=None, retired_at=None)


def with_another(records, **changes):
    at = records.index(named(records, "Plain.")) + 1
    another = json.loads(json.dumps(records[at - 1])) | {"content": "Another.", "id": ELSEWHERE} | changes
    return [*records[:at], another, *records[at:]]


FORGED = {
    # Who decided, and through which door.
    "nobody decided": (lambda rows: verdict(rows, "Plain.").update(reviewer=""), r"verdicts\[0\]\.reviewer"),
    "blanks decided": (lambda rows: verdict(rows, "Plain.").update(reviewer=" \u200b"), r"verdicts\[0\]\.reviewer"),
    "null decided": (lambda rows: verdict(rows, "Plain.").update(reviewer=None), r"verdicts\[0\]\.reviewer"),
    "a bot decided": (lambda rows: verdict(rows, "Plain.").update(reviewer="restorer"), r"verdicts\[0\]\.reviewer"),
    "through MCP": (lambda rows: verdict(rows, "Plain.").update(via="mcp"), r"verdicts\[0\]\.via"),
    "through capture": (lambda rows: verdict(rows, "Plain.").update(via="capture"), r"verdicts\[0\]\.via"),
    "through a long door": (lambda rows: verdict(rows, "Plain.").update(via="ui" * 30), r"verdicts\[0\]\.via"),
    "its own proposer": (
        lambda rows: verdict(rows, "Plain.").update(second_person=False),
        r"verdicts\[0\]\.second_person",
    ),
    "with an id of a person": (lambda rows: verdict(rows, "Plain.").update(user=1), "verdicts"),
    "with a reason without end": (
        lambda rows: verdict(rows, "Plain.").update(reason="x" * 4_001),
        r"verdicts\[0\]\.reason",
    ),
    # What was decided.
    "no verdict": (lambda rows: named(rows, "Plain.").update(verdicts=[]), "verdicts"),
    "a rejection": (lambda rows: verdict(rows, "Plain.").update(action="reject"), r"verdicts\[0\]\.action"),
    "a report": (lambda rows: verdict(rows, "Plain.").update(action="correct"), r"verdicts\[0\]\.action"),
    "a withdrawal": (lambda rows: verdict(rows, "Plain.").update(action="withdraw"), r"verdicts\[0\]\.action"),
    "two approvals": (
        lambda rows: named(rows, "Plain.")["verdicts"].append(verdict(rows, "Plain.") | {"id": ELSEWHERE}),
        "verdicts",
    ),
    "a verdict of another": (
        lambda rows: named(rows, "New.").update(verdicts=[verdict(rows, "Plain.")]),
        "verdicts: an id is",
    ),
    "of other words": (
        lambda rows: verdict(rows, "Plain.").update(after={"content": "Something else."}),
        r"verdicts\[0\]\.after",
    ),
    "amended in a way there is none": (
        lambda rows: verdict(rows, "Plain.").update(amended=["origin"]),
        r"verdicts\[0\]\.amended",
    ),
    "an after of any shape": (
        lambda rows: verdict(rows, "Old.", "supersede").update(after={"by": "nobody"}),
        r"verdicts\[1\]\.after\.by",
    ),
    "an after with a key of its own": (
        lambda rows: verdict(rows, "Retired.", "retire").update(after={"password": "x"}),
        r"verdicts\[1\]\.after",
    ),
    "a before that is deep": (
        lambda rows: verdict(rows, "Retired.", "retire").update(before={"status": [[["x"]]]}),
        r"verdicts\[1\]\.before\.status",
    ),
    "approved after it was known": (
        lambda rows: verdict(rows, "Plain.").update(at="2026-12-31T00:00:00+00:00"),
        r"verdicts\[0\]\.at|recorded_at",
    ),
    "approved in the future": (
        lambda rows: verdict(rows, "Plain.").update(at="2999-01-01T00:00:00+00:00"),
        "future",
    ),
    # What became of it.
    "taken back, and in force": (lambda rows: in_force(rows, "Undone."), "status.*taken back"),
    "taken back, and disputed": (
        lambda rows: in_force(rows, "Undone.", "disputed"),
        "status.*taken back",
    ),
    "retired, and in force": (lambda rows: in_force(rows, "Retired."), "status.*retired"),
    "replaced, and in force": (lambda rows: in_force(rows, "Old."), "valid_to"),
    "replaced, and known to end late": (
        lambda rows: named(rows, "Old.").update(status="active", closed_at="2999-01-01T00:00:00+00:00"),
        "closed_at.*future",
    ),
    "ended, and it is not known when": (lambda rows: named(rows, "Old.").update(closed_at=None), "closed_at"),
    "retired at a moment, and active": (lambda rows: named(rows, "Retired.").update(status="active"), "status"),
    # What it replaces.
    "an edge by the approval of another": (
        lambda rows: rows[-1].update(verdict=verdict(rows, "Plain.")["id"]),
        "verdict",
    ),
    "an edge without verdict": (lambda rows: rows[-1].update(verdict=None), "verdict"),
    "an edge by nothing": (lambda rows: rows[-1].update(verdict=ELSEWHERE), "verdict"),
    "an edge by a retirement": (
        lambda rows: rows[-1].update(verdict=verdict(rows, "Retired.", "retire")["id"]),
        "verdict",
    ),
    "an edge from another": (lambda rows: rows[-1].update(old=named(rows, "Plain.")["id"]), "valid_to|old"),
    "an edge to another": (lambda rows: rows[-1].update(new=named(rows, "Plain.")["id"]), "verdict"),
    "an edge to nothing": (lambda rows: rows[-1].update(new=ELSEWHERE), "new"),
    "an edge from nothing": (lambda rows: rows[-1].update(old=ELSEWHERE), "old"),
    "an edge to itself": (lambda rows: rows[-1].update(old=rows[-1]["new"]), "old|new"),
    "an edge twice": (lambda rows: [*rows, rows[-1]], "line 2|already|twice"),
    "an edge voided by the undoing of another": (
        lambda rows: rows[-1].update(voided_by=verdict(rows, "Undone.", "reopen")["id"]),
        "voided_by",
    ),
    # Who may see it, and where it is.
    "open to everybody": (lambda rows: named(rows, "Board.").update(audiences=[]), "audiences"),
    "for an audience that there is not": (lambda rows: named(rows, "Plain.").update(audiences=["x"]), "audiences"),
    "a source open at another commit": (
        lambda rows: rows.insert(
            rows.index(of(rows, "source")),
            of(rows, "source") | {"kind": "chat", "reference": "#board/1", "commit": "1"},
        ),
        "audience",
    ),
    "the id of another memory": (lambda rows: with_another(rows, id=named(rows, "New.")["id"]), "id"),
    "the number of another memory": (
        lambda rows: with_another(rows, verdicts=[verdict(rows, "Plain.") | {"id": ELSEWHERE}]),
        "number",
    ),
    "of no source": (lambda rows: named(rows, "Plain.").update(evidence=[]), "evidence"),
    "of no scope": (
        lambda rows: named(rows, "Plain.").update(scope={"firm": False, "domains": [], "repos": []}),
        "scope",
    ),
    "of no words": (lambda rows: named(rows, "Plain.").update(content=""), "content"),
    "of too many words": (lambda rows: named(rows, "Plain.").update(content="x" * 8_001), "content"),
    "with a quote that is too long": (
        lambda rows: named(rows, "Plain.")["evidence"][0].update(quote="x" * 501),
        r"evidence\[0\]\.quote",
    ),
    "with a number beyond all numbers": (lambda rows: rows[0].update(last_number=2**63 - 1), "last_number"),
    # What would break what reads it.
    "no last number": (lambda rows: rows[0].pop("last_number") and [], "header"),
    "no counts": (lambda rows: rows[0].update(counts={"people": 1}), "counts"),
    "weights that are no numbers": (
        lambda rows: of(rows, "category").update(weights={"implement": "heavy"}),
        "weights",
    ),
    "weights of no intent": (lambda rows: of(rows, "category").update(weights={"x": 1}), "weights"),
    "a half-life of nothing": (lambda rows: of(rows, "category").update(half_life_days=0), "half_life_days"),
    "a lifetime beyond all": (lambda rows: of(rows, "category").update(ttl_days=2**40), "ttl_days"),
    "a type of no threshold": (lambda rows: of(rows, "type").update(min_confidence=None), "min_confidence"),
    "a type that says nothing": (lambda rows: of(rows, "type").update(description=" "), "description"),
    "a type of no slug": (lambda rows: of(rows, "type").update(slug="x y"), "slug"),
    "a type of another's name": (lambda rows: of(rows, "type").update(name="OWNERSHIP"), "name"),
    "an exclusion that says too much": (
        lambda rows: of(rows, "exclusion").update(description="x" * 2_001),
        "description",
    ),
    "a repository of two lines": (lambda rows: of(rows, "repository").update(remote="a\nb"), "remote"),
    "a repository twice": (
        lambda rows: rows.insert(rows.index(of(rows, "repository")), of(rows, "repository")),
        "slug",
    ),
    "a source of no web": (lambda rows: of(rows, "source").update(url="javascript:alert(1)"), "url"),
    "a source with a long title": (lambda rows: of(rows, "source").update(title="x" * 501), "title"),
    "a source of no name": (lambda rows: of(rows, "source").update(reference=""), "reference"),
    "a source of no kind": (lambda rows: of(rows, "source").update(kind="rumour"), "kind"),
    "a source twice": (lambda rows: rows.insert(rows.index(of(rows, "source")), of(rows, "source")), "source"),
    "an audience of no name": (lambda rows: of(rows, "audience").update(name=""), "name"),
    # What is no value of its kind.
    "a source that there is not": (
        lambda rows: named(rows, "Plain.")["evidence"][0].update(reference="?"),
        r"evidence\[0\] names a source that is not in the file",
    ),
    "a type that there is not": (lambda rows: named(rows, "Plain.").update(type="nonsense"), "type names a type"),
    "a status that there is not": (lambda rows: named(rows, "Plain.").update(status="loved"), "status is none of"),
    "a number beyond the last": (lambda rows: named(rows, "Plain.").update(number=99), "number is beyond the last one"),
    "a number as text": (lambda rows: named(rows, "Plain.").update(number="1"), "number is not a whole number"),
    "a confidence of two": (lambda rows: named(rows, "Plain.").update(confidence=2), "confidence is not a number from"),
    "a moment in words": (lambda rows: named(rows, "Plain.").update(recorded_at="today"), "recorded_at is no moment"),
    "a moment before all": (
        lambda rows: named(rows, "Plain.").update(recorded_at="0001-01-01T00:00:00+14:00"),
        "recorded_at is no moment",
    ),
    "a character of no column": (lambda rows: named(rows, "Plain.").update(content="a\0b"), "content holds a char"),
    "a repository that there is not": (
        lambda rows: named(rows, "Plain.")["scope"].update(repos=["other/x"]),
        r"scope\.repos names repos that are not in the file",
    ),
    "a key that there is not": (lambda rows: named(rows, "Plain.").update(colour="red"), "A memory holds"),
    "a scope of nothing": (lambda rows: named(rows, "Plain.").update(scope=None), "scope does not hold"),
    "a verdict on the memory": (
        lambda rows: verdict(rows, "Plain.").update(on="memory"),
        r"verdicts\[0\]\.action: approve is no verdict on a memory",
    ),
    "another order": (lambda rows: [rows[0], *reversed(rows[1:])], "The order of the lines was changed"),
    "a circle": (
        lambda rows: [*rows, rows[-1] | {"old": rows[-1]["new"], "new": rows[-1]["old"], "kind": "partial"}],
        "verdict",
    ),
    "people": (lambda rows: rows.insert(1, {"record": "person", "name": "eve", "password": "x"}), "no record"),
    "tokens": (lambda rows: rows.insert(1, {"record": "token", "digest": "x"}), "no record"),
}


def everything() -> list[object]:
    models = (Memory, Candidate, Verdict, Source, Repository, User, Membership, ApiToken, Audience)
    counts = [model.objects.count() for model in models]
    return [
        *counts,
        *MemoryType.objects.values_list(),
        *Category.objects.values_list(),
        *Exclusion.objects.values_list(),
    ]


def told_of(path, caplog) -> str:
    before = everything()
    caplog.clear()
    try:
        brought_in(path)
    except CommandError as refusal:
        if (everything(), refusal.returncode, caplog.records) != (before, 1, []):
            return f"Something was left, or logged: {refusal}"
        return str(refusal)
    except Exception as error:
        return repr(error)
    forget_everything()
    return "It was taken."


def test_what_a_forged_file_claims_is_refused_with_its_line_and_field(rich, caplog):
    text = rich.read_text()
    wrong = {}
    for name, (change, match) in FORGED.items():
        rich.write_text(text)
        resealed(rich, change)
        told = told_of(rich, caplog)
        if "\n" in told or not re.match(rf"Line [\d,]+: .*({match})", told):
            wrong[name] = told
    assert wrong == {}


def test_what_is_no_record_is_refused_with_its_line(rich, caplog):
    header, *rest = rich.read_text().splitlines(keepends=True)
    deep = '{"record":"domain","slug":' + "[" * 900 + "]" * 900 + ',"confirmed":true}\n'
    deeper = deep.replace("[" * 900, "[" * 90_000).replace("]" * 900, "]" * 90_000)

    for line in (deep, deeper, "[]\n", "null\n", '{"record":["header"]}\n', '{"record":"domain"}\n', "\n", "\x00\n"):
        rich.write_text("".join([header, line, *rest]))
        told = told_of(rich, caplog)
        assert re.match(r"Line 2: ", told), (line[:40], told)


def test_a_one_person_firm_brings_in_what_it_approved_alone(rich, empty, dave):
    resealed(rich, lambda rows: verdict(rows, "Plain.").update(second_person=False))
    workspace_set_second_person(principal=operator(empty), required=False)

    brought_in(rich)

    assert not Memory.objects.get(content="Plain.").verdict.second_person
    assert Memory.objects.get(content="New.").verdict.second_person


def test_a_name_in_a_file_makes_nobody_and_gives_nobody_anything(rich, empty):
    eve = User.objects.create_user("eve")
    people = list(User.objects.values()), list(Membership.objects.values()), list(ApiToken.objects.values())
    resealed(rich, lambda rows: verdict(rows, "Plain.").update(reviewer="eve"))

    brought_in(rich)

    given = Memory.objects.get(content="Plain.").verdict
    assert (given.reviewer_name, given.reviewer.username, given.via) == ("eve", "dora", "restored:ui")
    users, memberships, tokens = people
    assert (list(User.objects.values()), list(Membership.objects.values())) == (users, memberships)
    (restorer,) = ApiToken.objects.exclude(pk__in=[token["id"] for token in tokens])
    assert (restorer.name, restorer.kind, restorer.owner) == ("restorer", "bot", None)
    assert not Audience.objects.filter(members__isnull=False).exists()
    eve.delete()  # nothing that counts hangs on this person


def test_what_a_file_lets_through_is_told(rich, empty):
    def change(rows):
        next(row for row in rows if row.get("slug") == "business_rules").update(always_human=False)
        of(rows, "exclusion").update(is_active=False)

    resealed(rich, change)
    told = brought_in(rich)

    switched_off = Exclusion.objects.get(workspace=empty, is_active=False).slug
    for sentence in (
        "What is of type business_rules may be approved in bulk without opening it.",
        f"The exclusion {switched_off} is switched off.",
    ):
        assert f"Loosened by the file: {sentence}\n" in told
        assert sentence in AuditEvent.objects.get(verb="import").after["loosened"]
