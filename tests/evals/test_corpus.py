from __future__ import annotations

import json

import numpy as np
import pytest

from apps.evals.benchmarks import corpus

PROSE = "Payments are retried with growing pauses, because the provider refuses whoever asks too often."


@pytest.fixture
def embedded(monkeypatch):
    """Stands in for the model, and says how many texts it was given."""
    given = []

    def embed(texts, say):
        given.extend(texts)
        return np.eye(384, dtype=np.float32)[: len(texts)]

    monkeypatch.setattr(corpus, "_embed", embed)
    return given


def records(folder, count=30):
    (folder / "decisions").mkdir(parents=True)
    rows = [{"id": f"r{at}", "repo": "a/b", "text": f"{PROSE} This is number {at}."} for at in range(count)]
    (folder / "decisions" / "records.jsonl").write_text("\n".join(map(json.dumps, rows)))


def test_records_are_cut_into_statements_embedded_once_and_some_held_back_to_ask(tmp_path, monkeypatch, embedded):
    records(tmp_path / "given")
    monkeypatch.setenv("FIRM_MEMORY_EVAL_DATA", str(tmp_path / "given"))
    monkeypatch.setattr(corpus, "QUESTIONS", 10)
    first = corpus.load(tmp_path / "kept", say=lambda _: None)
    again = corpus.load(tmp_path / "kept", say=lambda _: None)
    assert len(embedded) == 30
    assert len(first.statements) == 20 and len(first.questions) == 10
    assert not set(first.statements) & set(first.questions)
    assert first.vectors.shape == (20, 384) and first.question_vectors.shape == (10, 384)
    assert again.statements == first.statements and (again.vectors == first.vectors).all()
    assert all(0 <= place < 20 for place in first.question_places)


def test_a_folder_without_records_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("FIRM_MEMORY_EVAL_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"records\.jsonl"):
        corpus.load(tmp_path, say=lambda _: None)


def test_other_data_has_another_key(tmp_path, monkeypatch):
    monkeypatch.delenv("FIRM_MEMORY_EVAL_DATA", raising=False)
    without = corpus.key()
    records(tmp_path)
    monkeypatch.setenv("FIRM_MEMORY_EVAL_DATA", str(tmp_path))
    assert corpus.key() != without


def test_only_prose_of_some_length_is_taken():
    code = "x = {'a': [1, 2, 3], 'b': (4, 5)}; y = f(x)[0]['c'] + g(**x) - h(*y) / 2 ** 3 % 4 == 5 and (6 or 7)"
    long = " ".join(
        f"{PROSE} It was so in the year before that, too, as everybody knows who was there." for _ in range(9)
    )
    text = f"Too short.\n\n{code}\n\n{PROSE}\n\n{long}"
    found = list(corpus._statements(text))
    assert found[0] == PROSE
    assert len(found) > 2
    assert all(corpus.LEAST <= len(statement) <= corpus.MOST for statement in found)
    assert not any("f(x)" in statement for statement in found)


def test_docstrings_are_read_from_code_and_what_is_no_code_is_passed_over(tmp_path):
    good, bad = tmp_path / "good.py", tmp_path / "bad.py"
    good.write_text(f'"""{PROSE}"""\nclass A:\n    """Another."""\n    def f(self):\n        "A third."\n')
    bad.write_text("def (:\n")
    assert [text for text in corpus._docstrings(good) if text] == [PROSE, "Another.", "A third."]
    assert list(corpus._docstrings(bad)) == []
