"""Real statements to measure with: their texts, and their embeddings by the local model, made once.

``FIRM_MEMORY_EVAL_DATA`` names a folder with ``decisions/records.jsonl``; without it the prose is taken from the
docstrings of Python and of the packages installed beside us, which every machine has.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import sysconfig
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

import numpy as np

from apps.memories.providers.embedders.base import Matrix
from apps.memories.providers.embedders.local import LocalEmbedder

Say = Callable[[str], None]

SIZE: Final = 6_000
QUESTIONS: Final = 300
LEAST, MOST = 80, 600  # characters of a statement
_VERSION: Final = 1
_EMBEDDED_AT_ONCE = 256

_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_PARAGRAPH = re.compile(r"\n\s*\n")


@dataclass(frozen=True, slots=True)
class Corpus:
    """Statements in the order of where they come from, so that neighbours are about the same; and questions.

    ``vectors`` has a row of unit length for each statement, ``question_vectors`` one for each question;
    ``question_places`` says near which statement a question was found.
    """

    source: str
    statements: list[str]
    vectors: Matrix
    questions: list[str]
    question_vectors: Matrix
    question_places: list[int]


def key() -> str:
    """A short name for what ``load`` would load; another source, size or way of cutting has another."""
    name, _ = _source()
    return hashlib.sha256(f"{_VERSION} {name} {SIZE}".encode()).hexdigest()[:8]


def load(folder: Path, *, say: Say) -> Corpus:
    """Read the corpus from the cache in ``folder``, or gather and embed it, which takes minutes."""
    name, texts = _source()
    texts_file, vectors_file = folder / f"corpus-{key()}.json", folder / f"corpus-{key()}.npy"
    if texts_file.exists():
        kept = json.loads(texts_file.read_text())
    else:
        say(f"Gathering statements from {name}.")
        kept = _spread(list(texts()), SIZE)
        _write(texts_file, json.dumps(kept).encode())
    if not vectors_file.exists():
        vectors = _embed(kept, say)
        _save(vectors_file, vectors)
    return _arranged(name, kept, np.load(vectors_file))


def _arranged(name: str, texts: list[str], vectors: Matrix) -> Corpus:
    """Every so many-th statement is asked about instead of being stored."""
    step = max(2, len(texts) // QUESTIONS)
    asked = list(range(step // 2, len(texts), step))
    held_back = set(asked)
    stored = [at for at in range(len(texts)) if at not in held_back]
    places = {at: place for place, at in enumerate(stored)}
    return Corpus(
        source=name,
        statements=[texts[at] for at in stored],
        vectors=vectors[stored],
        questions=[texts[at] for at in asked],
        question_vectors=vectors[asked],
        question_places=[places[at - 1] for at in asked],
    )


def _source() -> tuple[str, Callable[[], Iterator[str]]]:
    given = os.environ.get("FIRM_MEMORY_EVAL_DATA", "")
    records = Path(given) / "decisions" / "records.jsonl"
    if given:
        if not records.is_file():
            raise FileNotFoundError(f"FIRM_MEMORY_EVAL_DATA names a folder without {records}.")
        return "the decision records of FIRM_MEMORY_EVAL_DATA", lambda: _distinct(_of_records(records))
    return "the docstrings of Python and of the installed packages", lambda: _distinct(_of_docstrings())


def _of_records(path: Path) -> Iterator[str]:
    with path.open() as lines:
        rows = [json.loads(line) for line in lines]
    for row in sorted(rows, key=lambda row: (row.get("repo") or "", row["id"])):
        yield from _statements(f"{row.get('text') or ''}\n\n{row.get('decision') or ''}")


def _of_docstrings() -> Iterator[str]:
    for root in (Path(sysconfig.get_path("stdlib")), Path(sysconfig.get_path("purelib"))):
        for path in sorted(root.rglob("*.py")):
            inside = path.relative_to(root).parts
            if not {"site-packages", "test", "tests"} & set(inside):
                yield from (statement for text in _docstrings(path) for statement in _statements(text))


def _docstrings(path: Path) -> Iterator[str]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what other people's code is written like is not our business
            tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""


def _statements(text: str) -> Iterator[str]:
    """Paragraphs of prose, cut between sentences where they are long."""
    for paragraph in _PARAGRAPH.split(text):
        piece = ""
        for sentence in _SENTENCE.split(" ".join(paragraph.split())):
            if piece and len(piece) + len(sentence) >= MOST:
                yield from _if_prose(piece)
                piece = ""
            piece = f"{piece} {sentence}".strip()
        yield from _if_prose(piece)


def _if_prose(text: str) -> Iterator[str]:
    letters = sum(character.isalpha() or character == " " for character in text)
    if LEAST <= len(text) <= MOST and letters > 0.85 * len(text) and text.count(" ") > 10:
        yield text


def _distinct(texts: Iterator[str]) -> Iterator[str]:
    return iter(dict.fromkeys(texts))


def _spread(texts: list[str], size: int) -> list[str]:
    """As many as asked for, from all over, in their order."""
    if len(texts) <= size:
        return texts
    return [texts[at * len(texts) // size] for at in range(size)]


def _embed(texts: list[str], say: Say) -> Matrix:
    embedder = LocalEmbedder()
    queue, parts, done = iter(texts), [], 0
    while piece := list(islice(queue, _EMBEDDED_AT_ONCE)):
        parts.append(embedder.embed_documents(piece))
        done += len(piece)
        say(f"Embedded {done:,} of {len(texts):,} statements.")
    return np.concatenate(parts)


def _save(path: Path, vectors: Matrix) -> None:
    draft = path.with_suffix(".new.npy")
    np.save(draft, vectors)
    draft.replace(path)


def _write(path: Path, content: bytes) -> None:
    """Whole or not at all: what is half written must not be taken for the corpus."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".new")
    draft.write_bytes(content)
    draft.replace(path)
