"""``manage.py evaluate SUITE…``: how good the answers are, by suites of questions with known answers."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import tempfile
import time
from argparse import SUPPRESS, ArgumentParser
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError, ProgrammingError

from apps.core.database import down_sentence
from apps.core.embedded_postgres import EmbeddedPostgresError, borrow
from apps.evals.benchmarks import server
from apps.evals.quality import gate, tables
from apps.evals.quality.arms import chosen, known_arms
from apps.evals.quality.catalogue import NAMES, SAMPLE, SAMPLE_FOLDER, find_suites
from apps.evals.quality.documents import write_section
from apps.evals.quality.evaluation import evaluate
from apps.evals.quality.missing import MissingPackage, require
from apps.evals.quality.results import Evaluation
from apps.evals.quality.suites import HALVES, Suite, SuiteError, read_suite
from apps.evals.services import evaluation_store, version_here
from apps.retrieval.recipes import RECIPES

PACKAGES: Final = (
    ("ir_measures", "ir-measures", frozenset[str]()),
    ("bm25s", "", frozenset({"bm25", "grep"})),
    ("Stemmer", "PyStemmer", frozenset({"bm25"})),
)
BASELINE: Final = SAMPLE_FOLDER / "baseline.json"


class Command(BaseCommand):
    help = (
        "Measure how good the answers are: load each suite's corpus into a database of its own, ask every arm "
        "everything, and print the figures. The first run embeds the corpus, which takes minutes for thousands of "
        "records; it is kept for the next run."
    )
    # It starts its own database; the configured one is needed for --store alone.
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("suites", nargs="+", metavar="SUITE", help=f"{', '.join(NAMES)}, or a folder.")
        parser.add_argument("--recipe", action="append", dest="recipes", metavar="NAME", help=", ".join(RECIPES))
        parser.add_argument("--arm", action="append", dest="arms", metavar="NAME", help=", ".join(known_arms()))
        parser.add_argument("--half", choices=HALVES, default="both", help="Only this half of the questions.")
        parser.add_argument("--baseline", action="append", dest="baselines", type=Path, metavar="FILE")
        parser.add_argument(
            "--gate", action="store_true", help="Fail where a figure fell below the baseline, or less was measured."
        )
        parser.add_argument("--write-baseline", type=Path, metavar="FILE", help="Keep these figures as a baseline.")
        parser.add_argument(
            "--with",
            action="append",
            dest="earlier",
            type=Path,
            default=[],
            metavar="FILE",
            help="Add the suites of an earlier --output.",
        )
        parser.add_argument("--output", type=Path, metavar="FILE", help="Write everything that was found, as JSON.")
        parser.add_argument("--store", action="store_true", help="Keep the run in the product's database.")
        parser.add_argument("--write-docs", action="store_true", help="Write the section of docs/benchmarks.md.")
        parser.add_argument("--fresh", action="store_true", help="Load every corpus anew.")
        parser.add_argument("--folder", type=Path, help="Where corpora and vectors are kept (.data/eval).")
        parser.add_argument("--database-url", default="", help="Make the databases on this server.")
        parser.add_argument("--inside", type=Path, help=SUPPRESS)

    def handle(self, **options: Any) -> None:
        try:
            self._handle(options)
        except (SuiteError, MissingPackage, gate.BaselineError) as error:
            raise CommandError(str(error)) from None

    def _handle(self, options: dict[str, Any]) -> None:
        suites = [read_suite(one, half=options["half"]) for one in find_suites(options["suites"])]
        arms = _arms(options["arms"] or [], options["recipes"] or [])
        for module, package, needed_by in PACKAGES:
            if not needed_by or {*arms} & needed_by:
                require(module, package=package)
        folder = (options["folder"] or settings.BASE_DIR / ".data" / "eval").resolve()
        if options["inside"]:
            self._measure(suites, arms, folder, options)
            return
        _earlier(options["earlier"])
        baselines = [gate.read_baseline(path) for path in _baselines(options)]
        evaluation = self._start(folder, options["database_url"])
        self._tell(evaluation, options)
        if options["store"]:
            self._store(evaluation)
        self._compare(evaluation, baselines, fails=options["gate"])

    # --- in the process that measures ---
    def _measure(self, suites: Sequence[Suite], arms: Sequence[str], folder: Path, options: dict[str, Any]) -> None:
        earlier = _earlier(options["earlier"])
        evaluation = Evaluation(_about(earlier), {name: suite for one in earlier for name, suite in one.suites.items()})
        for suite in suites:
            started = time.monotonic()
            found = evaluate(suite, arms, folder=folder, say=self._say, fresh=options["fresh"])
            evaluation.suites[suite.name] = found
            self._say(f"{suite.name} took {time.monotonic() - started:.0f} s.")
        options["inside"].write_text(json.dumps(evaluation.as_dict()))
        if options["write_docs"]:
            write_section(evaluation)

    # --- in the process that somebody started ---
    def _start(self, folder: Path, url: str) -> Evaluation:
        """Measure in a process whose every setting says where to work."""
        folder.mkdir(parents=True, exist_ok=True)
        if url:
            return self._work(url, folder)
        try:
            # Until this process ends; of several that evaluate at once the last one stops it.
            return self._work(server.embedded_url(borrow(folder)), folder)
        except EmbeddedPostgresError as error:
            raise CommandError(str(error)) from None

    def _work(self, url: str, folder: Path) -> Evaluation:
        with tempfile.TemporaryDirectory() as place:
            found = Path(place) / "evaluation.json"
            command = [sys.executable, str(settings.BASE_DIR / "manage.py"), *sys.argv[1:], "--inside", str(found)]
            worker = subprocess.Popen(command, env=server.environment(url, data_dir=folder))
            try:
                code = worker.wait()
            except KeyboardInterrupt:
                code = worker.wait()
            if code != 0:
                raise CommandError(f"The evaluation ended with {code}.", returncode=code)
            return Evaluation.from_dict(json.loads(found.read_text()))

    def _tell(self, evaluation: Evaluation, options: dict[str, Any]) -> None:
        for line in tables.told(evaluation):
            self.stdout.write(line)
        if options["output"]:
            options["output"].write_text(json.dumps(evaluation.as_dict(), indent=1) + "\n")
        if options["write_baseline"]:
            told = json.dumps(gate.baseline_of(evaluation), indent=1)
            options["write_baseline"].write_text(told + "\n")

    def _store(self, evaluation: Evaluation) -> None:
        try:
            count = evaluation_store(evaluation)
        except (OperationalError, ProgrammingError) as error:
            sentence = down_sentence(error) if isinstance(error, OperationalError) else None
            raise CommandError(f"The run was not stored. {sentence or error}") from None
        self.stdout.write(f"\nStored {count} results; /insights/quality shows them.")

    def _compare(self, evaluation: Evaluation, baselines: list[dict[str, Any]], *, fails: bool) -> None:
        findings = [finding for baseline in baselines for finding in gate.compare(evaluation, baseline)]
        short = [finding for finding in findings if not finding.holds]
        if not baselines:
            return
        if not short:
            self.stdout.write(f"\nAll {len(findings)} figures and counts of the baseline hold.")
            return
        self.stdout.write(f"\n{len(short)} of {len(findings)} figures and counts of the baseline do not hold:\n")
        for line in tables.aligned(gate.told(findings)):
            self.stdout.write(f"  {line}")
        if fails:
            raise CommandError("The gate is closed: something got worse, or less was measured.")

    def _say(self, sentence: str) -> None:
        self.stderr.write(sentence)


def _arms(arms: list[str], recipes: list[str]) -> tuple[str, ...]:
    if unknown := sorted({*recipes} - RECIPES.keys()):
        raise CommandError(f"There is no recipe {', '.join(unknown)}. Use: {', '.join(RECIPES)}.")
    if unknown := sorted({*arms} - {*known_arms()}):
        raise CommandError(f"There is no arm {', '.join(unknown)}. Use: {', '.join(known_arms())}.")
    return chosen(arms, recipes)


def _earlier(paths: Sequence[Path]) -> list[Evaluation]:
    found: list[Evaluation] = []
    for path in paths:
        try:
            found.append(Evaluation.from_dict(json.loads(path.read_text())))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            raise SuiteError(f"{path} is not what `evaluate --output` writes.") from None
    return found


def _baselines(options: dict[str, Any]) -> list[Path]:
    if options["baselines"]:
        return list(options["baselines"])
    if options["gate"] and SAMPLE in options["suites"] and BASELINE.is_file():
        return [BASELINE]
    if options["gate"]:
        raise CommandError("A gate needs something to compare with. Name a file in --baseline.")
    return []


def _about(earlier: Sequence[Evaluation]) -> dict[str, Any]:
    commands = [*(one.about["command"] for one in earlier), _command(sys.argv[1:])]
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": "`, `".join(dict.fromkeys(commands)),
        **version_here(),
    }


def _command(arguments: Sequence[str]) -> str:
    """As somebody else would type it: without the files of whoever did."""
    kept, rest = [], iter(arguments)
    for argument in rest:
        if argument in ("--inside", "--output", "--with", "--folder"):
            next(rest, None)
        else:
            kept.append(argument)
    return shlex.join(["manage.py", *kept])
