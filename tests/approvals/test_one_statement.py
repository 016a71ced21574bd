"""One statement is in force once, and a restricted reason stays with those who may read it."""

from __future__ import annotations

from functools import partial

import pytest

from apps.accounts.models import Audience
from apps.core.errors import Conflict
from apps.memories.models import Memory, Verdict
from apps.sources.models import Source
from tests.at_once import at_once, kinds
from tests.ledger import a_source, approve, of_person, of_token, propose, remember, report

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("pool")]


def test_two_candidates_amended_to_the_same_words_at_once_become_one_memory(botty, alice, carol):
    bot, first, second = of_token(botty.token), of_person(alice), of_person(carol)
    for number in range(5):
        one, other = propose(bot), propose(bot)
        words = f"The gate closes at {number}."
        results = at_once(partial(approve, first, one, content=words), partial(approve, second, other, content=words))
        assert kinds(results) == ["Conflict", "done"]
        refused = next(result for result in results if isinstance(result, Conflict))
        assert refused.code == "already_known"
        assert Memory.objects.filter(content=words, status="active").count() == 1


def test_the_reason_of_a_report_from_a_restricted_source_stays_with_the_report(botty, robo, alice, workspace, api):
    bot = of_token(botty.token)
    memory = remember(bot, of_person(alice), "Deploys stop on Fridays.")
    board = Audience.objects.create(workspace=workspace, name="board")
    board.tokens.add(botty.token)
    propose(bot, "A statement that brings the source in.", sources=(a_source("board-minutes"),))
    Source.objects.filter(reference="board-minutes").update(audience=board)
    report(of_token(botty.token), memory, reason="The settlement with Vexilla.", sources=(a_source("board-minutes"),))
    shown = api(robo).get(f"/api/v1/memories/{memory.pk}/")
    assert shown.status_code == 200
    assert "Vexilla" not in shown.content.decode()
    assert not Verdict.objects.filter(subject_id=memory.pk, reason__contains="Vexilla").exists()


def test_an_open_reason_is_for_everybody(botty, robo, alice, api):
    memory = remember(of_token(botty.token), of_person(alice), "Deploys stop on Fridays.")
    report(of_token(botty.token), memory, reason="The calendar changed.")
    assert "The calendar changed." in api(robo).get(f"/api/v1/memories/{memory.pk}/").content.decode()
