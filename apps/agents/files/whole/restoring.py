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
from typing import Any, Final, TypeVar
from uuid import uuid4

from django.core.exceptions import ValidationError
from django.db import DataError, IntegrityError, connection, transaction
from django.db.models import Model

from apps.accounts.audit import audit_record
from apps.accounts.models import ApiToken, Audience, Role, TokenKind, Workspace
from apps.accounts.principal import Principal
from apps.accounts.services import builtin_bot
from apps.agents.files.whole.claims import check_edge, check_memory, check_verdict
from apps.agents.files.whole.reading import Checked, Refused, Row, export_check, export_rows
from apps.candidates.models import Candidate, CandidateEvidence, CandidateStatus, Proposer
from apps.capture.models import CaptureEvent
from apps.core.clock import now
from apps.core.errors import FieldError
from apps.core.problems import constraint_of
from apps.core.screening import check_text
from apps.core.wording import RESTORED
from apps.memories.fingerprints import fingerprint
from apps.memories.lifecycle import numbers_take, pool_record
from apps.memories.models import (
    MAX_CONTENT,
    MAX_QUOTE,
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
from apps.taxonomy.services import check_category, check_description, check_type

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
_HIDES: Final = "audiences lacks the one that its source is restricted to."
_TWICE: Final = "is in this installation already, perhaps in another workspace, or twice in the file."
# What the constraints of the ledger mean for a line of a file.
_MEANT: Final = {
    "memories_memory_pkey": f"id {_TWICE}",
    "memories_verdict_pkey": f"verdicts: an id {_TWICE}",
    "memory_number_once": "number is that of another memory.",
    "memory_has_scope": "scope names neither the firm nor a domain nor a repository.",
    "candidate_has_scope": "scope names neither the firm nor a domain nor a repository.",
    "memory_inherits_audience": _HIDES,
    "candidate_inherits_audience": _HIDES,
    "memory_was_approved": "verdicts holds none that approved these words.",
    "source_once": "The source, by its kind, reference and commit, is in the file already.",
    "source_url_is_http": "url is no address of the web.",
    "source_one_audience": "audience is another one than that of the same source at another commit.",
    "domain_slug_once": "slug is that of another domain.",
    "repository_slug_once": "slug is that of another repository.",
    "audience_name_once": "name is that of another audience.",
    "memory_type_name_once": "name is that of another type.",
    "supersession_no_cycle": "old replaces new already, by one edge or by several.",
    "supersession_once_while_live": "The edge from old to new is in the file already.",
}
UNDONE: Final = "It came with an export, and its approval had been taken back before."

M = TypeVar("M", bound=Model)
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
        raise Refused(f"{_told(error)} Nothing was written.") from None
    return checked


def _told(error: Exception) -> str:
    """What PostgreSQL refused, without the values of the row that it puts into its own words."""
    name = constraint_of(error) if isinstance(error, IntegrityError) else ""
    if name in _MEANT:
        return _MEANT[name]
    if getattr(error.__cause__, "sqlstate", None) == "23505":
        return "Its name or id is in the file or in this installation already, perhaps in another workspace."
    return f"It is nothing that an export holds{f' ({name})' if name else ''}."


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
        tokens = ApiToken.objects.filter(workspace=principal.workspace).exclude(kind=TokenKind.REVIEWER)
        self._bots = frozenset(tokens.values_list("name", flat=True))
        self._at = now()
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
                _write(writers[record], rows)
        again = export_check(path)
        if again.digest != self._checked.digest:
            raise Refused("The file was changed while it was read. Nothing was written.")
        numbers_take(self._workspace.pk, self._checked.header.whole("last_number"))
        audit_record(
            self._principal,
            "import",
            subject_kind="workspace",
            subject_id=self._workspace.slug,
            after={
                "records": dict(self._checked.counts),
                "sha256": self._checked.digest,
                "loosened": self._checked.loosened,
            },
        )

    # --- what memories name ------------------------------------------------------------------------------------

    def _write_categories(self, rows: Sequence[Row]) -> None:
        for row in rows:
            values = {
                "half_life_days": row.days("half_life_days"),
                "ttl_days": row.days("ttl_days"),
                "weights": row.object("weights"),
            }
            _refuse_any(row, check_category(values))
            _fit(row, Category(slug=row.text("slug")), only=("slug",))
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
            if values["min_confidence"] is None:
                raise row.refuse("min_confidence is not a number from 0 to 1.")
            _refuse_any(row, check_type(self._workspace, values))
            _fit(row, MemoryType(slug=row.text("slug"), name=row.text("name")), only=("slug", "name"))
            self._loosened(row)
            self._types[row.text("slug")], _ = MemoryType.objects.update_or_create(
                workspace=self._workspace, slug=row.text("slug"), defaults=values
            )

    def _write_exclusions(self, rows: Sequence[Row]) -> None:
        for row in rows:
            _refuse_any(row, check_description(row.text("description")))
            _fit(row, Exclusion(slug=row.text("slug")), only=("slug",))
            self._loosened(row)
            Exclusion.objects.update_or_create(
                workspace=self._workspace,
                slug=row.text("slug"),
                defaults={"description": row.text("description"), "is_active": row.flag("is_active")},
            )

    def _write_domains(self, rows: Sequence[Row]) -> None:
        made = Domain.objects.bulk_create(
            _fit(row, Domain(workspace=self._workspace, slug=row.text("slug"), confirmed=row.flag("confirmed")))
            for row in rows
        )
        self._domains |= {domain.slug: domain.pk for domain in made}

    def _write_repositories(self, rows: Sequence[Row]) -> None:
        made = Repository.objects.bulk_create(self._repository(row) for row in rows)
        self._repos |= {repository.slug: repository.pk for repository in made}

    def _repository(self, row: Row) -> Repository:
        repository = Repository(
            workspace=self._workspace,
            slug=row.text("slug"),
            remote=row.text("remote"),
            aliases=row.texts("aliases"),
            domain_ids=self._ids(row, "domains", self._domains),
            confirmed=row.flag("confirmed"),
        )
        for name in (repository.slug, repository.remote, *repository.aliases):
            if name and (problems := check_text(name, field="", max_length=500, multiline=False)):
                raise row.refuse(f"slug, remote or aliases will not do. {problems[0].message}")
        return _fit(row, repository)

    def _write_audiences(self, rows: Sequence[Row]) -> None:
        made = Audience.objects.bulk_create(
            _fit(row, Audience(workspace=self._workspace, name=row.text("name"))) for row in rows
        )
        self._audiences |= {audience.name: audience.pk for audience in made}

    def _write_sources(self, rows: Sequence[Row]) -> None:
        made = Source.objects.bulk_create(self._source(row) for row in rows)
        self._sources |= {(source.kind, source.reference, source.commit): source.pk for source in made}

    def _source(self, row: Row) -> Source:
        source = Source(
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
        return _fit(row, source)

    def _loosened(self, row: Row) -> None:
        """Remember what lets through more than this version does by itself, for whoever brings the file in."""
        slug = row.text("slug")
        if row.record == "exclusion":
            if not row.flag("is_active"):
                self._checked.loosened.append(f"The exclusion {slug} is switched off.")
        elif not row.flag("always_human") and self._is_always_human(slug):
            self._checked.loosened.append(f"What is of type {slug} may be approved in bulk without opening it.")

    def _is_always_human(self, slug: str) -> bool:
        return MemoryType.objects.filter(workspace=self._workspace, slug=slug, always_human=True).exists()

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
        evidence = [self._evidence(each) for each in row.rows("evidence", _EVIDENCE)]
        if not evidence:
            raise row.refuse("evidence is empty. A memory has at least one source.")
        candidate = self._candidate(memory)
        verdicts = [self._verdict(each, candidate, memory) for each in row.rows("verdicts", _VERDICT)]
        approving = [each for each in verdicts if each.action == Action.APPROVE]
        if len(approving) != 1:
            raise row.refuse("verdicts must hold exactly one verdict that approved it.")
        memory.verdict = approving[0]
        check_memory(row, memory, sorted(verdicts, key=lambda each: each.created_at), at=self._at)
        candidate.created_at = approving[0].created_at
        return _Given(row, memory, candidate, verdicts, evidence)

    def _memory(self, row: Row) -> Memory:
        type_: MemoryType = self._named(row, "type", self._types)
        scope = self._scope(row.inner("scope", _SCOPE))
        content = row.text("content")
        number = row.whole("number")
        if not 0 < number <= self._checked.header.whole("last_number"):
            raise row.refuse("number is beyond the last one that the header names.")
        tier = self._one_of(row, "tier", Tier.values)
        if not 0 < len(content) <= MAX_CONTENT[tier]:
            raise row.refuse(f"content has {len(content):,} characters; of tier {tier} are 1 to {MAX_CONTENT[tier]:,}.")
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
            tier=tier,
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
            raise row.refuse(f"{row.at('action')}: {action} is no verdict on a {kind}.")
        second_person = self._workspace.second_person
        check_verdict(row, bots=self._bots, second_person=second_person, at=self._at)
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
            via=f"{RESTORED}{row.text('via')}",
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

    def _evidence(self, row: Row) -> tuple[int, str]:
        key = (row.text("kind"), row.text("reference"), row.optional("commit"))
        if key not in self._sources:
            raise row.refuse(f"{row.path.rstrip('.')} names a source that is not in the file.")
        quote = row.text("quote")
        if len(quote) > MAX_QUOTE:
            raise row.refuse(f"{row.at('quote')} has {len(quote):,} characters; {MAX_QUOTE} are the most.")
        return self._sources[key], quote

    # --- edges -------------------------------------------------------------------------------------------------

    def _write_edges(self, rows: Sequence[Row]) -> None:
        # One by one, in the order in which they were made: each is looked at for a circle through those before it.
        edges = [self._edge(row) for row in rows]
        named = {pk for edge in edges for pk in (edge.old_id, edge.new_id)}
        memories = Memory.objects.of(self._workspace).select_related("verdict").in_bulk(named)
        by = {pk for edge in edges for pk in (edge.verdict_id, edge.voided_by_id) if pk is not None}
        verdicts = Verdict.objects.filter(workspace=self._workspace).in_bulk(by)
        for row, edge in zip(rows, edges, strict=True):
            check_edge(row, edge, memories, verdicts)
        Supersession.objects.bulk_create(edges)

    def _edge(self, row: Row) -> Supersession:
        return Supersession(
            workspace=self._workspace,
            old_id=row.uuid("old"),
            new_id=row.uuid("new"),
            kind=self._one_of(row, "kind", EdgeKind.values),
            holds_from=row.moment("holds_from"),
            verdict_id=row.uuid("verdict"),
            voided_by_id=row.optional_uuid("voided_by"),
        )

    # --- names -------------------------------------------------------------------------------------------------

    @staticmethod
    def _named(row: Row, name: str, known: dict[str, Any]) -> Any:
        value = row.text(name)
        if value not in known:
            raise row.refuse(f"{row.at(name)} names a {name} that is not in the file.")
        return known[value]

    @staticmethod
    def _ids(row: Row, name: str, known: dict[str, int]) -> list[int]:
        values = row.texts(name)
        if not set(values) <= set(known):
            raise row.refuse(f"{row.at(name)} names {name} that are not in the file.")
        return [known[value] for value in values]

    @staticmethod
    def _one_of(row: Row, name: str, known: Sequence[str]) -> str:
        value = row.text(name)
        if value not in known:
            raise row.refuse(f"{row.at(name)} is none of {', '.join(known)}.")
        return value


def _write(writer: Callable[[Sequence[Row]], None], rows: Sequence[Row]) -> None:
    """Write a batch. Where PostgreSQL refuses it, go through it one by one, to say which line it was."""
    try:
        _write_checked(writer, rows)
    except (IntegrityError, DataError):
        for row in rows:
            try:
                _write_checked(writer, [row])
            except (IntegrityError, DataError) as error:
                raise row.refuse(_told(error)) from None
        raise


def _write_checked(writer: Callable[[Sequence[Row]], None], rows: Sequence[Row]) -> None:
    """Also what PostgreSQL looks at when a transaction ends, while it can still be said what was refused."""
    with transaction.atomic():
        writer(rows)
        connection.check_constraints()


def _refuse_any(row: Row, errors: Sequence[FieldError]) -> None:
    if errors:
        raise row.refuse(f"{errors[0].field}: {errors[0].message}")


def _fit(row: Row, instance: M, *, only: Sequence[str] = ()) -> M:
    """``instance``, whose texts and numbers are within what its columns hold; raises ``Refused`` naming the first."""
    fields = [field.name for field in instance._meta.fields]
    left_out = {name for name in fields if only and name not in only}
    relations = {field.name for field in instance._meta.fields if field.is_relation}
    try:
        instance.clean_fields(exclude=left_out | relations | {"created_at"})
    except ValidationError as error:
        name, messages = next(iter(error.message_dict.items()))
        raise row.refuse(f"{name}: {messages[0]}") from None
    return instance


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
