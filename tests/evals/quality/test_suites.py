from __future__ import annotations

import pytest

from apps.evals.quality.catalogue import NAMES, SAMPLE_FOLDER, VARIABLE, find_suites
from apps.evals.quality.suites import SuiteError, half_of, read_folder, read_suite
from tests.evals.quality.doubles import CASES, QUERIES, RECORDS, a_folder


def read(folder, **files):
    return read_suite(read_folder(a_folder(folder, **files)))


def test_a_folder_is_read_with_everything_that_it_holds(tmp_path):
    suite = read(tmp_path)
    assert suite.entries["old"].title == "Retry three times" and suite.entries["old"].repo == "acme/pay"
    assert [(query.id, query.repos) for query in suite.queries] == [("q1", ("acme/pay",)), ("q2", ())]
    assert suite.qrels == {"q1": {"new": 1}, "q2": {"else": 1}}
    assert [case.expect_live for case in suite.cases] == [("old",), ("new",)]
    assert suite.cases[0].at.isoformat() == "2021-12-31T00:00:00+00:00"
    assert [(claim.old, claim.new, claim.effective) for claim in suite.claims] == [("old", "new", True)]
    assert [(sentence.label, sentence.detail) for sentence in suite.sentences] == [("edge", "old")]
    assert not suite.several_relevant


def test_only_a_corpus_is_needed(tmp_path):
    suite = read(
        tmp_path, queries=None, qrels=None, edges=None, asof_cases=None, supersession_language=None, suite=None
    )
    assert len(suite.entries) == 3 and not suite.queries and not suite.cases


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"corpus": None}, r"holds no corpus\.jsonl"),
        ({"corpus": "{}\n"}, r"corpus\.jsonl, line 1: `_id` is missing"),
        ({"corpus": '{"id": "a"}\nnonsense'}, r"corpus\.jsonl, line 2: this is not JSON"),
        ({"corpus": [RECORDS[0], RECORDS[0]]}, r"corpus\.jsonl, line 2: an earlier record has the id old"),
        ({"corpus": ""}, r"there is no record in it"),
        ({"queries": None}, "questions or answers alone"),
        ({"queries": "[1]"}, r"queries\.jsonl, line 1: this is not a JSON object"),
        ({"queries": [{"_id": "q9", "text": "What?"}]}, r"line 1: qrels\.tsv names no answer to q9"),
        ({"queries": QUERIES[:1]}, r"qrels\.tsv answers q2, which is no question of queries\.jsonl"),
        ({"queries": [*QUERIES, {"_id": "q1", "text": ""}]}, r"queries\.jsonl, line 3: `text` is missing"),
        ({"qrels": "q1 new 1\n"}, r"qrels\.tsv, line 1: this is not a question, a record and a whole number"),
        ({"qrels": "q1\tnew\tone\n"}, r"qrels\.tsv, line 1"),
        ({"qrels": "q1\tnowhere\t1\nq2\telse\t1\n"}, r"qrels\.tsv, line 1: nowhere is no record"),
        ({"asof_cases": [CASES[0] | {"as_of": "yesterday"}]}, r"asof_cases\.jsonl, line 1: `as_of` is not a date"),
        ({"asof_cases": [CASES[0] | {"about": "nobody"}]}, r"asof_cases\.jsonl, line 1: nobody is no record"),
        ({"asof_cases": [CASES[0] | {"expect_live": []}]}, "it expects nothing and forbids nothing"),
        ({"asof_cases": [CASES[0] | {"expect_live": "old"}]}, "`expect_live` is not a list of references"),
        ({"edges": [{"old": "old", "new": "new", "kind": "kills"}]}, r"edges\.jsonl, line 1: `kind` is none of"),
        ({"supersession_language": [{"record": "a", "sentence": "b", "label": "c"}]}, "`label` is none of edge, none"),
        ({"suite": {"sope": 1}}, "keys that nobody reads: sope"),
        ({"suite": {"scope": {"team": "x"}}}, "`scope` is none of"),
        ({"suite": {"scope": {"repo": "nothing"}}}, "no question has `nothing` in its metadata"),
        ({"suite": {"queries": "others.jsonl"}}, r"names others\.jsonl as `queries`, and there is no such file"),
        ({"suite": {"sets": "adr"}}, "`sets` is not a list of names"),
        ({"suite": {"grow_by": 0}}, "`grow_by` is not a number of records"),
        ({"suite": "nonsense"}, r"suite\.json is not JSON"),
    ],
)
def test_a_bad_file_is_refused_with_its_name_and_the_line(tmp_path, files, message):
    with pytest.raises(SuiteError, match=message):
        read(tmp_path, **files)


def test_a_question_can_be_asked_in_the_repository_of_its_answer(tmp_path):
    rows = [RECORDS[0], RECORDS[1], RECORDS[2] | {"repo": "acme/logs"}]
    suite = read(tmp_path, corpus=rows, suite={"scope": "answer"})
    assert [query.repos for query in suite.queries] == [("acme/pay",), ("acme/logs",)]
    with pytest.raises(SuiteError, match="do not lie in one repository"):
        read(tmp_path, suite={"scope": "answer"}, corpus=RECORDS)


def test_a_set_of_the_corpus_is_a_corpus(tmp_path):
    rows = [RECORDS[0] | {"set": "adr"}, RECORDS[1] | {"set": "adr"}, RECORDS[2] | {"set": "other"}]
    folder = a_folder(tmp_path, corpus=rows, suite={"sets": ["adr"]}, queries=QUERIES[:1], qrels="q1\tnew\t1\n")
    assert set(read_suite(read_folder(folder)).entries) == {"old", "new"}


def test_the_halves_share_nothing_and_lose_nothing():
    (sample,) = find_suites(["sample"])
    whole, a, b = (read_suite(sample, half=half) for half in ("both", "a", "b"))
    for name in ("queries", "cases", "claims", "sentences"):
        assert {*getattr(a, name)} | {*getattr(b, name)} == {*getattr(whole, name)}
        assert not {*getattr(a, name)} & {*getattr(b, name)}
    assert min(len(a.queries), len(b.queries)) > len(whole.queries) / 3
    assert half_of("q0168") == half_of("q0168")


def test_a_suite_that_is_not_there_is_named_with_those_that_are(monkeypatch, tmp_path):
    with pytest.raises(SuiteError, match=r"no suite nonsense, and no folder of that name\. Suites: sample, faq_why"):
        find_suites(["nonsense"])
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(SuiteError, match="The suite faq_why needs a folder of data"):
        find_suites(["faq_why"])
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    for name in NAMES[1:]:
        with pytest.raises(SuiteError, match="needs the file"):
            find_suites([name])


def test_two_folders_of_one_name_cannot_be_told_apart(tmp_path):
    folders = [str(a_folder(tmp_path / place / "mine")) for place in ("here", "there")]
    with pytest.raises(SuiteError, match="have the same name"):
        find_suites(folders)


def test_the_sample_holds_what_it_promises():
    """Types, replacements of every kind and traps: what a change to the sample must not lose."""
    suite = read_suite(read_folder(SAMPLE_FOLDER, name="sample"))
    full = [claim for claim in suite.claims if claim.effective and claim.kind == "supersedes"]
    kinds = {claim.kind for claim in suite.claims}
    assert len(suite.entries) >= 110 and len(suite.queries) >= 60 and len(full) >= 25
    assert kinds == {"supersedes", "partially_supersedes", "amends"}
    assert any(not claim.effective for claim in suite.claims)
    assert max(sum(claim.old == one.old for claim in full) for one in full) > 1, "no fork"
    assert max(sum(claim.new == one.new for claim in full) for one in full) > 1, "no merge"
    assert {sentence.label for sentence in suite.sentences} == {"edge", "none"}
    assert any(not query.text.isascii() for query in suite.queries)
    assert suite.several_relevant
