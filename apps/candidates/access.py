"""Look-up is authorisation: a candidate is fetched for somebody, with or without a lock, or it is not there."""

from __future__ import annotations

from uuid import UUID

from django.db.models import Exists, OuterRef, Q

from apps.accounts.models import ApiToken
from apps.accounts.principal import Principal
from apps.candidates.models import Candidate, CandidateQuerySet, Proposer
from apps.core.errors import NotFound
from apps.memories.selectors import domains_of


def candidates_visible(principal: Principal) -> CandidateQuerySet:
    """The whole queue for reviewers, as far as their audiences and their token's repositories reach.

    Everybody else sees their own candidates.
    """
    rows: CandidateQuerySet = Candidate.objects.filter(workspace=principal.workspace)
    if not principal.can_review:
        return rows.filter(own(principal))
    limit = principal.repository_limit
    if limit:
        rows = rows.in_scope(domain_ids=domains_of(limit), repo_ids=limit)
    return rows.visible_to(principal.audience_ids)


def own(principal: Principal) -> Q:
    """Proposed by this principal, first or by joining; a person's own are also those of tokens that they own."""
    rows = Proposer.objects.filter(workspace=principal.workspace).order_by()
    if principal.user is None:
        return Q(pk__in=rows.filter(_proposed_by(principal)).values("candidate"))
    # Looked up first: of the tokens of a join PostgreSQL cannot tell how much they proposed, and reads all there is.
    tokens = list(ApiToken.objects.filter(owner=principal.user).order_by().values_list("pk", flat=True))
    return Q(pk__in=rows.filter(Q(user=principal.user) | Q(token__in=tokens)).values("candidate"))


def _proposed_by(principal: Principal) -> Q:
    if principal.user is not None:
        return Q(user=principal.user) | Q(token__owner=principal.user)
    return Q(token=principal.token, token__isnull=False)


def candidate_for(principal: Principal, candidate_id: UUID, *, lock: bool = False) -> Candidate:
    """Raises ``NotFound`` alike for what does not exist, belongs to another workspace, or may not be seen.

    ``is_own`` of what it answers says whether this principal proposed it. Whoever joins while the lock is waited for
    raises the version, and the decision is stale.
    """
    mine = Proposer.objects.filter(_proposed_by(principal), candidate=OuterRef("pk"))
    rows = candidates_visible(principal).filter(pk=candidate_id).annotate(is_own=Exists(mine))
    if lock:
        rows = rows.select_for_update(of=("self",))
    candidate: Candidate | None = rows.select_related("type__category", "corrects").first()
    if candidate is None:
        raise NotFound("There is no such candidate.")
    return candidate


def is_proposer(principal: Principal, candidate: Candidate) -> bool:
    """Whether this principal proposed it; a person also through a token that they own."""
    return bool(candidate.proposers.filter(_proposed_by(principal)).exists())
