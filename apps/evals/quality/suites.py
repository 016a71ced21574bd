"""What a suite is made of, read from its files. Bad files are refused with the file and the line.

A suite is a folder: ``corpus.jsonl`` with ``queries.jsonl`` and ``qrels.tsv`` as in BEIR, and, where minds were
changed, ``edges.jsonl``, ``asof_cases.jsonl`` and ``supersession_language.jsonl``. ``suite.json`` may say otherwise
which file is which. docs/evaluate.md describes every key.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal

Half = Literal["a", "b", "both"]
HALVES: Final[tuple[Half, ...]] = ("a", "b", "both")

LABELS: Final = frozenset({"edge", "none", "status_only"})


class SuiteError(ValueError):
    """A file of a suite cannot be used; the message is a sentence that names the file and the line."""


@dataclass(frozen=True, slots=True)
class Part:
    """A file of the corpus, and which of its sets belong to it; all of them where none is named."""

    path: Path
    sets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ScopeBy:
    """Where a question is asked: in what a key of its metadata names, or in the repository of its answer.

    ``what`` is ``repo`` or ``domain``; ``key`` is ``None`` for the repository of the answer.
    """

    what: Literal["repo", "domain"]
    key: str | None


@dataclass(frozen=True, slots=True)
class Asked:
    """Questions and their answers: two files, and the scope in which they are asked."""

    queries: Path
    qrels: Path
    scope: ScopeBy | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """Which files make up a suite. ``grow_by`` is how many records come between two rounds of the same questions."""

    name: str
    title: str
    corpus: tuple[Part, ...]
    asked: tuple[Asked, ...] = ()
    edges: Path | None = None
    cases: Path | None = None
    language: Path | None = None
    grow_by: int | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """One record of the corpus, as far as the measures need it before it is loaded."""

    reference: str
    title: str
    repo: str | None
    domain: str | None


@dataclass(frozen=True, slots=True)
class Query:
    id: str
    text: str
    repos: tuple[str, ...] = ()
    domains: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """At this moment these hold, and those must not be served."""

    line: int
    query: str
    about: str
    at: datetime
    expect_live: tuple[str, ...]
    must_not_serve: tuple[str, ...]
    rule: str


@dataclass(frozen=True, slots=True)
class Claim:
    """One record says that it replaces another. Only a full one that is effective ends the old record."""

    old: str
    new: str
    kind: str
    effective: bool
    needs_review: bool


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence that speaks of superseding. ``label`` says whether it states an edge; ``detail`` which, or why not."""

    record: str
    text: str
    label: str
    detail: str


@dataclass(frozen=True, slots=True)
class Suite:
    definition: Definition
    half: Half
    entries: dict[str, Entry]
    queries: tuple[Query, ...] = ()
    qrels: dict[str, dict[str, int]] = field(default_factory=dict)
    cases: tuple[Case, ...] = ()
    claims: tuple[Claim, ...] = ()
    sentences: tuple[Sentence, ...] = ()

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def several_relevant(self) -> bool:
        return any(sum(grade > 0 for grade in answers.values()) > 1 for answers in self.qrels.values())


def half_of(name: str) -> Half:
    """Which half a question belongs to: the same one wherever it is asked, and whatever else is."""
    return "a" if hashlib.sha256(name.encode()).digest()[0] % 2 == 0 else "b"


def in_half(name: str, half: Half) -> bool:
    return half == "both" or half_of(name) == half


def read_suite(definition: Definition, *, half: Half = "both") -> Suite:
    """Read every file of the suite but the texts of its corpus. Raises ``SuiteError``."""
    entries = _entries(definition)
    queries: list[Query] = []
    qrels: dict[str, dict[str, int]] = {}
    for asked in definition.asked:
        answers = _qrels(asked.qrels, entries)
        for query in _queries(asked, answers, entries):
            if query.id in qrels:
                raise SuiteError(f"{asked.queries}: two questions of this suite have the id {query.id}.")
            if in_half(query.id, half):
                queries.append(query)
                qrels[query.id] = answers[query.id]
    return Suite(
        definition=definition,
        half=half,
        entries=entries,
        queries=tuple(queries),
        qrels=qrels,
        cases=tuple(one for one in _cases(definition.cases, entries) if in_half(one.about, half)),
        claims=tuple(one for one in _claims(definition.edges) if in_half(one.old, half)),
        sentences=tuple(one for one in _sentences(definition.language) if in_half(one.record, half)),
    )


# --- a folder -------------------------------------------------------------------------------------------------
_KEYS: Final = frozenset(
    {
        *("title", "corpus", "sets", "queries", "qrels", "scope"),
        *("edges", "asof_cases", "supersession_language", "grow_by"),
    }
)


def read_folder(folder: Path, *, name: str | None = None) -> Definition:
    """The suite that a folder holds, by its ``suite.json`` or by the usual names of its files."""
    if not folder.is_dir():
        raise SuiteError(f"There is no folder {folder}.")
    told = _told(folder / "suite.json")
    corpus = _file(folder, told, "corpus", "corpus.jsonl")
    if corpus is None:
        raise SuiteError(f"{folder} holds no corpus.jsonl, and no suite.json that names another file as `corpus`.")
    queries, qrels = _file(folder, told, "queries", "queries.jsonl"), _file(folder, told, "qrels", "qrels.tsv")
    if (queries is None) != (qrels is None):
        raise SuiteError(f"{folder} holds questions or answers alone: a suite has both, or neither.")
    return Definition(
        name=name or folder.name,
        title=str(told.get("title") or name or folder.name),
        corpus=(Part(corpus, _sets(folder, told.get("sets", []))),),
        asked=(Asked(queries, qrels, _scope(folder, told.get("scope"))),) if queries and qrels else (),
        edges=_file(folder, told, "edges", "edges.jsonl"),
        cases=_file(folder, told, "asof_cases", "asof_cases.jsonl"),
        language=_file(folder, told, "supersession_language", "supersession_language.jsonl"),
        grow_by=_grow_by(folder, told.get("grow_by")),
    )


def _told(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        told = json.loads(path.read_text())
    except ValueError as error:
        raise SuiteError(f"{path} is not JSON: {error}.") from None
    if not isinstance(told, dict):
        raise SuiteError(f"{path} is not a JSON object.")
    if unknown := sorted(told.keys() - _KEYS):
        raise SuiteError(f"{path} has keys that nobody reads: {', '.join(unknown)}. Use: {', '.join(sorted(_KEYS))}.")
    return told


def _file(folder: Path, told: dict[str, Any], key: str, usual: str) -> Path | None:
    if key not in told:
        return folder / usual if (folder / usual).is_file() else None
    path = folder / str(told[key])
    if not path.is_file():
        raise SuiteError(f"{folder / 'suite.json'} names {told[key]} as `{key}`, and there is no such file.")
    return path


def _sets(folder: Path, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise SuiteError(f"{folder / 'suite.json'}: `sets` is not a list of names.")
    return tuple(value)


def _scope(folder: Path, value: object) -> ScopeBy | None:
    if value is None:
        return None
    if value == "answer":
        return ScopeBy("repo", None)
    match value:
        case {"repo": str(key), **others} if not others:
            return ScopeBy("repo", key)
        case {"domain": str(key), **others} if not others:
            return ScopeBy("domain", key)
    raise SuiteError(
        f'{folder / "suite.json"}: `scope` is none of "answer", {{"repo": KEY}} and {{"domain": KEY}}, where KEY '
        "is a key of the questions' metadata."
    )


def _grow_by(folder: Path, value: object) -> int | None:
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise SuiteError(f"{folder / 'suite.json'}: `grow_by` is not a number of records.")
    return value


# --- lines ----------------------------------------------------------------------------------------------------
def _rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        file = path.open(encoding="utf-8")
    except OSError as error:
        raise SuiteError(f"{path} cannot be read: {error.strerror}.") from None
    with file:
        try:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield number, _row(path, number, line)
        except UnicodeDecodeError:
            raise SuiteError(f"{path} is not UTF-8.") from None


def _row(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        raise SuiteError(f"{path}, line {number}: this is not JSON.") from None
    if not isinstance(row, dict):
        raise SuiteError(f"{path}, line {number}: this is not a JSON object.")
    return row


def _required(path: Path, number: int, row: dict[str, Any], key: str) -> str:
    value = row.get(key)
    if not isinstance(value, str) or not value.strip():
        raise SuiteError(f"{path}, line {number}: `{key}` is missing, empty or not text.")
    return value


def _names(path: Path, number: int, row: dict[str, Any], key: str) -> tuple[str, ...]:
    value = row.get(key, [])
    if not isinstance(value, list) or not all(isinstance(one, str) and one for one in value):
        raise SuiteError(f"{path}, line {number}: `{key}` is not a list of references.")
    return tuple(value)


def _known(path: Path, number: int, reference: str, entries: dict[str, Entry]) -> str:
    if reference not in entries:
        raise SuiteError(f"{path}, line {number}: {reference} is no record of this suite's corpus.")
    return reference


def _entries(definition: Definition) -> dict[str, Entry]:
    entries: dict[str, Entry] = {}
    for part in definition.corpus:
        for number, row in _rows(part.path):
            if part.sets and row.get("set") not in part.sets:
                continue
            entry = _entry(part.path, number, row)
            if entry.reference in entries:
                raise SuiteError(f"{part.path}, line {number}: an earlier record has the id {entry.reference}, too.")
            entries[entry.reference] = entry
    if not entries:
        named = ", ".join(str(part.path) for part in definition.corpus)
        raise SuiteError(f"{named}: there is no record in it, or none of the sets that the suite asks for.")
    return entries


def _entry(path: Path, number: int, row: dict[str, Any]) -> Entry:
    reference = _required(path, number, row, "id" if "id" in row else "_id").strip()
    metadata = row.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    repo, domain, title = row.get("repo") or metadata.get("repo"), metadata.get("project"), row.get("title")
    return Entry(
        reference=reference,
        title=title if isinstance(title, str) else "",
        repo=repo if isinstance(repo, str) and repo else None,
        domain=domain if isinstance(domain, str) and domain else None,
    )


def _qrels(path: Path, entries: dict[str, Entry]) -> dict[str, dict[str, int]]:
    answers: dict[str, dict[str, int]] = {}
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise SuiteError(f"{path} cannot be read: {error.strerror}.") from None
    for number, cells in enumerate(csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE), start=1):
        if not cells or (number == 1 and cells[-1] == "score"):
            continue
        if len(cells) != 3 or not cells[2].strip().isdecimal():
            raise SuiteError(
                f"{path}, line {number}: this is not a question, a record and a whole number, with tabs between."
            )
        query, reference, grade = cells
        answers.setdefault(query, {})[_known(path, number, reference, entries)] = int(grade)
    return answers


def _queries(asked: Asked, answers: dict[str, dict[str, int]], entries: dict[str, Entry]) -> Iterator[Query]:
    seen, scoped = set(), False
    for number, row in _rows(asked.queries):
        name, text = (_required(asked.queries, number, row, key) for key in ("_id", "text"))
        if not any(answers.get(name, {}).values()):
            raise SuiteError(f"{asked.queries}, line {number}: {asked.qrels.name} names no answer to {name}.")
        seen.add(name)
        scope = _asked_in(asked, number, row, answers[name], entries)
        scoped = scoped or bool(scope)
        yield Query(name, text, **scope)
    if left := sorted(answers.keys() - seen):
        raise SuiteError(f"{asked.qrels} answers {left[0]}, which is no question of {asked.queries.name}.")
    if asked.scope is not None and not scoped:
        raise SuiteError(f"{asked.queries}: no question has `{asked.scope.key}` in its metadata to be asked in.")


def _asked_in(
    asked: Asked, number: int, row: dict[str, Any], answers: dict[str, int], entries: dict[str, Entry]
) -> dict[str, tuple[str, ...]]:
    """A question whose metadata lacks the key is asked over everything."""
    scope = asked.scope
    if scope is None:
        return {}
    if scope.key is None:
        found = {entries[reference].repo for reference, grade in answers.items() if grade}
        if None in found or len(found) != 1:
            raise SuiteError(f"{asked.queries}, line {number}: its answers do not lie in one repository.")
        return {"repos": (str(found.pop()),)}
    metadata = row.get("metadata")
    value = metadata.get(scope.key) if isinstance(metadata, dict) else None
    if value is None or value == "":
        return {}
    if not isinstance(value, str):
        raise SuiteError(f"{asked.queries}, line {number}: `{scope.key}` of its metadata is not text.")
    return {"repos" if scope.what == "repo" else "domains": (value,)}


def _cases(path: Path | None, entries: dict[str, Entry]) -> Iterator[Case]:
    for number, row in _rows(path) if path else ():
        assert path is not None  # noqa: S101
        text, about = (_required(path, number, row, key) for key in ("query", "about"))
        live, stale = (_names(path, number, row, key) for key in ("expect_live", "must_not_serve"))
        if not live and not stale:
            raise SuiteError(f"{path}, line {number}: it expects nothing and forbids nothing.")
        for reference in (about, *live, *stale):
            _known(path, number, reference, entries)
        yield Case(number, text, about, _moment(path, number, row), live, stale, str(row.get("rule", "")))


def _moment(path: Path, number: int, row: dict[str, Any]) -> datetime:
    text = _required(path, number, row, "as_of")
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise SuiteError(f"{path}, line {number}: `as_of` is not a date such as 2024-05-31.") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _claims(path: Path | None) -> Iterator[Claim]:
    for number, row in _rows(path) if path else ():
        assert path is not None  # noqa: S101
        old, new, kind = (_required(path, number, row, key) for key in ("old", "new", "kind"))
        if kind not in ("supersedes", "partially_supersedes", "amends"):
            raise SuiteError(f"{path}, line {number}: `kind` is none of supersedes, partially_supersedes and amends.")
        yield Claim(old, new, kind, row.get("effective") is True, row.get("needs_review") is True)


def _sentences(path: Path | None) -> Iterator[Sentence]:
    for number, row in _rows(path) if path else ():
        assert path is not None  # noqa: S101
        record, text, label = (_required(path, number, row, key) for key in ("record", "sentence", "label"))
        if label not in LABELS:
            raise SuiteError(f"{path}, line {number}: `label` is none of {', '.join(sorted(LABELS))}.")
        yield Sentence(record, text, label, str(row.get("detail", "")))
