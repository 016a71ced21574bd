"""What is counted as stale and as right, on a graph that a test makes up."""

from __future__ import annotations

from datetime import UTC, datetime

from apps.evals.quality.arms.base import Found
from apps.evals.quality.asking import Asker
from apps.evals.quality.suites import read_folder, read_suite
from apps.evals.quality.supersession import Graph, as_of, graph_heads, replaced_records
from tests.evals.quality.doubles import CASES, EDGES, RECORDS, a_folder

BEFORE, THEN, LATER = (datetime(year, 1, 1, tzinfo=UTC) for year in (2020, 2022, 2024))
FORKED = Graph({"a": (("b", THEN), ("c", LATER)), "b": (("d", LATER),), "c": (("d", LATER),)}, {})
DRAFT = {"id": "draft", "repo": "acme/pay", "date": "2022-06-01", "title": "Never retry", "text": "Not decided."}
CLAIM = {"old": "new", "new": "draft", "kind": "supersedes", "effective": False}
CLAIMED = {
    "query": "Retry with a budget",
    "about": "new",
    "as_of": "2024-01-01",
    "expect_live": ["new"],
    "must_not_serve": ["draft"],
}


class Always:
    """Finds the same for everything."""

    name = "always"
    knows_time = True

    def __init__(self, *references):
        self.references = list(references)

    def search(self, question, *, limit):
        return Found(self.references)

    def close(self): ...


def a_suite(folder):
    return read_suite(
        read_folder(a_folder(folder, corpus=[*RECORDS, DRAFT], edges=[*EDGES, CLAIM], asof_cases=[*CASES, CLAIMED]))
    )


def a_graph(*, ends=THEN, since=THEN):
    return Graph(
        {"old": (("new", since),)},
        {"old": (BEFORE, ends), "new": (THEN, None), "draft": (THEN, None), "else": (None, None)},
    )


def test_heads_are_the_ends_of_all_branches_at_a_moment():
    assert FORKED.heads("a") == {"d"} and FORKED.heads("d") == {"d"}
    assert FORKED.heads("a", at=THEN) == {"b"}
    assert FORKED.heads("a", at=BEFORE) == {"a"}
    assert FORKED.heads("a", at=LATER) == {"d"}


def test_what_holds_begins_with_its_day_and_ends_before_that_of_its_end():
    graph = a_graph()
    assert graph.holds("old", BEFORE) and not graph.holds("old", THEN)
    assert graph.holds("new", THEN) and graph.holds("else", BEFORE)
    assert not graph.holds("unknown", THEN)


def test_the_ledger_is_right_where_it_says_what_the_case_says(tmp_path):
    suite = a_suite(tmp_path)
    assert list(graph_heads(suite, a_graph())["heads as of"].values()) == [1, 1, 1]
    assert list(graph_heads(suite, a_graph(ends=None))["heads as of"].values()) == [1, 0, 1]
    assert list(graph_heads(suite, a_graph(since=LATER))["heads as of"].values()) == [1, 0, 1]


def test_who_merely_claims_to_replace_a_record_may_stand_beside_it_but_not_in_its_place(tmp_path):
    suite = a_suite(tmp_path)
    beside = as_of(suite, Asker(Always("new", "draft")))
    assert list(beside["stale@5 as of"].values()) == [0]
    assert beside["live@5 as of"]["3 new"] == 1
    instead = Asker(Always("draft"))
    assert as_of(suite, instead)["live@5 as of"]["3 new"] == 0
    assert replaced_records(suite, a_graph(), instead)["claimed kept@5"] == {"new": 0}


def test_a_replaced_record_that_is_served_is_counted_and_its_successor_looked_for(tmp_path):
    suite = a_suite(tmp_path)
    blind = replaced_records(suite, a_graph(), Asker(Always("else", "old")))
    assert (blind["stale@5"], blind["live@5"]) == ({"old": 1}, {"old": 0})
    good = replaced_records(suite, a_graph(), Asker(Always("new")))
    assert (good["stale@5"], good["live@5 in repository"]) == ({"old": 0}, {"old": 1})
