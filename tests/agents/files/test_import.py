"""What files state waits for a person like any other proposal, once, and nothing is lost without a word."""

from __future__ import annotations

import time
from difflib import SequenceMatcher

import pytest

from apps.agents.files import services
from apps.agents.files.formats import Format
from apps.agents.files.known import Known, key_of
from apps.agents.files.reading import Found
from apps.agents.files.services import FileInput, FileReport, _key_of_content, _matched, _Place, _reworded, files_import
from apps.candidates import services as candidates
from apps.candidates.models import Candidate
from apps.core.errors import Forbidden, Invalid
from apps.memories.models import Memory
from apps.scopes.models import Repository
from tests.agents.files.texts import AGENTS, EVERY
from tests.conftest import issue
from tests.ledger import approve, fresh, of_token, propose_many, reject

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("pool")]

REPO = "acme/pay"


@pytest.fixture
def take(bot):
    """``take({path: text})`` imports files of acme/pay in the bot's name."""

    def run(files, principal=bot, **options):
        inputs = [FileInput(path, text) for path, text in files.items()]
        return files_import(principal=principal, repo=REPO, files=inputs, **options)

    return run


def counts(imported) -> dict[str, dict[str, int]]:
    return {
        report.path: {
            name: value
            for name in ("new", "joined", "unchanged", "changed", "gone")
            if (value := getattr(report, name))
        }
        for report in imported.files
    }


def test_every_statement_waits_in_the_queue_with_its_place_as_source(take):
    imported = take({"services/api/AGENTS.md": AGENTS}, commit="4f2a9c1")

    (report,) = imported.files
    assert report.new == report.statements == Candidate.objects.pending().count() == len(imported.candidates)
    candidate = Candidate.objects.get(content__startswith="Setup: Install")
    (evidence,) = candidate.evidence.select_related("source")
    assert (evidence.source.kind, evidence.source.reference, evidence.source.commit, evidence.source.title) == (
        *("rules_file", "acme/pay:services/api/AGENTS.md#Setup", "4f2a9c1"),
        "services/api/AGENTS.md: Setup",
    )
    assert evidence.quote == "Install with `make setup`, never with pip alone, because the pins are hashed."
    assert [row.slug for row in Repository.objects.filter(pk__in=candidate.repo_ids)] == [REPO]
    assert candidate.confidence is None
    assert not Memory.objects.exists()


def test_types_are_those_of_rules(take):
    take({"AGENTS.md": AGENTS})

    types = dict(Candidate.objects.values_list("content", "type__slug"))
    assert types["Every money amount must be an integer number of cents, never a float."] == "coding_conventions"
    assert types["Setup: Run the tests with `make test`"] == "tooling_setup"


def test_what_tells_of_no_type_is_a_convention(take):
    take({"AGENTS.md": "## Style\n\n- Money is an integer of minor units.\n"})

    assert Candidate.objects.get().type.slug == "coding_conventions"


def test_the_same_words_in_two_files_are_one_candidate_with_two_sources(take):
    imported = take({"AGENTS.md": EVERY["AGENTS.md"], "CLAUDE.md": EVERY["CLAUDE.md"]})

    assert counts(imported)["CLAUDE.md"] == {"new": 1, "joined": 1}
    candidate = Candidate.objects.get(content__contains="never with pip")
    assert {row.source.reference for row in candidate.evidence.all()} == {
        *("acme/pay:AGENTS.md#Setup", "acme/pay:CLAUDE.md#Getting started")
    }


def test_the_same_words_from_another_file_later_join_what_waits_or_is_known(take, reviewer):
    take({"AGENTS.md": "## Setup\n- Install with make setup, never by hand.\n"})
    imported = take({"CLAUDE.md": "## Start\n- Install with make setup, never by hand.\n"})

    assert counts(imported) == {"CLAUDE.md": {"joined": 1}}
    candidate = Candidate.objects.get()
    approve(reviewer, candidate)
    assert counts(take({".cursorrules": "- Install with make setup, never by hand.\n"})) == {
        ".cursorrules": {"joined": 1}
    }


def test_in_another_folder_the_same_words_are_another_statement(take):
    text = "- Run the tests with make test here.\n"

    imported = take({"api/AGENTS.md": "## Api\n" + text, "web/AGENTS.md": "## Web\n" + text})

    assert counts(imported) == {"api/AGENTS.md": {"new": 1}, "web/AGENTS.md": {"new": 1}}


def test_a_second_run_proposes_nothing_at_whatever_commit(take):
    take(EVERY, commit="a")
    before = Candidate.objects.count()

    imported = take(EVERY, commit="b")

    assert Candidate.objects.count() == before
    assert all(report.unchanged == report.statements for report in imported.files)
    assert {report.gone for report in imported.files} == {0}


def test_what_stands_in_a_file_twice_is_one_statement_and_stays_it(take):
    text = "## Setup\n- Install with make setup, always.\n\n## Tests\n- Install with make setup, always.\n"

    assert counts(take({"AGENTS.md": text})) == {"AGENTS.md": {"new": 1, "joined": 1}}
    assert counts(take({"AGENTS.md": text})) == {"AGENTS.md": {"unchanged": 2}}
    assert Candidate.objects.get().seen_count == 1


def test_many_statements_are_recognised_quickly(bot):
    places = [_place(f"Rule number {n} of this file is kept by all.") for n in range(2_000)]
    olds = [_known(place.found.content) for place in reversed(places)]
    started = time.perf_counter()

    assert _matched(places, olds, _key_of_content) == []
    assert all(place.known for place in places)
    assert time.perf_counter() - started < 3


def _place(words):
    return _Place(FileReport("AGENTS.md", Format.AGENTS_MD), Found(1, "", words, words, words))


def _known(words):
    return Known(Candidate(status="pending"), "", key_of(words), key_of(words), None)


@pytest.mark.parametrize("decided", ["approved", "rejected", "amended"])
def test_what_was_decided_is_not_proposed_again(take, reviewer, decided):
    take({"AGENTS.md": "- Use tabs in makefiles, always.\n"}, commit="a")
    candidate = Candidate.objects.get()
    if decided == "rejected":
        reject(reviewer, candidate)
    else:
        approve(reviewer, candidate, **({"content": "Makefiles take tabs."} if decided == "amended" else {}))

    imported = take({"AGENTS.md": "- Use tabs in makefiles, always.\n"}, commit="b")

    assert counts(imported) == {"AGENTS.md": {"unchanged": 1}}
    assert imported.candidates[0].status == fresh(candidate).status
    assert Candidate.objects.count() == 1


def test_a_heading_that_was_renamed_changes_nothing(take):
    take({"AGENTS.md": "## Tests\n- Run the tests with make test first.\n"})

    imported = take({"AGENTS.md": "## Testing\n- Run the tests with make test first.\n"})

    assert counts(imported) == {"AGENTS.md": {"unchanged": 1}}


def test_a_reworded_bullet_is_proposed_in_the_place_of_its_memory(take, reviewer):
    take({"AGENTS.md": "## Money\n- Round amounts half to even.\n- Never use floats for money.\n"})
    memory = approve(reviewer, Candidate.objects.get(content__contains="Round")).memory

    imported = take({"AGENTS.md": "## Money\n- Round amounts half up.\n- Never use floats for money.\n"})

    assert counts(imported) == {"AGENTS.md": {"changed": 1, "unchanged": 1}}
    new = Candidate.objects.get(content="Money: Round amounts half up.")
    assert new.supersedes == [memory.pk]
    assert fresh(memory).status == "active"
    assert approve(reviewer, new).memory.status == "active"
    assert fresh(memory).status == "superseded"
    assert counts(take({"AGENTS.md": "## Money\n- Round amounts half up.\n"})) == {
        "AGENTS.md": {"unchanged": 1, "gone": 1}
    }


def test_of_many_long_texts_that_are_almost_alike_only_so_many_are_compared(monkeypatch):
    """To compare all of them would take minutes, of one request."""
    monkeypatch.setattr(services, "_MAX_COMPARED", 5_000_000)
    compared = []
    monkeypatch.setattr(SequenceMatcher, "ratio", lambda matcher: compared.append(matcher) or 0.9)
    olds = [Known(Candidate(), "", "", f"{at} {'ab' * 240} x{at}", None) for at in range(30)]
    found = [Found(1, "", "", "", f"{at} {'ab' * 240} y{at}") for at in range(30)]

    pairs = _reworded([_Place(FileReport("AGENTS.md", Format.AGENTS_MD), each) for each in found], olds)

    assert 15 < len(compared) < 30
    assert 0 < len(pairs) <= 30


def test_a_reworded_bullet_that_waits_takes_the_place_of_its_older_wording(take):
    take({"AGENTS.md": "- Round amounts half to even.\n"})
    old = Candidate.objects.get()

    imported = take({"AGENTS.md": "- Round amounts half up, always.\n"})

    assert counts(imported) == {"AGENTS.md": {"changed": 1}}
    assert fresh(old).status == "withdrawn"
    assert Candidate.objects.pending().get().content == "Round amounts half up, always."


def test_what_somebody_else_proposed_is_not_withdrawn(take, robo):
    take({"AGENTS.md": "- Round amounts half to even.\n"}, principal=of_token(robo.token))

    imported = take({"AGENTS.md": "- Round amounts half up, always.\n"})

    assert Candidate.objects.pending().count() == 2
    assert imported.notes == ["AGENTS.md, line 1: its earlier wording still waits as well."]


def test_what_is_gone_is_reported_and_stays(take, reviewer):
    take({"AGENTS.md": "- Round amounts half to even.\n- Use tabs in makefiles.\n"})
    memory = approve(reviewer, Candidate.objects.get(content__contains="Round")).memory

    imported = take({"AGENTS.md": "- Use tabs in makefiles.\n"})

    assert counts(imported) == {"AGENTS.md": {"unchanged": 1, "gone": 1}}
    assert imported.notes == [f"{memory.label} came from AGENTS.md and no longer stands there. Nothing was retired."]
    assert fresh(memory).status == "active"


def test_an_empty_file_reports_all_of_it_gone(take):
    take({"AGENTS.md": "- Round amounts half to even.\n"})

    assert counts(take({"AGENTS.md": ""})) == {"AGENTS.md": {"gone": 1}}


def test_a_dry_run_says_the_same_and_writes_nothing(take):
    told = take(EVERY, dry_run=True)
    assert not Candidate.objects.exists()
    assert not Repository.objects.exists()
    assert {taken.id for taken in told.candidates} == {None}

    done = take(EVERY)

    assert counts(told) == counts(done)


def test_decision_records_are_decisions_with_their_status(take, reviewer):
    records = {path: text for path, text in EVERY.items() if path.startswith("docs/adr/")}
    imported = take({"docs/adr/0002-queue.md": records.pop("docs/adr/0002-queue.md")})
    first = Candidate.objects.get(pk=imported.candidates[0].id)
    memory = approve(reviewer, first).memory
    take(records)

    assert (first.type.slug, first.valid_from.year) == ("architecture_decisions", 2024)
    assert first.evidence.get().source.reference == "acme/pay:docs/adr/0002-queue.md"
    assert first.evidence.get().source.kind == "document"
    assert Candidate.objects.get(content__startswith="3. Rent").supersedes == [memory.pk]
    assert Candidate.objects.get(content__startswith="4. Write").type.slug == "anti_patterns"
    assert fresh(memory).status == "active"


def test_a_record_that_names_an_unknown_one_replaces_nothing(take):
    imported = take({"docs/adr/0003-rent.md": EVERY["docs/adr/0003-rent.md"]})

    assert Candidate.objects.get().supersedes == []
    assert imported.notes == [
        "docs/adr/0003-rent.md says that it replaces 2, of which no memory is in force. A reviewer may name "
        "it at the approval."
    ]


# --- the gate -------------------------------------------------------------------------------------------------
def test_a_secret_is_refused_by_its_line_and_stored_nowhere(take):
    secret = "AKIA" + "Z7Q4K2M9X1B3N5V8"
    imported = take({"AGENTS.md": f"- Log in with {secret} as the key.\n- Use tabs in makefiles.\n"})

    (report,) = imported.files
    assert (report.new, report.statements, imported.refused) == (1, 2, 1)
    assert report.skipped[0].line == 1
    assert "secret" in report.skipped[0].reason
    assert secret not in str(imported.as_dict())
    assert not Candidate.objects.filter(content__contains=secret).exists()


def test_a_path_with_a_secret_is_refused(take):
    with pytest.raises(Invalid) as refusal:
        take({"AKIA" + "Z7Q4K2M9X1B3N5V8/AGENTS.md": ""})
    assert refusal.value.errors[0].field == "files[0].path"
    assert "Z7Q4" not in str(refusal.value.as_dict())


def test_code_in_a_bullet_that_screening_refuses_is_left_out_of_it(take):
    block = "\n".join(f"  def f{n}(x):\n      return x + {n}" for n in range(6))
    take({"AGENTS.md": f"- Write it like this one does:\n\n  ```python\n{block}\n  ```\n"})

    assert Candidate.objects.get().content == "Write it like this one does:"


def test_a_full_queue_is_told_and_the_next_run_goes_on(take, bot, reviewer):
    waiting = propose_many(bot, 198)
    text = "".join(f"- Rule {n} of the firm is kept by everybody.\n" for n in range(1, 6))

    imported = take({"AGENTS.md": text})

    assert counts(imported) == {"AGENTS.md": {"new": 2}}
    assert imported.not_taken == 3
    assert [skipped.line for skipped in imported.files[0].skipped] == [3, 4, 5]
    assert "200 of your proposals are waiting" in imported.files[0].skipped[0].reason
    assert imported.notes[-1].startswith("3 statements were not taken: 200 of your proposals")
    for candidate in waiting[:3]:
        reject(reviewer, candidate)
    assert counts(take({"AGENTS.md": text})) == {"AGENTS.md": {"new": 3, "unchanged": 2}}


def test_tokens_stay_within_their_limits(take, workspace, remember):
    remember()
    pay = Repository.objects.get(slug=REPO)
    limited = of_token(issue(workspace, "limited", "agent", repository_ids=[pay.pk]).token)

    assert counts(take({"AGENTS.md": "- Use tabs in makefiles.\n"}, principal=limited)) == {"AGENTS.md": {"new": 1}}
    with pytest.raises(Forbidden):
        files_import(principal=limited, repo="acme/other", files=[FileInput("AGENTS.md", "")], dry_run=True)


def test_a_read_only_token_may_not_even_try(take, workspace):
    with pytest.raises(Forbidden):
        take(
            {"AGENTS.md": ""},
            principal=of_token(issue(workspace, "reader", "agent", read_only=True).token),
            dry_run=True,
        )


def test_a_remote_leads_to_the_same_places(take, bot):
    take({"AGENTS.md": "- Use tabs in makefiles.\n"})
    files = [FileInput("AGENTS.md", "- Use tabs in makefiles.\n")]

    imported = files_import(principal=bot, repo="git@git.example.com:acme/pay.git", files=files)

    assert counts(imported) == {"AGENTS.md": {"unchanged": 1}}


def test_a_dry_run_says_the_same_and_looks_for_nothing_that_it_would_only_forget(take, bot, monkeypatch):
    text = "".join(f"- Always keep queue {number} behind the gateway of the ledger.\n" for number in range(20))
    take({"docs/AGENTS.md": "- Always keep the gateway of the ledger behind a queue.\n"})
    looked: list[str] = []
    monkeypatch.setattr(candidates, "near_by_text", lambda *_: looked.append("words") or [])
    monkeypatch.setattr(candidates, "async_task", lambda *_: looked.append("vector"))

    dry = take({"AGENTS.md": text}, dry_run=True)
    assert looked == []
    done = take({"AGENTS.md": text})

    assert looked.count("words") == looked.count("vector") == 20
    assert [report.as_dict() for report in dry.files] == [report.as_dict() for report in done.files]
    assert [each.status for each in dry.candidates] == [each.status for each in done.candidates]
