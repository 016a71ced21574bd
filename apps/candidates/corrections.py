"""Reports that a memory is stale or wrong. A report disputes a memory mildly; only a reviewer decides about it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction

from apps.accounts.principal import Principal
from apps.candidates.models import OPEN, Candidate, CandidateStatus, CorrectionKind
from apps.candidates.proposal import (
    Proposal,
    ScopeInput,
    check_content,
    exclusion_flags,
    screened,
    source_flags,
    source_texts,
)
from apps.candidates.services import Proposed, Resolved, hold_origin, origin, said_before, settle
from apps.core.clock import now
from apps.core.errors import FieldError, Refusals, TooMany
from apps.core.screening import Flag, check_text
from apps.memories.lifecycle import memory_dispute, pool_needed, require_transition
from apps.memories.models import Action, Memory, MemoryStatus, SubjectKind
from apps.memories.selectors import memory_for
from apps.memories.verdicts import verdict_record
from apps.sources.services import SourceInput, check_sources, sources_record

MAX_REPORTS_PER_DAY = 20
MAX_REASON = 2_000
TRUST_WINDOW = timedelta(days=30)
DISMISSALS_THAT_COST_TRUST = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """``kind`` is ``stale`` (it held once) or ``wrong`` (it never did)."""

    kind: str
    reason: str
    sources: tuple[SourceInput, ...]
    replacement: str = ""


def memory_correct(*, principal: Principal, reference: str | UUID, report: Report) -> Proposed:
    """Report a memory. It stays served, marked as disputed, until a reviewer decides.

    One open report for a memory and an origin: a second answers with the first. Raises ``Invalid``, ``Excluded``,
    ``NotFound``, ``Conflict`` for a memory no longer in force, ``TooMany`` past the day's reports, ``Unavailable`` when
    the pool cannot be told.
    """
    principal.require_write()
    memory = memory_for(principal, reference)
    flags = _check(principal, report, memory)
    with pool_needed("Nothing was reported."), transaction.atomic():
        # Decisions lock the report first and its memory second; so does this.
        said_before(principal, _fingerprint(principal, memory))
        memory = memory_for(principal, memory.pk, lock=True)
        require_transition(memory, Action.CORRECT)
        proposed = settle(principal, _resolve(principal, memory, report, flags))
        if proposed.created:
            _record(principal, memory, report, proposed.candidate)
        elif proposed.candidate.is_open and memory.status == MemoryStatus.ACTIVE and _trusted(principal):
            memory_dispute(memory, disputed=True, at=now())  # a dismissed report that a new source reopened
    return proposed


def _check(principal: Principal, report: Report, memory: Memory) -> list[Flag]:
    errors = check_text(report.reason, field="reason", max_length=MAX_REASON)
    if report.kind not in CorrectionKind.values:
        errors.append(FieldError("kind", f"Use one of: {', '.join(CorrectionKind.values)}."))
    if report.replacement:
        errors += check_content(report.replacement, tier=memory.tier, field="replacement")
    errors += check_sources(report.sources)
    if report.replacement.strip() == memory.content.strip():
        errors.append(FieldError("replacement", "This says what the memory says already."))
    refusals, flags = Refusals(), list[Flag]()
    refusals.add(errors)
    with refusals.collecting():
        flags = screened(principal.workspace, _texts(report))
        flags += exclusion_flags(principal.workspace, report.replacement, field="replacement")
    refusals.raise_all("The report will not do.")
    return flags


def check_readable_report(principal: Principal, values: Mapping[str, Any]) -> None:
    """Raise ``Invalid`` for those values of a report whose others cannot even be read."""
    refusals = Refusals()
    sources = values.get("sources", ())
    texts = {name: values[name] for name in ("reason", "replacement") if values.get(name)}
    if "sources" in values:
        refusals.add(check_sources(sources))
    with refusals.collecting():
        screened(principal.workspace, texts | source_texts(sources))
    refusals.raise_all("Some values will not do.")


def _texts(report: Report) -> dict[str, str]:
    texts = {"reason": report.reason} | source_texts(report.sources)
    return texts | {"replacement": report.replacement} if report.replacement else texts


def _resolve(principal: Principal, memory: Memory, report: Report, flags: list[Flag]) -> Resolved:
    sources = tuple(sources_record(principal.workspace, report.sources))
    content = report.replacement or report.reason
    return Resolved(
        proposal=Proposal(
            content=content,
            type=memory.type.slug,
            scope=ScopeInput(),
            sources=report.sources,
            valid_from=None,
            tier=memory.tier,
        ),
        type=memory.type,
        scope=memory.scope,
        sources=sources,
        targets=(memory,) if report.replacement else (),
        flags=(*(flag.as_dict() for flag in flags), *source_flags(sources)),
        fingerprint=_fingerprint(principal, memory),
        corrects=memory,
        correction_kind=report.kind,
        correction_reason=report.reason,
        has_replacement=bool(report.replacement),
    )


def _fingerprint(principal: Principal, memory: Memory) -> str:
    """One open report for a memory and an origin, held by the same index as any open candidate."""
    return hashlib.sha256(f"report\x1f{memory.pk}\x1f{principal.key}".encode()).hexdigest()


def _record(principal: Principal, memory: Memory, report: Report, candidate: Candidate) -> None:
    _require_reports_left(principal)
    moment = now()
    verdict_record(
        principal,
        Action.CORRECT,
        subject_kind=SubjectKind.MEMORY,
        subject_id=memory.pk,
        at=moment,
        reason=_reason_for_all(report, memory, candidate),
        before={"status": memory.status},
        after={"candidate": str(candidate.pk), "kind": report.kind},
    )
    if _trusted(principal):
        memory_dispute(memory, disputed=True, at=moment)


def _reason_for_all(report: Report, memory: Memory, candidate: Candidate) -> str:
    """Everybody who sees the memory reads its verdicts; what came from a restricted source stays with the report."""
    if set(candidate.audience_ids) <= set(memory.audience_ids):
        return report.reason
    return "The reason came from a restricted source."


def _require_reports_left(principal: Principal) -> None:
    """Counted after the new one is in; the transaction takes it out again when refused."""
    if not settings.FIRM_MEMORY_THROTTLE:
        return
    hold_origin(principal)
    since = now() - timedelta(days=1)
    made = Candidate.objects.filter(
        origin(principal), workspace=principal.workspace, corrects__isnull=False, created_at__gt=since
    )
    if made.count() > MAX_REPORTS_PER_DAY:
        raise TooMany(
            f"You have made {MAX_REPORTS_PER_DAY} reports within a day. Make further ones tomorrow.",
            code="too_many_reports",
        )


def _trusted(principal: Principal) -> bool:
    """Whether this origin's reports still dispute a memory at once; dismissed ones count against it."""
    recent = Candidate.objects.filter(
        origin(principal),
        workspace=principal.workspace,
        corrects__isnull=False,
        updated_at__gt=now() - TRUST_WINDOW,
    )
    dismissed = recent.filter(status=CandidateStatus.REJECTED).count()
    upheld = recent.filter(status=CandidateStatus.APPROVED).count()
    return dismissed - upheld < DISMISSALS_THAT_COST_TRUST


def open_reports(memory_ids: list[UUID]) -> frozenset[UUID]:
    """Which of these memories somebody has reported and nobody has decided about."""
    rows = Candidate.objects.filter(corrects__in=memory_ids, status__in=OPEN)
    return frozenset(rows.values_list("corrects_id", flat=True))


def report_settled(candidate: Candidate) -> None:
    """When a report closes without effect, its memory is active again unless another report is open."""
    if candidate.corrects_id is None:
        return
    memory = Memory.objects.select_for_update(of=("self",)).select_related("type").get(pk=candidate.corrects_id)
    memory_dispute(memory, disputed=bool(open_reports([memory.pk])), at=now())
