"""Keeping what evaluations found."""

from __future__ import annotations

import subprocess
import tomllib
from datetime import datetime
from uuid import uuid4

from django.conf import settings
from django.db import transaction

from apps.evals.models import EvaluationRun
from apps.evals.quality.results import Evaluation


@transaction.atomic
def evaluation_store(evaluation: Evaluation) -> int:
    """A row for each suite and arm of it; answers how many."""
    batch = uuid4()
    rows = [
        EvaluationRun(
            batch=batch,
            suite=suite.name,
            title=suite.title,
            half=suite.half,
            corpus=suite.corpus,
            records=suite.records,
            queries=suite.queries,
            arm=arm,
            position=position,
            found=result.as_dict(),
            version=evaluation.about["version"],
            commit=evaluation.about["commit"],
            measured_at=datetime.fromisoformat(evaluation.about["at"]),
        )
        for suite in evaluation.suites.values()
        for position, (arm, result) in enumerate(suite.arms.items())
    ]
    EvaluationRun.objects.bulk_create(rows)
    return len(rows)


def version_here() -> dict[str, str]:
    """The project's version, and the commit where there is a checkout; ``+`` says that files differ from it."""
    told = tomllib.loads((settings.BASE_DIR / "pyproject.toml").read_text())
    commit = _git("rev-parse", "--short=12", "HEAD")
    changed = "+" if commit and _git("status", "--porcelain", "--untracked-files=no") else ""
    return {"version": str(told["project"]["version"]), "commit": commit + changed}


def _git(*arguments: str) -> str:
    try:
        found = subprocess.run(
            ["git", "-C", str(settings.BASE_DIR), *arguments], capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return found.stdout.strip()
