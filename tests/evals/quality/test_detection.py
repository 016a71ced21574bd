"""What is counted as a suggestion, by a detector that a test makes up."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import uuid4

from apps.evals.quality import detection
from apps.evals.quality.arms.base import Found
from apps.evals.quality.corpora import Corpus, Document
from apps.evals.quality.detection import Told
from apps.evals.quality.suites import read_folder, read_suite
from apps.evals.quality.supersession import Graph
from tests.evals.quality.doubles import RECORDS, SENTENCES, a_folder

GRAPH = Graph({"old": (("new", None),)}, {})


class Nearby:
    """Finds every record, in order."""

    name = "near"
    knows_time = False

    def search(self, question, *, limit):
        return Found(["old", "new", "else"])


def found(folder, suggest):
    trap = {"record": "new", "sentence": "It may supersede everything.", "label": "none"}
    suite = read_suite(read_folder(a_folder(folder, supersession_language=[*SENTENCES, trap])))
    documents = tuple(Document(uuid4(), row["id"], row["text"], False, (), ()) for row in RECORDS)
    corpus = Corpus("key", None, None, documents, None)
    values = detection.suggestions(suite, corpus, GRAPH, Nearby(), suggest)
    return [sum(values[name].values()) / len(values[name]) if values[name] else None for name in values]


def test_right_suggestions_are_counted_against_all_that_were_made(tmp_path):
    assert found(tmp_path, lambda old, new: "three" in old.text) == [1.0, 1.0]
    assert found(tmp_path, lambda old, new: True) == [0.5, 1.0]  # an edge and a sentence; a neighbour and a trap
    assert found(tmp_path, lambda old, new: False) == [None, 0.0]


def test_a_detector_is_looked_up_asked_with_names_and_may_be_missing(monkeypatch):
    monkeypatch.setattr(detection, "DETECTOR", "apps.no_such_room")
    assert detection.detector() is None
    monkeypatch.setattr(detection, "DETECTOR", __name__)
    suggests = detection.detector()
    assert suggests(Told("Retry three times.", "PAY-1"), Told("Instead of PAY-1 …", "PAY-2"))
    assert not suggests(Told("Retry three times.", "PAY-3"), Told("Instead of PAY-1 …", "PAY-2"))


@dataclass(frozen=True)
class Statement:
    """As the detector's own."""

    content: str
    names: tuple[str, ...]


def replacement(old, new):
    return 0.9 if any(name in new.content for name in old.names) else None
