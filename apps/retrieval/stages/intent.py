"""What the question is after, as named or as told from its wording."""

from __future__ import annotations

from apps.retrieval.intents import detected
from apps.retrieval.pipeline import Search


def run(search: Search) -> None:
    if search.intent:
        search.skip("intent", f"{search.intent}, as asked for.")
        return
    with search.stage("intent") as stage:
        found = detected(search.question, workspace_id=search.admission.workspace_id)
        search.intent = found.intent
        stage.detail = f"{found.intent}: {found.because}"
