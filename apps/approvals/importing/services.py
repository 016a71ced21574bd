"""Bringing a firm's decision history in: an operator imports records, a named reviewer answers for them.

Every record goes the way of any other statement: proposed by a bot, approved by a verdict (``via=import``), stored
in ledger and pool in one transaction. A batch is a transaction, so an import that was stopped goes on where it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from uuid import uuid4

from django.db import IntegrityError, transaction

from apps.accounts.audit import audit_record
from apps.accounts.models import Role
from apps.accounts.principal import Principal
from apps.accounts.services import builtin_bot
from apps.approvals.importing.records import Edge, Record, Refused
from apps.approvals.importing.report import Report
from apps.candidates.models import Candidate, CandidateEvidence, CandidateStatus, Proposer
from apps.core.clock import now
from apps.core.errors import Invalid
from apps.core.problems import constraint_of
from apps.core.screening.text import normalise_for_fingerprint
from apps.core.wording import RESTORED
from apps.memories.fingerprints import fingerprint
from apps.memories.lifecycle import Statement, memories_refresh, memories_write, numbers_take
from apps.memories.models import Action, EdgeKind, Memory, MemoryEvidence, SubjectKind, Supersession, Verdict
from apps.memories.providers.base import Prepared
from apps.memories.providers.registry import get_provider
from apps.memories.verdicts import verdict_record
from apps.scopes.scope import Scope
from apps.scopes.services import scope_register
from apps.sources.models import Source, SourceKind
from apps.sources.services import SourceInput, sources_record
from apps.taxonomy.models import MemoryType
from apps.taxonomy.selectors import find_types

IMPORTER = "importer"
EDGE_KINDS = {
    "supersedes": EdgeKind.FULL,
    "partially_supersedes": EdgeKind.PARTIAL,
    "amends": EdgeKind.AMENDS,
}


class Importer:
    """One run for one workspace. ``principal`` is the reviewer in whose name the records are approved.

    A dry run says what would become of each line and writes nothing.
    """

    def __init__(self, principal: Principal, *, dry_run: bool = False) -> None:
        principal.require_role(Role.REVIEWER, to="answer for imported records")
        self.principal = principal
        self.workspace = principal.workspace
        self.report = Report()
        self._dry_run = dry_run
        self._would_be: set[str] = set()
        self._links: dict[str, set[str]] = {}
        self.origin = None if dry_run else builtin_bot(principal.workspace, IMPORTER)
        accepted, turned_down = find_types(
            self.workspace, ["ARCHITECTURE_DECISION", "REJECTED_APPROACH"], field="type", active_only=True
        )
        self._types = {False: accepted, True: turned_down}
        self._named: dict[str, MemoryType] = {}
        self._scopes: dict[tuple[tuple[str, ...], tuple[str, ...]], Scope] = {}

    def take(self, batch: Sequence[Record | Refused]) -> None:
        """Import one batch: all of its records in one transaction, those already there left alone."""
        for refused in batch:
            if isinstance(refused, Refused):
                self.report.refuse(refused)
            else:
                self.report.not_read(refused.unread)
        fresh = self._fresh([record for record in batch if isinstance(record, Record) and self._has_a_type(record)])
        if not fresh:
            return
        if self._dry_run:
            self._would_be.update(record.reference for record in fresh)
            self._remark(fresh, "would be imported")
            return
        prepared = get_provider().prepare_many([record.content for record in fresh])
        for wave in _waves(list(zip(fresh, prepared, strict=True))):
            with transaction.atomic():
                self._write(wave)

    def _has_a_type(self, record: Record) -> bool:
        """Refuses the record that names a type which there is not."""
        if record.type is not None and record.type not in self._named:
            try:
                (self._named[record.type],) = find_types(
                    self.workspace, [record.type], field="memory_type", active_only=True
                )
            except Invalid:
                reason = f"There is no type “{record.type}” in this workspace, or it is retired."
                self.report.refuse(Refused(record.line, record.reference, reason))
                return False
        return True

    def _fresh(self, records: Sequence[Record]) -> list[Record]:
        """Those not imported before, each reference once."""
        known = _imported(self.workspace.pk, [record.reference for record in records])
        fresh: dict[str, Record] = {}
        for record in records:
            if record.reference in known or record.reference in self._would_be:
                self.report.counts["already there"] += 1
            elif record.reference in fresh:
                self.report.refuse(Refused(record.line, record.reference, "An earlier line has the same id."))
            else:
                fresh[record.reference] = record
        hidden = self._hidden(list(fresh.values()))
        for record in hidden:
            self.report.refuse(
                Refused(
                    record.line,
                    record.reference,
                    f"Its source is restricted to an audience that {self.principal.name} is not in. Somebody of that "
                    "audience has to answer for it.",
                )
            )
        return [record for record in fresh.values() if record not in hidden]

    def _hidden(self, records: Sequence[Record]) -> list[Record]:
        """Those whose source was restricted before they came, to an audience without the reviewer."""
        rows = Source.objects.filter(
            workspace=self.workspace,
            kind=SourceKind.DOCUMENT,
            reference__in=[record.reference for record in records],
            audience__isnull=False,
        )
        others = rows.exclude(audience__in=self.principal.audience_ids)
        hidden = set(others.values_list("reference", flat=True))
        return [record for record in records if record.reference in hidden]

    def _write(self, rows: Sequence[tuple[Record, Prepared]]) -> None:
        at = now()
        records = [record for record, _ in rows]
        sources = self._sources(records)
        candidates = [self._candidate(record, source) for record, source in zip(records, sources, strict=True)]
        Candidate.objects.bulk_create(candidates)
        evidence = list(zip(candidates, sources, strict=True))
        CandidateEvidence.objects.bulk_create(
            CandidateEvidence(candidate=candidate, source=source, workspace=self.workspace)
            for candidate, source in evidence
        )
        Proposer.objects.bulk_create(
            Proposer(candidate=candidate, workspace=self.workspace, token=self.origin, name=IMPORTER)
            for candidate in candidates
        )
        verdicts = Verdict.objects.bulk_create(self._approval(candidate, at) for candidate in candidates)
        for candidate, verdict in zip(candidates, verdicts, strict=True):
            candidate.status, candidate.decision, candidate.version = CandidateStatus.APPROVED, verdict, 2
        Candidate.objects.bulk_update(candidates, ["status", "decision", "version"])
        memories_write(
            [
                (_statement(candidate, source), verdict, prepared)
                for (candidate, source), verdict, (_, prepared) in zip(evidence, verdicts, rows, strict=True)
            ],
            workspace_id=self.workspace.pk,
            first_number=numbers_take(self.workspace.pk, len(rows)),
            at=at,
        )
        self._account(records)

    def _account(self, records: Sequence[Record]) -> None:
        audit_record(
            self.principal,
            "import",
            subject_kind="memory",
            subject_id=f"{len(records)} records",
            after={"first": records[0].reference, "last": records[-1].reference},
        )
        self._remark(records, "imported")

    def _remark(self, records: Sequence[Record], outcome: str) -> None:
        self.report.counts[outcome] += len(records)
        for record in records:
            for note in record.notes:
                self.report.remark("changed on the way in", f"{record.reference}: {note.rstrip('.')}.")
            if record.held_from is None:
                self.report.counts["without a date"] += 1

    def _sources(self, records: Sequence[Record]) -> list[Source]:
        inputs = [
            SourceInput(
                kind=SourceKind.DOCUMENT,
                reference=record.reference,
                title=record.title,
                occurred_at=record.held_from,
                commit=record.commit,
            )
            for record in records
        ]
        rows = {source.reference: source for source, _ in sources_record(self.workspace, inputs)}
        return [rows[record.reference] for record in records]

    def _candidate(self, record: Record, source: Source) -> Candidate:
        scope = self._scope(record)
        type_ = self._named[record.type] if record.type else self._types[record.is_turned_down]
        return Candidate(
            id=uuid4(),
            workspace=self.workspace,
            content=record.content,
            type=type_,
            firm=scope.firm,
            domain_ids=list(scope.domain_ids),
            repo_ids=list(scope.repo_ids),
            # What came from a restricted source is restricted to the same audience.
            audience_ids=[] if source.audience_id is None else [source.audience_id],
            tier=record.tier,
            valid_from=record.held_from,
            status=CandidateStatus.PENDING,
            fingerprint=fingerprint(record.content, type_id=type_.pk, scope=scope),
            origin_token=self.origin,
            origin_name=IMPORTER,
            created_at=now(),
        )

    def _scope(self, record: Record) -> Scope:
        """A record that names no repository holds for the firm."""
        key = (record.domains, record.repos)
        if key not in self._scopes:
            firm = not record.domains and not record.repos
            resolved = scope_register(self.workspace, firm=firm, domains=record.domains, repos=record.repos)
            self._scopes[key] = resolved.scope
        return self._scopes[key]

    def _approval(self, candidate: Candidate, at: datetime) -> Verdict:
        return Verdict(
            workspace=self.workspace,
            subject_kind=SubjectKind.CANDIDATE,
            subject_id=candidate.pk,
            action=Action.APPROVE,
            reviewer=self.principal.user,
            reviewer_name=self.principal.name,
            reason="Imported.",
            via=self.principal.via,
            request_id=self.principal.request_id,
            created_at=at,
        )

    def link(self, edges: Iterable[Edge | Refused]) -> None:
        """Add the edges that took effect. What hides nothing, points nowhere or goes in circles is reported."""
        for edge in edges:
            if isinstance(edge, Refused):
                self.report.refuse(edge)
                continue
            self.report.not_read(edge.unread)
            if not edge.effective:
                self.report.remark(
                    "edges not in effect",
                    f"{edge.new} claims {edge.old} ({edge.kind}), but was not accepted; it hides nothing.",
                )
            else:
                self._link(edge)

    def _link(self, edge: Edge) -> None:
        found = _imported(self.workspace.pk, [edge.old, edge.new])
        missing = [
            reference
            for reference in (edge.old, edge.new)
            if reference not in found and reference not in self._would_be
        ]
        if missing:
            self.report.remark(
                "dangling edges", f"{edge.new} → {edge.old}: {' and '.join(missing)} was never imported."
            )
            return
        if self._dry_run:
            self._foresee(edge)
            return
        try:
            with transaction.atomic():
                self._store(edge, found[edge.old], found[edge.new])
        except IntegrityError as error:
            if constraint_of(error) not in ("supersession_no_cycle", "supersession_not_of_itself"):
                raise
            self._remark_circle(edge)

    def _foresee(self, edge: Edge) -> None:
        """Circles among the edges of this file; one that closes through edges of an earlier import shows later."""
        if edge.new == edge.old or self._leads(edge.old, edge.new):
            self._remark_circle(edge)
            return
        self._links.setdefault(edge.new, set()).add(edge.old)
        self.report.counts[f"edges that would be stored ({EDGE_KINDS[edge.kind]})"] += 1

    def _leads(self, start: str, end: str) -> bool:
        seen, ahead = set(), [start]
        while ahead:
            here = ahead.pop()
            if here == end:
                return True
            if here not in seen:
                seen.add(here)
                ahead.extend(self._links.get(here, ()))
        return False

    def _remark_circle(self, edge: Edge) -> None:
        self.report.remark("cyclic edges", f"{edge.new} → {edge.old} would close a circle and was left out.")

    def _store(self, edge: Edge, old_id: object, new_id: object) -> None:
        old = Memory.objects.select_for_update(of=("self",)).select_related("type").get(pk=old_id)
        new = Memory.objects.get(pk=new_id)
        if Supersession.objects.live().filter(old=old, new=new).exists():
            self.report.counts["edges already there"] += 1
            return
        at, kind = now(), EDGE_KINDS[edge.kind]
        holds_from = edge.held_from or new.valid_from or at
        verdict = verdict_record(
            self.principal,
            Action.SUPERSEDE,
            subject_kind=SubjectKind.MEMORY,
            subject_id=old.pk,
            at=at,
            reason=f"Imported: {edge.new} {edge.kind.replace('_', ' ')} {edge.old}.",
            after={"by": str(new.pk), "kind": kind},
        )
        Supersession.objects.create(
            workspace=self.workspace, old=old, new=new, kind=kind, holds_from=holds_from, verdict=verdict
        )
        if kind is EdgeKind.FULL:
            memories_refresh([old], at=at)
            self._warn_if_empty(edge, old)
        self.report.counts[f"edges stored ({kind})"] += 1

    def _warn_if_empty(self, edge: Edge, old: Memory) -> None:
        if old.valid_from and old.valid_to and old.valid_to <= old.valid_from:
            self.report.remark(
                "empty intervals",
                f"{edge.old} was replaced on {old.valid_to:%Y-%m-%d}, before its own date {old.valid_from:%Y-%m-%d}; "
                "no date finds it.",
            )


def _imported(workspace_id: int, references: Sequence[str]) -> dict[str, object]:
    """The memory that each of these records became, by reference; the newest where there are several."""
    rows = MemoryEvidence.objects.filter(
        workspace=workspace_id, source__kind=SourceKind.DOCUMENT, source__reference__in=list(references)
    )
    rows = rows.filter(memory__verdict__via__in=("import", f"{RESTORED}import")).order_by("memory__number")
    return dict(rows.values_list("source__reference", "memory_id"))


def _waves(rows: Sequence[tuple[Record, Prepared]]) -> Iterator[list[tuple[Record, Prepared]]]:
    """Records that say the same go one after the other: of one statement only one candidate may be open."""
    left = list(rows)
    while left:
        seen: set[tuple[object, ...]] = set()
        wave: list[tuple[Record, Prepared]] = []
        later: list[tuple[Record, Prepared]] = []
        for row in left:
            key = (normalise_for_fingerprint(row[0].content), row[0].repos, row[0].domains)
            (later if key in seen else wave).append(row)
            seen.add(key)
        yield wave
        left = later


def _statement(candidate: Candidate, source: Source) -> Statement:
    return Statement(
        content=candidate.content,
        type=candidate.type,
        scope=Scope(candidate.firm, tuple(candidate.domain_ids), tuple(candidate.repo_ids)),
        audience_ids=tuple(candidate.audience_ids),
        tier=candidate.tier,
        confidence=None,
        valid_from=candidate.valid_from,
        fingerprint=candidate.fingerprint,
        evidence=((source.pk, ""),),
    )
