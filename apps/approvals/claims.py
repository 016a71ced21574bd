"""Who is looking at a candidate just now. A claim is a courtesy between reviewers: it is shown and blocks nobody."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import Q

from apps.accounts.principal import Principal
from apps.candidates.models import OPEN, Candidate
from apps.core.clock import now

CLAIMED_FOR = timedelta(minutes=10)


def candidate_claim(*, principal: Principal, candidate: Candidate) -> bool:
    """Claim it unless somebody else has; whether it is claimed by this reviewer now.

    One conditional update, so that of two who open it at once one is told of the other. The version stays: looking
    at a candidate disturbs no decision about it.
    """
    if not principal.can_review or principal.read_only or not candidate.is_open:
        return False
    at = now()
    free = Q(claimed_by__isnull=True) | Q(claimed_until__lte=at) | Q(claimed_by=principal.user)
    claimed = Candidate.objects.filter(free, pk=candidate.pk, status__in=OPEN).update(
        claimed_by=principal.user, claimed_until=at + CLAIMED_FOR
    )
    return bool(claimed)


def claimant(principal: Principal, candidate: Candidate) -> str | None:
    """The name of another reviewer who is looking at it, else ``None``."""
    if candidate.claimed_by is None or candidate.claimed_until is None or candidate.claimed_until <= now():
        return None
    return None if candidate.claimed_by == principal.user else candidate.claimed_by.get_username()


def unclaimed(principal: Principal) -> Q:
    """Candidates that no other reviewer is looking at."""
    return Q(claimed_by__isnull=True) | Q(claimed_until__lte=now()) | Q(claimed_by=principal.user)
