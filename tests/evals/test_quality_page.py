"""The page on quality: what was measured and kept, and what became of what extractors proposed."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError

from apps.accounts.models import Audience
from apps.approvals.restrictions import source_restrict
from apps.capture.models import CaptureEvent
from apps.evals.drawing import bars_of, diagram_of
from apps.evals.extraction import Bin, Reliability, extraction_quality, reliability
from apps.evals.management.commands import evaluate
from apps.evals.models import EvaluationRun
from apps.evals.quality.figures import Figure
from apps.evals.selectors import evaluations_latest
from apps.evals.services import evaluation_store, version_here
from tests import ledger
from tests.capture import finished
from tests.evals.quality.doubles import an_evaluation
from tests.pages import text

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("pool")]

PAGE = "/insights/quality"


@pytest.fixture
def bot(botty):
    return ledger.of_token(botty.token)


@pytest.fixture
def reviewer(alice):
    return ledger.of_person(alice)


def read_by(extractor, event, *candidates):
    """The event as a worker left it that ran this extractor."""
    facts = [finished.fact_of(candidate) for candidate in candidates]
    CaptureEvent.objects.filter(pk=event.pk).update(extractor=extractor, facts=facts)


@pytest.fixture
def extracted(bot, reviewer):
    """Two documents read by rules: one approved, one amended, one rejected, one waiting, and one corrected since."""
    approved, amended, rejected, waiting, corrected = (ledger.propose(bot, confidence=0.95) for _ in range(5))
    ledger.approve(reviewer, approved)
    ledger.approve(reviewer, amended, confidence=0.8)
    ledger.reject(reviewer, rejected)
    wrong = ledger.approve(reviewer, corrected).memory
    report = ledger.report(bot, wrong)
    ledger.approve(reviewer, report)
    read_by("rules", finished.done(bot), approved, amended, rejected)
    read_by("rules", finished.done(bot), waiting, corrected, approved)
    return approved


# --- who may see it -------------------------------------------------------------------------------------------
def test_members_and_strangers_do_not_see_it(browser, bob):
    assert browser(bob).get(PAGE).status_code == 403
    assert browser().get(PAGE).headers["Location"].startswith("/accounts/login/")


def test_it_is_looked_at_and_nothing_else(browser, alice):
    assert browser(alice).post(PAGE).status_code == 405


def test_with_nothing_to_show_it_says_what_would_be_shown(browser, alice):
    shown = text(browser(alice).get(PAGE))
    assert "Nothing has been measured here" in shown and "manage.py evaluate sample --store" in shown
    assert "Nothing has been extracted yet" in shown


def test_it_is_reached_from_the_menu_by_reviewers_alone(browser, alice, bob):
    assert f'href="{PAGE}"' in browser(alice).get("/memories/").content.decode()
    assert f'href="{PAGE}"' not in browser(bob).get("/memories/").content.decode()


# --- evaluations ----------------------------------------------------------------------------------------------
def test_the_newest_run_of_each_suite_is_shown_with_a_picture(browser, alice, extracted, django_assert_max_num_queries):
    old, new, other = an_evaluation(hit_at_5=0.61), an_evaluation(hit_at_5=0.93), an_evaluation(hit_at_5=0.77)
    new.about["at"] = "2026-12-01T12:00:00+00:00"
    other.suites["other"] = other.suites.pop("sample")
    other.suites["other"].name = "other"
    for run in (new, old, other):
        assert evaluation_store(run) == 1
    assert EvaluationRun.objects.count() == 3
    assert [latest.suite.name for latest in evaluations_latest()] == ["other", "sample"]

    client = browser(alice)
    client.get(PAGE)
    with django_assert_max_num_queries(12):
        page = client.get(PAGE)
    content = page.content.decode()
    assert "0.93 (0.88–0.98)" in content and "0.77" in content and "0.61" not in content
    assert content.count('<svg class="plot') == 3
    assert "<style" not in content and " style=" not in content
    for start in content.split('<svg class="plot')[1:]:
        picture = ElementTree.fromstring('<svg class="plot' + start.split("</svg>")[0] + "</svg>")  # noqa: S314
        told = {element.get("id") for element in picture if element.tag in ("title", "desc")}
        assert set(picture.get("aria-labelledby").split()) == told


def test_a_result_is_kept_as_it_was_found():
    found = an_evaluation(**{"hit_at_5": 0.9, "live_at_5": 0.8})
    found.suites["sample"].arms["default"].growth = [(1000, Figure(0.9, 0.8, 1.0, 40))]
    evaluation_store(found)
    (latest,) = evaluations_latest()
    assert latest.suite.arms["default"].as_dict() == found.suites["sample"].arms["default"].as_dict()
    assert (latest.run.version, latest.run.commit) == ("0.1.0", "abc")


def test_the_command_keeps_a_run_where_it_is_told_to_and_says_why_where_it_cannot(monkeypatch, capsys):
    monkeypatch.setattr(evaluate.Command, "_start", lambda *_: an_evaluation())
    call_command("evaluate", "sample")
    assert not EvaluationRun.objects.exists()
    call_command("evaluate", "sample", store=True)
    assert EvaluationRun.objects.count() == 1
    assert "Stored 1 results" in capsys.readouterr().out

    def down(_):
        raise OperationalError("connection refused")

    monkeypatch.setattr(evaluate, "evaluation_store", down)
    with pytest.raises(CommandError, match=r"The run was not stored\. .*connection refused"):
        call_command("evaluate", "sample", store=True)


def test_a_run_says_which_version_made_it():
    assert version_here()["version"] == "0.1.0"


def test_bars_are_as_long_as_their_values_and_ours_are_told_apart():
    bars = bars_of(an_evaluation(hit_at_5=0.5).suites["sample"], frozenset({"default"}))
    (bar,) = bars.bars
    assert bar.width == 180 and bar.low < bars.left + bar.width < bar.high and bar.ours
    assert "default: 0.50 (0.45–0.55)" in bars.told
    assert bars_of(an_evaluation(something=0.5).suites["sample"], frozenset()) is None


# --- extraction -----------------------------------------------------------------------------------------------
def test_what_became_of_what_was_extracted_is_counted_for_each_extractor_and_kind(reviewer, extracted):
    (row,) = extraction_quality(reviewer)
    assert (row.extractor, row.kind, row.documents, row.proposed) == ("rules", "merge_request", 2, 5)
    assert (row.unchanged, row.amended, row.rejected, row.waiting, row.corrected) == (2, 1, 1, 1, 1)
    assert row.per_document == 2.5
    assert (row.approved_share, row.amended_share, row.rejected_share) == (0.5, 0.25, 0.25)
    assert row.corrected_share == pytest.approx(1 / 3)


def test_shares_of_nothing_are_not_told(bot, reviewer):
    read_by("llm", finished.done(bot), ledger.propose(bot))
    (row,) = extraction_quality(reviewer)
    assert (row.waiting, row.approved_share, row.corrected_share) == (1, None, None)


def test_another_workspace_and_what_is_restricted_are_not_counted(bot, reviewer, charlie, dave, extracted, workspace):
    assert extraction_quality(ledger.of_person(charlie)) == [] and reliability(ledger.of_person(charlie)) is None
    audience = Audience.objects.create(workspace=workspace, name="few")
    audience.members.add(dave)
    before = reliability(reviewer).decided
    source = extracted.evidence.get().source
    source_restrict(principal=ledger.of_person(dave), source_id=source.pk, audience_id=audience.pk)
    assert reliability(reviewer).decided == before - 1


def test_confidence_is_held_against_verdicts_by_tenths(bot, reviewer):
    for confidence, decide in ((0.95, True), (0.92, True), (0.91, False), (0.7, True), (1.0, True)):
        candidate = ledger.propose(bot, confidence=confidence)
        ledger.approve(reviewer, candidate) if decide else ledger.reject(reviewer, candidate)
    ledger.propose(bot, confidence=0.95)
    found = reliability(reviewer)
    assert found.bins == [Bin(0.7, 0.8, 1, 1), Bin(0.9, 1.0, 4, 3)]
    assert found.decided == 5
    assert found.error == pytest.approx((1 * 0.25 + 4 * 0.2) / 5)


def test_the_diagram_stands_higher_for_more_approvals_and_tells_its_counts():
    diagram = diagram_of(Reliability([Bin(0.5, 0.6, 10, 2), Bin(0.9, 1.0, 40, 38)]))
    low, high = diagram.dots
    assert low.x < high.x and low.y > high.y and low.radius < high.radius
    assert diagram.told == ("confidence 0.5 to 0.6: 2 of 10 approved; confidence 0.9 to 1.0: 38 of 40 approved")
