"""An export brought into an empty workspace, through the gate that everything goes through.

Each memory gets a candidate of a built-in bot and the verdict that approved it, with the reviewer's name as text. The
person who answers for the import is its reviewer to PostgreSQL, and its door says that it was brought in. One
transaction writes all of the ledger; the pool is made from it afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from django.db import DataError, IntegrityError, connection, transaction

from apps.accounts.audit import audit_record
from apps.accounts.models import Audience, Role, Workspace
from apps.accounts.principal import Principal
from apps.accounts.services import builtin_bot
from apps.agents.files.whole.reading import Checked, Refused, Row, export_check, export_rows
from apps.candidates.models import Candidate, CandidateEvidence, CandidateStatus, Proposer
from apps.capture.models import CaptureEvent
from apps.core.problems import as_domain_error
from apps.core.wording import RESTORED
from apps.memories.fingerprints import fingerprint
from apps.memories.lifecycle import numbers_take, pool_record
from apps.memories.models import (
    Action,
    EdgeKind,
    Memory,
    MemoryEvidence,
    MemoryStatus,
    SubjectKind,
    Supersession,
    Tier,
    Verdict,
)
from apps.memories.providers.registry import get_provider
from apps.scopes.models import Domain, Repository
from apps.scopes.scope import Scope
from apps.sources.models import Source, SourceKind
from apps.taxonomy.models import Category, Exclusion, MemoryType

RESTORER: Final = "restorer"
AT_ONCE: Final = 200
EMBEDDED_AT_ONCE: Final = 64
_SCOPE: Final = frozenset({"firm", "domains", "repos"})
_EVIDENCE: Final = frozenset({"kind", "reference", "commit", "quote"})
_VERDICT: Final = frozenset(
    {
        *("id", "on", "action", "reviewer", "reason", "amended", "before", "after", "via"),
        *("second_person", "batch", "at", "restored"),
    }
)
_BY_PEOPLE: Final = (Action.APPROVE, Action.REOPEN, Action.RETIRE, Action.RESTORE, Action.SUPERSEDE, Action.REDACT)
UNDONE: Final = "It came with an export, and its approval had been taken back before."

Progress = Callable[[int, int], None]
SourceKey = tuple[str, str, str | None]


def export_restore(principal: Principal, path: Path, *, progress: Progress) -> Checked:
    """Write all that is in ``path`` into the workspace of ``principal``, who answers for it.

    Raises ``Refused``, before or after anything was written and with nothing left of it, where the file or the
    workspace will not do. The pool lacks everything until ``pool_fill`` has run.
    """
    principal.require_role(Role.REVIEWER, to="answer for an export that is brought in")
    checked = export_check(path)
    try:
        with transaction.atomic():
            _require_empty(principal.workspace)
            _Restore(principal, checked, progress).run(path)
    except (IntegrityError, DataError) as error:
        raise Refused(f"PostgreSQL refused it, and nothing was written. {_told(error)}") from error
    return checked


def _told(error: Exception) -> str:
    cause = error.__cause__
    if getattr(cause, "sqlstate", None) == "23505":
        return "Some of it is in this installation already, perhaps in another workspace."
    domain = as_domain_error(error) if isinstance(error, IntegrityError) else None
    return domain.detail if domain else "A value is not one that the export of a firm memory holds."


def _require_empty(workspace: Workspace) -> None:
    Workspace.objects.select_for_update(no_key=True).get(pk=workspace.pk)
    models: tuple[Any, ...] = (Memory, Candidate, Verdict, Source, CaptureEvent, Domain, Repository, Audience)
    there = [str(model._meta.verbose_name_plural) for model in models if model.objects.filter(workspace=workspace)[:1]]
    if there:
        raise Refused(
            f"The workspace {workspace.slug} is not empty: it holds {', '.join(there)}. Make a new one with "
            "`manage.py workspace add`."
        )


def pool_fill(workspace: Workspace, *, progress: Progress) -> int:
    """Embed what was brought in, a few at a time. Raises ``ProviderError``; `pool audit --repair` goes on then."""
    provider = get_provider()
    rows = Memory.objects.of(workspace).select_related("type").order_by("number")
    total, done, last = rows.count(), 0, 0
    while memories := list(rows.filter(number__gt=last)[:EMBEDDED_AT_ONCE]):
        prepared = provider.prepare_many([memory.content for memory in memories])
        provider.insert_many([(pool_record(memory), made) for memory, made in zip(memories, prepared, strict=True)])
        done, last = done + len(memories), memories[-1].number
        progress(done, total)
    return done


@dataclass(frozen=True, slots=True)
class _Given:
    """A memory of the file with everything that is written for it."""

    row: Row
    memory: Memory
    candidate: Candidate
    verdicts: list[Verdict]
    evidence: list[tuple[int, str]]

    @property
    def stands(self) -> bool:
        return all(verdict.action != Action.REOPEN for verdict in self.verdicts)


class _Restore:
    def __init__(self, principal: Principal, checked: Checked, progress: Progress) -> None:
        self._principal, self._workspace = principal, principal.workspace
        self._checked, self._progress = checked, progress
        self._bot = builtin_bot(principal.workspace, RESTORER)
        self._request_id = uuid4().hex
        self._categories: dict[str, Category] = {}
        self._types: dict[str, MemoryType] = {}
        self._domains: dict[str, int] = {}
        self._repos: dict[str, int] = {}
        self._audiences: dict[str, int] = {}
        self._sources: dict[SourceKey, int] = {}
        self._done = 0

    def run(self, path: Path) -> None:
        writers: dict[str, Callable[[Sequence[Row]], None]] = {
            "category": self._write_categories,
            "type": self._write_types,
            "exclusion": self._write_exclusions,
            "domain": self._write_domains,
            "repository": self._write_repositories,
            "audience": self._write_audiences,
            "source": self._write_sources,
            "memory": self._write_memories,
            "edge": self._write_edges,
        }
        for record, rows in _batches(export_rows(path)):
            if record in writers:
                writers[record](rows)
        again = export_check(path)
        if again.digest != self._checked.digest:
            raise Refused("The file was changed while it was read. Nothing was written.")
        # What PostgreSQL looks at when a transaction ends, while it can still be said what was refused.
        connection.check_constraints()
        numbers_take(self._workspace.pk, self._checked.header.whole("last_number"))
        audit_record(
            self._principal,
            "import",
            subject_kind="workspace",
            subject_id=self._workspace.slug,
            after={"records": dict(self._checked.counts), "sha256": self._checked.digest},
        )

    # --- what memories name ------------------------------------------------------------------------------------

    def _write_categories(self, rows: Sequence[Row]) -> None:
        for row in rows:
            values = {
                "half_life_days": row.days("half_life_days"),
                "ttl_days": row.days("ttl_days"),
                "weights": row.object("weights"),
            }
            self._categories[row.text("slug")], _ = Category.objects.update_or_create(
                workspace=self._workspace, slug=row.text("slug"), defaults=values
            )

    def _write_types(self, rows: Sequence[Row]) -> None:
        for row in rows:
            values = {
                "name": row.text("name"),
                "description": row.text("description"),
                "category": self._named(row, "category", self._categories),
                "always_human": row.flag("always_human"),
                "min_confidence": row.share("min_confidence"),
                "is_active": row.flag("is_active"),
            }
            self._types[row.text("slug")], _ = MemoryType.objects.update_or_create(
                workspace=self._workspace, slug=row.text("slug"), defaults=values
            )

    def _write_exclusions(self, rows: Sequence[Row]) -> None:
        for row in rows:
            Exclusion.objects.update_or_create(
                workspace=self._workspace,
                slug=row.text("slug"),
                defaults={"description": row.text("description"), "is_active": row.flag("is_active")},
            )

    def _write_domains(self, rows: Sequence[Row]) -> None:
        made = Domain.objects.bulk_create(
            Domain(workspace=self._workspace, slug=row.text("slug"), confirmed=row.flag("confirmed")) for row in rows
        )
        self._domains |= {domain.slug: domain.pk for domain in made}

    def _write_repositories(self, rows: Sequence[Row]) -> None:
        made = Repository.objects.bulk_create(
            Repository(
                workspace=self._workspace,
                slug=row.text("slug"),
                remote=row.text("remote"),
                aliases=row.texts("aliases"),
                domain_ids=self._ids(row, "domains", self._domains),
                confirmed=row.flag("confirmed"),
            )
            for row in rows
        )
        self._repos |= {repository.slug: repository.pk for repository in made}

    def _write_audiences(self, rows: Sequence[Row]) -> None:
        made = Audience.objects.bulk_create(Audience(workspace=self._workspace, name=row.text("name")) for row in rows)
        self._audiences |= {audience.name: audience.pk for audience in made}

    def _write_sources(self, rows: Sequence[Row]) -> None:
        made = Source.objects.bulk_create(
            Source(
                workspace=self._workspace,
                kind=self._one_of(row, "kind", SourceKind.values),
                reference=row.text("reference"),
                commit=row.optional("commit"),
                url=row.text("url"),
                title=row.text("title"),
                occurred_at=row.optional_moment("occurred_at"),
                audience_id=None if row.optional("audience") is None else self._named(row, "audience", self._audiences),
                created_at=row.moment("recorded_at"),
            )
            for row in rows
        )
        self._sources |= {(source.kind, source.reference, source.commit): source.pk for source in made}

    # --- memories ----------------------------------------------------------------------------------------------

    def _write_memories(self, rows: Sequence[Row]) -> None:
        left = [self._given(row) for row in rows]
        while left:
            # Of one statement only one candidate may be open, so those that say the same go one after the other.
            wave: list[_Given] = []
            later: list[_Given] = []
            seen: set[str] = set()
            for given in left:
                (later if given.candidate.fingerprint in seen else wave).append(given)
                seen.add(given.candidate.fingerprint)
            self._write_wave(wave)
            left = later
        self._done += len(rows)
        self._progress(self._done, self._checked.counts["memory"])

    def _write_wave(self, wave: Sequence[_Given]) -> None:
        candidates = [given.candidate for given in wave]
        Candidate.objects.bulk_create(candidates)
        CandidateEvidence.objects.bulk_create(
            CandidateEvidence(candidate=given.candidate, source_id=pk, workspace=self._workspace, quote=quote)
            for given in wave
            for pk, quote in dict(given.evidence).items()
        )
        Proposer.objects.bulk_create(
            Proposer(candidate=candidate, workspace=self._workspace, token=self._bot, name=RESTORER)
            for candidate in candidates
        )
        on_candidates = [row for given in wave for row in given.verdicts if row.subject_kind == SubjectKind.CANDIDATE]
        Verdict.objects.bulk_create(on_candidates)
        for given in wave:
            candidate = given.candidate
            candidate.version = 2
            if given.stands:
                candidate.status, candidate.decision = CandidateStatus.APPROVED, given.memory.verdict
            else:
                candidate.status, candidate.status_reason = CandidateStatus.WITHDRAWN, UNDONE
        Candidate.objects.bulk_update(candidates, ["status", "status_reason", "decision", "version"])
        Memory.objects.bulk_create(given.memory for given in wave)
        MemoryEvidence.objects.bulk_create(
            MemoryEvidence(memory=given.memory, source_id=pk, workspace=self._workspace, quote=quote)
            for given in wave
            for pk, quote in given.evidence
        )
        Verdict.objects.bulk_create(
            row for given in wave for row in given.verdicts if row.subject_kind == SubjectKind.MEMORY
        )

    def _given(self, row: Row) -> _Given:
        memory = self._memory(row)
        evidence = [(self._source_of(each), each.text("quote")) for each in row.rows("evidence", _EVIDENCE)]
        candidate = self._candidate(memory)
        verdicts = [self._verdict(each, candidate, memory) for each in row.rows("verdicts", _VERDICT)]
        approving = [each for each in verdicts if each.action == Action.APPROVE]
        if len(approving) != 1:
            raise row.refuse("A memory has exactly one verdict that approved it.")
        memory.verdict = approving[0]
        candidate.created_at = approving[0].created_at
        return _Given(row, memory, candidate, verdicts, evidence)

    def _memory(self, row: Row) -> Memory:
        type_: MemoryType = self._named(row, "type", self._types)
        scope = self._scope(row.inner("scope", _SCOPE))
        content = row.text("content")
        number = row.whole("number")
        if not 0 < number <= self._checked.header.whole("last_number"):
            raise row.refuse("number is beyond the last one that the header names.")
        return Memory(
            id=row.uuid("id"),
            workspace=self._workspace,
            number=number,
            content=content,
            type=type_,
            firm=scope.firm,
            domain_ids=list(scope.domain_ids),
            repo_ids=list(scope.repo_ids),
            audience_ids=sorted(self._ids(row, "audiences", self._audiences)),
            tier=self._one_of(row, "tier", Tier.values),
            status=self._one_of(row, "status", MemoryStatus.values),
            confidence=row.share("confidence"),
            valid_from=row.optional_moment("valid_from"),
            valid_to=row.optional_moment("valid_to"),
            closed_at=row.optional_moment("closed_at"),
            recorded_at=row.moment("recorded_at"),
            retired_at=row.optional_moment("retired_at"),
            fingerprint=fingerprint(content, type_id=type_.pk, scope=scope),
        )

    def _candidate(self, memory: Memory) -> Candidate:
        return Candidate(
            id=uuid4(),
            workspace=self._workspace,
            content=memory.content,
            type=memory.type,
            firm=memory.firm,
            domain_ids=memory.domain_ids,
            repo_ids=memory.repo_ids,
            audience_ids=memory.audience_ids,
            tier=memory.tier,
            confidence=memory.confidence,
            valid_from=memory.valid_from,
            status=CandidateStatus.PENDING,
            fingerprint=memory.fingerprint,
            origin_token=self._bot,
            origin_name=RESTORER,
        )

    def _verdict(self, row: Row, candidate: Candidate, memory: Memory) -> Verdict:
        kind = SubjectKind(self._one_of(row, "on", SubjectKind.values))
        action = Action(self._one_of(row, "action", [each.value for each in _BY_PEOPLE]))
        if (kind is SubjectKind.CANDIDATE) != (action in (Action.APPROVE, Action.REOPEN)):
            raise row.refuse(f"{action} is no verdict on a {kind}.")
        amended = row.texts("amended")
        return Verdict(
            id=row.uuid("id"),
            workspace=self._workspace,
            subject_kind=kind,
            subject_id=candidate.pk if kind is SubjectKind.CANDIDATE else memory.pk,
            action=action,
            # To PostgreSQL whoever answers for the import decided; who did so then is kept as text.
            reviewer=self._principal.user,
            reviewer_name=row.text("reviewer"),
            reason=row.text("reason"),
            before=row.object("before"),
            after={"amended": amended} if amended else row.object("after"),
            via=f"{RESTORED}{row.text('via')}"[:20],
            second_person=row.flag("second_person"),
            request_id=self._request_id,
            batch_id=row.optional_uuid("batch"),
            created_at=row.moment("at"),
        )

    def _scope(self, row: Row) -> Scope:
        return Scope(
            row.flag("firm"),
            tuple(sorted(self._ids(row, "domains", self._domains))),
            tuple(sorted(self._ids(row, "repos", self._repos))),
        )

    def _source_of(self, row: Row) -> int:
        key = (row.text("kind"), row.text("reference"), row.optional("commit"))
        if key not in self._sources:
            raise row.refuse("It names a source that is not in the file.")
        return self._sources[key]

    # --- edges -------------------------------------------------------------------------------------------------

    def _write_edges(self, rows: Sequence[Row]) -> None:
        # One by one, in the order in which they were made: each is looked at for a circle through those before it.
        Supersession.objects.bulk_create(
            Supersession(
                workspace=self._workspace,
                old_id=row.uuid("old"),
                new_id=row.uuid("new"),
                kind=self._one_of(row, "kind", EdgeKind.values),
                holds_from=row.moment("holds_from"),
                verdict_id=row.uuid("verdict"),
                voided_by_id=row.optional_uuid("voided_by"),
            )
            for row in rows
        )

    # --- names -------------------------------------------------------------------------------------------------

    @staticmethod
    def _named(row: Row, name: str, known: dict[str, Any]) -> Any:
        value = row.text(name)
        if value not in known:
            raise row.refuse(f"It names a {name} that is not in the file.")
        return known[value]

    @staticmethod
    def _ids(row: Row, name: str, known: dict[str, int]) -> list[int]:
        values = row.texts(name)
        if not set(values) <= set(known):
            raise row.refuse(f"It names {name} that are not in the file.")
        return [known[value] for value in values]

    @staticmethod
    def _one_of(row: Row, name: str, known: Sequence[str]) -> str:
        value = row.text(name)
        if value not in known:
            raise row.refuse(f"{name} is none of {', '.join(known)}.")
        return value


def _batches(rows: Iterator[Row]) -> Iterator[tuple[str, list[Row]]]:
    """Runs of records of one kind, a few hundred at a time."""
    for record, run in groupby(rows, key=lambda row: row.record):
        batch: list[Row] = []
        for row in run:
            batch.append(row)
            if len(batch) == AT_ONCE:
                yield record, batch
                batch = []
        if batch:
            yield record, batch
