"""The whole export: one consistent snapshot, read piece by piece, so that it takes as little memory as one piece."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Exists, Max, OuterRef, Q, QuerySet

from apps.accounts.audit import audit_record
from apps.accounts.models import Audience, Role, Workspace
from apps.accounts.principal import Principal
from apps.agents.files.whole import FORMAT, VERSION
from apps.core.clock import now
from apps.core.errors import Forbidden
from apps.core.wording import RESTORED
from apps.memories.models import Action, Memory, MemoryEvidence, SubjectKind, Supersession, Verdict
from apps.scopes.models import Domain, Repository
from apps.sources.models import Source
from apps.taxonomy.models import Category, Exclusion, MemoryType

AT_ONCE: Final = 500
# What somebody reported is a proposal, and its reason is words that nobody has approved.
_OF_A_MEMORY: Final = (Action.RETIRE, Action.RESTORE, Action.SUPERSEDE, Action.REDACT)

Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Reach:
    """What goes into an export. ``audience_ids`` is none for whoever runs commands on the server: everything."""

    workspace: Workspace
    audience_ids: frozenset[int] | None

    def memories(self) -> QuerySet[Memory]:
        rows = Memory.objects.of(self.workspace)
        return rows if self.audience_ids is None else rows.visible_to(self.audience_ids)

    def sources(self) -> QuerySet[Source]:
        supporting = MemoryEvidence.objects.filter(source=OuterRef("pk"), memory__in=self.memories())
        rows = Source.objects.filter(Exists(supporting), workspace=self.workspace)
        if self.audience_ids is None:
            return rows
        return rows.filter(Q(audience__isnull=True) | Q(audience__in=self.audience_ids))

    def edges(self) -> QuerySet[Supersession]:
        return Supersession.objects.filter(workspace=self.workspace, old__in=self.memories(), new__in=self.memories())

    def audiences(self) -> QuerySet[Audience]:
        rows = Audience.objects.filter(workspace=self.workspace)
        return rows if self.audience_ids is None else rows.filter(pk__in=self.audience_ids)

    def repositories(self) -> QuerySet[Repository]:
        """Those that a curator has looked at, and those that an exported memory is about: a name that only a proposal
        gave is a proposal's.
        """
        rows = Repository.objects.filter(workspace=self.workspace)
        curated = Q(confirmed=True) | ~Q(aliases=[]) | ~Q(domain_ids=[])
        return rows.filter(curated | Q(pk__in=self._in_scope("repo_ids")))

    def domains(self) -> QuerySet[Domain]:
        rows = Domain.objects.filter(workspace=self.workspace)
        of_repositories = {pk for ids in self.repositories().values_list("domain_ids", flat=True) for pk in ids}
        return rows.filter(Q(confirmed=True) | Q(pk__in=of_repositories) | Q(pk__in=self._in_scope("domain_ids")))

    def _in_scope(self, column: str) -> set[int]:
        """Ids in the scopes of the memories; there are as many as there are domains or repositories."""
        found: set[int] = set()
        for ids in self.memories().order_by().values_list(column, flat=True).distinct().iterator():
            found.update(ids)
        return found


def export_lines(principal: Principal) -> Iterator[str]:
    """The lines of the export for an admin, within their audiences, or for the operator, of everything.

    Raises ``Forbidden`` before the first line. The export is an event in the audit trail.
    """
    if not principal.is_operator:
        principal.require_reading_role(Role.ADMIN, to="export everything")
        if principal.repository_limit:
            raise Forbidden("This token is limited to some repositories, and an export of everything goes beyond them.")
    reach = Reach(principal.workspace, None if principal.is_operator else principal.audience_ids)
    audit_record(principal, "export", subject_kind="workspace", subject_id=principal.workspace.slug)
    return _lines(reach)


def _lines(reach: Reach) -> Iterator[str]:
    digest = hashlib.sha256()
    count = 0
    with _snapshot():
        for record in _records(reach):
            line = _line(record)
            digest.update(line.encode())
            count += 1
            yield line
    yield _line({"record": "trailer", "lines": count, "sha256": digest.hexdigest()})


def _line(record: Record) -> str:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n"


@contextmanager
def _snapshot() -> Iterator[None]:
    """What was there at one moment, however long reading it takes. A transaction that is open already has its own."""
    if connection.in_atomic_block:
        yield
        return
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield


def _records(reach: Reach) -> Iterator[Record]:
    yield _header(reach)
    yield from _taxonomy(reach.workspace)
    domains = dict(reach.domains().values_list("pk", "slug"))
    audiences = dict(reach.audiences().values_list("pk", "name"))
    for domain in reach.domains().order_by("slug"):
        yield {"record": "domain", "slug": domain.slug, "confirmed": domain.confirmed}
    for repository in reach.repositories().order_by("slug"):
        yield _repository(repository, domains)
    for name in sorted(audiences.values()):
        yield {"record": "audience", "name": name}
    repos = dict(reach.repositories().values_list("pk", "slug"))
    for sources in _by_key(reach.sources().select_related("audience"), "pk"):
        yield from map(_source, sources)
    for memories in _by_key(reach.memories().select_related("type", "verdict"), "number"):
        yield from _memories(reach, memories, domains, repos, audiences)
    for edges in _by_key(reach.edges(), "pk"):
        yield from map(_edge, edges)


def _by_key(rows: QuerySet[Any], key: str) -> Iterator[list[Any]]:
    """A few hundred at a time, each time those beyond the last one."""
    last: Any = None
    while True:
        beyond = rows if last is None else rows.filter(**{f"{key}__gt": last})
        found = list(beyond.order_by(key)[:AT_ONCE])
        if not found:
            return
        yield found
        last = getattr(found[-1], key)


def _header(reach: Reach) -> Record:
    memories = reach.memories()
    counts = {
        "category": Category.objects.filter(workspace=reach.workspace).count(),
        "type": MemoryType.objects.filter(workspace=reach.workspace).count(),
        "exclusion": Exclusion.objects.filter(workspace=reach.workspace).count(),
        "domain": reach.domains().count(),
        "repository": reach.repositories().count(),
        "audience": reach.audiences().count(),
        "source": reach.sources().count(),
        "memory": memories.count(),
        "edge": reach.edges().count(),
    }
    everything = Memory.objects.of(reach.workspace).order_by()
    return {
        "record": "header",
        "format": FORMAT,
        "version": VERSION,
        "workspace": reach.workspace.slug,
        "exported_at": now().isoformat(),
        "last_number": everything.aggregate(last=Max("number"))["last"] or 0,
        "counts": counts,
        # Restricted to audiences that whoever exports is not in.
        "left_out": everything.count() - counts["memory"],
    }


def _taxonomy(workspace: Workspace) -> Iterator[Record]:
    for category in Category.objects.filter(workspace=workspace).order_by("slug"):
        yield {
            "record": "category",
            "slug": category.slug,
            "half_life_days": category.half_life_days,
            "ttl_days": category.ttl_days,
            "weights": category.weights,
        }
    for type_ in MemoryType.objects.filter(workspace=workspace).select_related("category").order_by("slug"):
        yield {
            "record": "type",
            "slug": type_.slug,
            "name": type_.name,
            "description": type_.description,
            "category": type_.category.slug,
            "always_human": type_.always_human,
            "min_confidence": type_.min_confidence,
            "is_active": type_.is_active,
        }
    for exclusion in Exclusion.objects.filter(workspace=workspace).order_by("slug"):
        yield {
            "record": "exclusion",
            "slug": exclusion.slug,
            "description": exclusion.description,
            "is_active": exclusion.is_active,
        }


def _repository(repository: Repository, domains: dict[int, str]) -> Record:
    return {
        "record": "repository",
        "slug": repository.slug,
        "remote": repository.remote,
        "aliases": list(repository.aliases),
        "domains": sorted(domains[pk] for pk in repository.domain_ids),
        "confirmed": repository.confirmed,
    }


def _source(source: Source) -> Record:
    return {
        "record": "source",
        "kind": source.kind,
        "reference": source.reference,
        "commit": source.commit,
        "url": source.url,
        "title": source.title,
        "occurred_at": _moment(source.occurred_at),
        "audience": source.audience.name if source.audience else None,
        "recorded_at": _moment(source.created_at),
    }


def _memories(
    reach: Reach,
    memories: Sequence[Memory],
    domains: dict[int, str],
    repos: dict[int, str],
    audiences: dict[int, str],
) -> Iterator[Record]:
    evidence = _evidence(reach, memories)
    verdicts = _verdicts(memories)
    for memory in memories:
        yield {
            "record": "memory",
            "id": str(memory.pk),
            "number": memory.number,
            "content": memory.content,
            "type": memory.type.slug,
            "scope": {
                "firm": memory.firm,
                "domains": sorted(domains[pk] for pk in memory.domain_ids),
                "repos": sorted(repos[pk] for pk in memory.repo_ids),
            },
            "audiences": sorted(audiences[pk] for pk in memory.audience_ids),
            "tier": memory.tier,
            "status": memory.status,
            "confidence": memory.confidence,
            "valid_from": _moment(memory.valid_from),
            "valid_to": _moment(memory.valid_to),
            "closed_at": _moment(memory.closed_at),
            "recorded_at": _moment(memory.recorded_at),
            "retired_at": _moment(memory.retired_at),
            "evidence": evidence[memory.pk],
            "verdicts": verdicts[memory.pk],
        }


def _evidence(reach: Reach, memories: Sequence[Memory]) -> dict[UUID, list[Record]]:
    """A memory's audiences hold those of all its sources, so whoever may see it may see these."""
    found: dict[UUID, list[Record]] = defaultdict(list)
    rows = MemoryEvidence.objects.filter(memory__in=memories).select_related("source").order_by("pk")
    for row in rows:
        source = row.source
        found[row.memory_id].append(
            {"kind": source.kind, "reference": source.reference, "commit": source.commit, "quote": row.quote}
        )
    return found


def _verdicts(memories: Sequence[Memory]) -> dict[UUID, list[Record]]:
    """Of each memory the verdict that approved it, the one that took that back, and those on itself; oldest first."""
    found: dict[UUID, list[Verdict]] = {memory.pk: [memory.verdict] for memory in memories}
    reopened: dict[UUID, list[Verdict]] = defaultdict(list)
    candidates = [memory.verdict.subject_id for memory in memories]
    for verdict in Verdict.objects.filter(subject_id__in=candidates, action=Action.REOPEN).order_by("created_at"):
        reopened[verdict.subject_id].append(verdict)
    for memory in memories:
        approved = memory.verdict
        undone = [row for row in reopened[approved.subject_id] if row.created_at >= approved.created_at]
        found[memory.pk] += undone[:1]
    own = Verdict.objects.filter(subject_kind=SubjectKind.MEMORY, subject_id__in=list(found), action__in=_OF_A_MEMORY)
    for verdict in own.order_by("created_at", "pk"):
        found[verdict.subject_id].append(verdict)
    return {pk: [_verdict(row) for row in rows] for pk, rows in found.items()}


def _verdict(verdict: Verdict) -> Record:
    on_candidate = verdict.subject_kind == SubjectKind.CANDIDATE
    return {
        "id": str(verdict.pk),
        "on": verdict.subject_kind,
        "action": verdict.action,
        "reviewer": verdict.reviewer_name,
        "reason": verdict.reason,
        # What a proposal said before it was amended was never approved; what was approved is the memory.
        "amended": _amended(verdict) if on_candidate else [],
        "before": {} if on_candidate else verdict.before,
        "after": {} if on_candidate else verdict.after,
        "via": verdict.via.removeprefix(RESTORED),
        "second_person": verdict.second_person,
        "batch": str(verdict.batch_id) if verdict.batch_id else None,
        "at": _moment(verdict.created_at),
        "restored": verdict.via.startswith(RESTORED),
    }


def _amended(verdict: Verdict) -> list[str]:
    if verdict.action != Action.APPROVE:
        return []
    amended: Collection[str] = verdict.after.get("amended", verdict.after)
    return sorted(amended)


def _edge(edge: Supersession) -> Record:
    return {
        "record": "edge",
        "old": str(edge.old_id),
        "new": str(edge.new_id),
        "kind": edge.kind,
        "holds_from": _moment(edge.holds_from),
        "verdict": str(edge.verdict_id),
        "voided_by": str(edge.voided_by_id) if edge.voided_by_id else None,
    }


def _moment(value: datetime | None) -> str | None:
    return value.isoformat() if value else None
