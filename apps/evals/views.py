"""The page on quality: what evaluations found, and what became of what extractors proposed."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse

from apps.accounts.models import Role
from apps.accounts.pages import PageRequest, page
from apps.core.frames import render_framed
from apps.core.methods import looked_at
from apps.evals.drawing import bars_of, diagram_of
from apps.evals.extraction import extraction_quality, reliability
from apps.evals.quality.results import LEDGER
from apps.evals.quality.tables import tables_of
from apps.evals.selectors import Latest, evaluations_latest
from apps.retrieval.recipes import RECIPES


@looked_at
@page(Role.REVIEWER, to="see how good the answers are")
def quality(request: PageRequest) -> HttpResponse:
    found = reliability(request.principal)
    context = {
        "evaluations": [_shown(latest) for latest in evaluations_latest()],
        "extractions": extraction_quality(request.principal),
        "reliability": found,
        "diagram": None if found is None else diagram_of(found),
    }
    return render_framed(request, "evals/quality.html", context)


def _shown(latest: Latest) -> dict[str, Any]:
    return {
        "suite": latest.suite,
        "run": latest.run,
        "bars": bars_of(latest.suite, frozenset({*RECIPES, LEDGER})),
        "tables": list(tables_of(latest.suite)),
    }
