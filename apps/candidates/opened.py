from __future__ import annotations

from apps.accounts.principal import Principal
from apps.candidates.models import Candidate, Opened


def opened_record(principal: Principal, candidate: Candidate) -> None:
    """Note that this reviewer looked at this version."""
    if principal.can_review and candidate.is_open:
        Opened.objects.bulk_create(
            [
                Opened(
                    candidate=candidate,
                    workspace_id=candidate.workspace_id,
                    user=principal.user,
                    version=candidate.version,
                )
            ],
            ignore_conflicts=True,
        )
