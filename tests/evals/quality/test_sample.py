"""The sample suite, measured as the command measures it, against the committed baseline."""

from __future__ import annotations

import json
from urllib.parse import quote
from uuid import uuid4

import psycopg
import pytest
from django.core.management import call_command
from django.db import connection
from django.test import override_settings

from apps.evals.benchmarks import server
from apps.evals.management.commands.evaluate import BASELINE
from apps.evals.quality import corpora, gate, growth
from apps.evals.quality.catalogue import find_suites
from apps.evals.quality.results import Evaluation
from apps.evals.quality.suites import read_suite
from tests.evals.quality.doubles import a_folder

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow, pytest.mark.timeout(400)]


def this_server() -> str:
    used = connection.get_connection_params()
    name = connection.settings_dict["NAME"]
    return f"postgresql://{used['user']}:{quote(used['password'])}@{used['host']}:{used['port']}/{name}"


@pytest.fixture(scope="module")
def migrated(django_db_setup, django_db_blocker):
    """The name of a database made and migrated as the command does it, which those of the tests are copied from."""
    name = f"{server.EVALUATION}_migrated_{uuid4().hex[:8]}"
    with django_db_blocker.unblock(), override_settings(DATABASE_URL=this_server()), server.using(name):
        pass
    yield name
    with django_db_blocker.unblock(), override_settings(DATABASE_URL=this_server()):
        server.drop_database(name)


def copies_of(migrated):
    def make_database(url, name):
        if name in server.databases(name):
            return False
        with psycopg.connect(url, autocommit=True) as connected:
            connected.execute(f'CREATE DATABASE "{name}" TEMPLATE "{migrated}"')
        return True

    return make_database


@pytest.fixture
def place(migrated, settings, tmp_path, monkeypatch):
    """Where the command would work: databases of its own on this server, its files in a folder of its own."""
    own = f"{server.EVALUATION}_{uuid4().hex[:8]}_"  # other processes of this run have theirs
    monkeypatch.setattr(corpora, "PREFIX", own)
    monkeypatch.setattr(growth, "DATABASE", f"{own}growth")
    monkeypatch.setattr(server, "make_database", copies_of(migrated))
    settings.DATABASE_URL = this_server()
    settings.DATA_DIR = tmp_path
    yield tmp_path
    for database in server.databases(own):
        server.drop_database(database)


def evaluated(place, *suites, **options):
    found = place / "evaluation.json"
    call_command("evaluate", *suites, inside=found, folder=place, **options)
    return Evaluation.from_dict(json.loads(found.read_text()))


def earlier_output(place, suite):
    path = place / "earlier.json"
    path.write_text(
        json.dumps(
            {"format": 1, "about": {"command": "manage.py evaluate before"}, "suites": {"before": suite.as_dict()}}
        )
    )
    return path


def test_the_answers_are_as_good_as_the_baseline_says(place):
    baseline = gate.read_baseline(BASELINE)
    arms = list(baseline["suites"]["sample"]["arms"])
    found = evaluated(place, "sample", arms=[arm for arm in arms if arm != "ledger"])
    short = [finding for finding in gate.compare(found, baseline) if not finding.holds]
    assert short == []


def test_a_small_suite_is_loaded_once_measured_with_every_arm_and_grown(place, capfd):
    folder = a_folder(place / "mine")
    first = evaluated(place, str(folder), arms=["none", "grep", "bm25", "mem0", "default"]).suites["mine"]
    assert first.arms["default"].figures["hit@5"].value == 1.0
    assert first.arms["none"].figures["hit@5"].value == 0.0
    assert first.arms["grep"].figures["stale@5"].value == 1.0
    assert first.arms["mem0"].figures["hit@5"].value == 1.0
    assert first.arms["default"].figures["stale@5"].value == 0.0
    assert first.arms["default"].figures["live@5"].value == 1.0
    assert first.arms["ledger"].figures["heads as of"].value == 1.0
    assert first.arms["default"].figures["stale@5 as of"].value == 0.0
    assert {"vector", "text", "total", "embedding a question"} <= first.arms["default"].stages.keys()
    assert first.arms["grep"].compared["hit@5"].n == 2

    (definition,) = find_suites([str(folder)])
    name = corpora.database_of(definition)
    assert server.databases(corpora.PREFIX) == [name]
    again = evaluated(place, str(folder), arms=["default"]).suites["mine"]
    assert again.corpus == first.corpus

    more = evaluated(place, str(folder), arms=["grep"], earlier=[earlier_output(place, first)])
    assert set(more.suites) == {"mine", "before"}
    assert more.about["command"].startswith("manage.py evaluate before`, `manage.py")

    with (folder / "corpus.jsonl").open("a") as corpus:
        corpus.write('\n{"id": "more", "title": "Another", "text": "Something else altogether."}')
    evaluated(place, str(folder), arms=["default"])
    assert server.databases(corpora.PREFIX) == [corpora.database_of(definition)] != [name]

    a_folder(folder, suite={"grow_by": 1})
    grown = evaluated(place, str(folder), arms=["default"]).suites["mine"].arms["default"]
    assert [size for size, _ in grown.growth] == [2, 3]
    assert grown.figures["forgotten"].value == 0.0


def test_what_the_import_refuses_is_told_and_counts_as_not_found(place):
    rows = [
        {"id": "bad", "title": "Bad", "text": ["Bad."]},
        {"id": "good", "title": "Good", "text": "Good."},
    ]
    folder = a_folder(
        place / "mine",
        corpus=rows,
        queries=[{"_id": "q", "text": "Bad?"}],
        qrels="q\tbad\t1\n",
        suite={},
        edges=None,
        asof_cases=None,
        supersession_language=None,
    )
    found = evaluated(place, str(folder), arms=["default"]).suites["mine"]
    assert found.records == 1
    assert found.arms["default"].figures["hit@5"].value == 0.0
    assert "the import refused 1 of 2 records (bad for one)" in found.notes[0]
    assert len(read_suite(find_suites([str(folder)])[0]).entries) == 2
