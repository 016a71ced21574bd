"""The suites that have a name, and how others are found: by the folder that holds them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from apps.evals.quality.suites import Asked, Definition, Part, ScopeBy, SuiteError, read_folder

VARIABLE: Final = "FIRM_MEMORY_EVAL_DATA"
SAMPLE: Final = "sample"
SAMPLE_FOLDER: Final = Path(__file__).with_name("sample")

_ADR: Final = ("adr", "rfc")
_PEP: Final = ("pep",)


def _asked(folder: Path, qrels: str = "qrels.tsv", scope: ScopeBy | None = None) -> tuple[Asked, ...]:
    return (Asked(folder / "queries.jsonl", folder / qrels, scope),)


def _records(data: Path, *sets: str) -> Part:
    return Part(data / "decisions" / "records.jsonl", sets)


def _faq(data: Path) -> Part:
    return Part(data / "faq_why" / "corpus.jsonl")


def _edges(data: Path) -> Path:
    return data / "decisions" / "edges.jsonl"


def _faq_why(data: Path) -> Definition:
    return Definition(
        name="faq_why",
        title="Questions of projects' FAQs, over everything",
        corpus=(_faq(data),),
        asked=_asked(data / "faq_why"),
    )


def _faq_why_project(data: Path) -> Definition:
    return Definition(
        name="faq_why_project",
        title="Questions of projects' FAQs, in their project",
        corpus=(_faq(data),),
        asked=_asked(data / "faq_why", scope=ScopeBy("domain", "project")),
    )


def _adr(data: Path) -> Definition:
    return Definition(
        name="adr_citations",
        title="What was being done, to the decision that governs it, over everything",
        corpus=(_records(data, *_ADR),),
        asked=_asked(data / "adr_citations"),
    )


def _adr_repository(data: Path) -> Definition:
    return Definition(
        name="adr_repository",
        title="What was being done, to the decision that governs it, in its repository",
        corpus=(_records(data, *_ADR),),
        asked=_asked(data / "adr_citations", scope=ScopeBy("repo", None)),
    )


def _pep(data: Path) -> Definition:
    return Definition(
        name="pep_citations",
        title="Passages that cite a PEP, to that PEP",
        corpus=(_records(data, *_PEP),),
        asked=_asked(data / "pep_citations"),
    )


def _pep_multi(data: Path) -> Definition:
    return Definition(
        name="pep_multi",
        title="Passages that cite several PEPs, to all of them",
        corpus=(_records(data, *_PEP),),
        asked=_asked(data / "pep_multi"),
    )


def _pep_current(data: Path) -> Definition:
    return Definition(
        name="pep_current",
        title="Passages that cite a PEP, to what holds today in its place",
        corpus=(_records(data, *_PEP),),
        asked=_asked(data / "pep_citations", "qrels_current.tsv"),
        edges=_edges(data),
    )


def _decisions(data: Path) -> Definition:
    folder = data / "decisions"
    return Definition(
        name="decisions",
        title="Decision records that replaced each other",
        corpus=(_records(data),),
        edges=_edges(data),
        cases=folder / "asof_cases.jsonl",
        language=folder / "supersession_language.jsonl",
    )


def _growth(data: Path) -> Definition:
    return Definition(
        name="growth",
        title="The same questions while the pool grows",
        corpus=(_faq(data), _records(data)),
        asked=(*_asked(data / "faq_why"), *_asked(data / "adr_citations"), *_asked(data / "pep_citations")),
        grow_by=1_000,
    )


_OF_THE_DATA: Final[dict[str, Callable[[Path], Definition]]] = {
    "faq_why": _faq_why,
    "faq_why_project": _faq_why_project,
    "adr_citations": _adr,
    "adr_repository": _adr_repository,
    "pep_citations": _pep,
    "pep_multi": _pep_multi,
    "pep_current": _pep_current,
    "decisions": _decisions,
    "growth": _growth,
}

NAMES: Final = (SAMPLE, *_OF_THE_DATA)


def find_suites(names: Sequence[str]) -> list[Definition]:
    """The suites of these names or folders, each once. Raises ``SuiteError`` for one that is not there."""
    found = {definition.name: definition for definition in map(_find, dict.fromkeys(names))}
    if len(found) < len(set(names)):
        raise SuiteError("Two of these suites have the same name. Rename a folder, so that they can be told apart.")
    return list(found.values())


def _find(name: str) -> Definition:
    if name == SAMPLE:
        return read_folder(SAMPLE_FOLDER, name=SAMPLE)
    if name in _OF_THE_DATA:
        definition = _OF_THE_DATA[name](_data(name))
        _require_files(definition)
        return definition
    folder = Path(name)
    if folder.is_dir():
        return read_folder(folder.resolve())
    raise SuiteError(f"There is no suite {name}, and no folder of that name. Suites: {', '.join(NAMES)}.")


def _data(name: str) -> Path:
    given = os.environ.get(VARIABLE, "")
    if not given:
        raise SuiteError(f"The suite {name} needs a folder of data. Name it in {VARIABLE}.")
    folder = Path(given).resolve()
    if not folder.is_dir():
        raise SuiteError(f"{VARIABLE} names {given}, and there is no such folder.")
    return folder


def _require_files(definition: Definition) -> None:
    paths = [part.path for part in definition.corpus]
    paths += [path for asked in definition.asked for path in (asked.queries, asked.qrels)]
    paths += [path for path in (definition.edges, definition.cases, definition.language) if path is not None]
    for path in paths:
        if not path.is_file():
            raise SuiteError(f"The suite {definition.name} needs the file {path}, and it is not there.")
