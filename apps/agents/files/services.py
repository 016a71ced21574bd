"""Files that agents read become candidates, each statement by the same gate as any other proposal.

What came from a place before is not proposed again, whatever was decided about it; what reads otherwise now is proposed
as its replacement; what is gone is reported and nothing more. A second run takes up what a first one had no room for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from typing import Any, Final

from django.db import transaction

from apps.accounts.principal import Principal
from apps.agents.files.decisions import Decision, decision_read
from apps.agents.files.formats import Format, check_path, folder_of, format_of, reference_of
from apps.agents.files.known import WORDS_OF_A_STATEMENT, Known, KnownFiles, key_of, known_of
from apps.agents.files.reading import Found, Reading, Skipped, file_read
from apps.agents.files.typing_rules import Types
from apps.candidates.models import Candidate, CandidateStatus
from apps.candidates.proposal import Proposal, ScopeInput
from apps.candidates.revisions import candidate_withdraw
from apps.candidates.services import Proposed, candidate_propose
from apps.core.errors import Conflict, DomainError, Excluded, FieldError, Forbidden, Invalid, TooMany
from apps.core.screening import SOURCE_CODE, check_text, screen
from apps.memories.models import IN_FORCE, Tier
from apps.scopes.selectors import find_repository
from apps.scopes.services import check_names, slug_of
from apps.sources.models import SourceKind
from apps.sources.services import MAX_QUOTE, MAX_SOURCES, SourceInput

MAX_FILES: Final = 100
MAX_FILE: Final = 512 * 1024
MAX_ALL: Final = 4 * 1024 * 1024
MAX_STATEMENTS: Final = 2_000
MAX_COMMIT: Final = 64
_NOTES: Final = 50
# How much of its words a bullet must keep to be the same one reworded: under its heading, and elsewhere in the file.
_ALIKE_HERE: Final = 0.55
_ALIKE_ELSEWHERE: Final = 0.8
_MAX_PAIRS: Final = 20_000
# To compare two texts takes as long as the product of their lengths; of long ones fewer are compared.
_MAX_COMPARED: Final = 200_000_000

UNKNOWN_FORMAT: Final = (
    "It is no file that agents read: AGENTS.md, CLAUDE.md, .cursorrules, *.mdc, copilot-instructions.md, "
    "*.instructions.md, or a numbered decision record in a folder such as docs/adr."
)
BEYOND: Final = f"Not taken: one import takes {MAX_STATEMENTS:,} statements. Import this file by itself."

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class FileInput:
    """A file as it stands in the repository: its path from the root, with slashes, and its text."""

    path: str
    content: str


@dataclass(slots=True)
class FileReport:
    path: str
    format: Format
    statements: int = 0
    new: int = 0
    joined: int = 0
    unchanged: int = 0
    changed: int = 0
    gone: int = 0
    skipped: list[Skipped] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        counts = {name: getattr(self, name) for name in ("statements", "new", "joined", "unchanged", "changed", "gone")}
        skipped = [{"line": skipped.line, "reason": skipped.reason} for skipped in self.skipped]
        return {"path": self.path, "format": self.format.value, **counts, "skipped": skipped}


@dataclass(frozen=True, slots=True)
class Taken:
    """The candidate that a statement at a place is. ``id`` is none for one that a dry run only would have made."""

    id: str | None
    status: str
    path: str
    heading: str
    line: int

    def as_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("id", "status", "path", "heading", "line")}


@dataclass(slots=True)
class Imported:
    """``refused`` counts the statements that will not do, ``not_taken`` those that there was no room for."""

    repo: str
    files: list[FileReport] = field(default_factory=list)
    candidates: list[Taken] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    refused: int = 0
    not_taken: int = 0

    def as_dict(self) -> dict[str, Any]:
        return {
            "files": [report.as_dict() for report in self.files],
            "candidates": [taken.as_dict() for taken in self.candidates],
            "refused": self.refused,
            "not_taken": self.not_taken,
            "notes": self.notes,
        }


@dataclass(slots=True)
class _Place:
    """One statement in one file."""

    report: FileReport
    found: Found
    is_decision: bool = False
    known: Known | None = None
    before: Known | None = None

    @property
    def key(self) -> str:
        """By what it says alone, so that other headings in another file make no second statement of it."""
        body = key_of(self.found.body)
        return body if len(body.split()) >= WORDS_OF_A_STATEMENT else key_of(self.found.content)


@dataclass(slots=True)
class _Unit:
    """One statement, with every place in which it stands."""

    places: list[_Place]
    decision: Decision | None = None

    @property
    def first(self) -> Found:
        return self.places[0].found


def files_import(
    *,
    principal: Principal,
    repo: str,
    files: Sequence[FileInput],
    commit: str | None = None,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Imported:
    """Propose what the files of a repository state, in the name of ``principal``.

    Raises ``Invalid`` naming each value that will not do, and ``Forbidden`` outside the token's limits. What screening
    refuses, and what the queue has no room for, costs none of the others: it stands among what was skipped. A dry run
    does the same and takes all of it back.
    """
    principal.require_write()
    _check(repo, files, commit)
    slug = slug_of(principal.workspace, repo)
    _require_within(principal, repo)
    if not dry_run:
        return _Import(principal, repo, slug, commit, progress).run(files)
    with transaction.atomic():
        imported = _Import(principal, repo, slug, commit, progress, look=False).run(files)
        transaction.set_rollback(True)
    kept = {
        str(pk) for pk in Candidate.objects.filter(pk__in=filter(None, _ids(imported))).values_list("pk", flat=True)
    }
    imported.candidates = [taken if taken.id in kept else replace(taken, id=None) for taken in imported.candidates]
    imported.notes.append("This was a dry run: nothing was written.")
    return imported


def _ids(imported: Imported) -> Iterable[str | None]:
    return (taken.id for taken in imported.candidates)


def _check(repo: str, files: Sequence[FileInput], commit: str | None) -> None:
    errors = [FieldError("repo", error.message) for error in check_names("repo", [repo])]
    errors += screen({"repo": repo}, exclusions=()).refusals
    if commit is not None:
        errors += check_text(commit, field="commit", max_length=MAX_COMMIT, multiline=False)
        errors += screen({"commit": commit}, exclusions=()).refusals
    if not 0 < len(files) <= MAX_FILES:
        errors.append(FieldError("files", f"Send 1 to {MAX_FILES} files at once; there are {len(files)}."))
    seen: set[str] = set()
    for at, file in enumerate(files[:MAX_FILES]):
        errors += check_path(file.path, field=f"files[{at}].path")
        errors += screen({f"files[{at}].path": file.path}, exclusions=()).refusals
        if file.path in seen:
            errors.append(FieldError(f"files[{at}].path", "Another file of this import has the same path."))
        seen.add(file.path)
        if len(file.content) > MAX_FILE:
            said = f"Send at most {MAX_FILE:,} characters; there are {len(file.content):,}."
            errors.append(FieldError(f"files[{at}].content", said))
    total = sum(len(file.content) for file in files)
    if total > MAX_ALL:
        errors.append(FieldError("files", f"Send at most {MAX_ALL:,} characters in all; there are {total:,}."))
    if errors:
        raise Invalid("The files cannot be imported like that.", errors=errors)


def _require_within(principal: Principal, repo: str) -> None:
    limit = principal.repository_limit
    if not limit:
        return
    found = find_repository(principal.workspace, repo.strip())
    if found is None or found.pk not in limit:
        raise Forbidden("This token is limited to some repositories; this one is not among them.")


class _Import:
    def __init__(
        self,
        principal: Principal,
        repo: str,
        slug: str,
        commit: str | None,
        progress: Progress | None,
        *,
        look: bool = True,
    ) -> None:
        self._principal, self._repo, self._commit, self._progress = principal, repo, commit, progress
        self._look = look
        self._slug = slug
        self._types = Types(principal.workspace)
        self._known: KnownFiles = known_of(principal, slug)
        self._imported = Imported(slug)
        self._full = ""

    def run(self, files: Sequence[FileInput]) -> Imported:
        units = self._read(files)
        for path in dict.fromkeys(place.report.path for unit in units for place in unit.places):
            self._recognise(path, [place for unit in units for place in unit.places if place.report.path == path])
        for report in self._imported.files:
            if not report.statements:
                self._recognise(report.path, [])
        for done, unit in enumerate(units, start=1):
            _spread(unit)
            self._take(unit)
            if self._progress:
                self._progress(done, len(units))
        self._tell()
        return self._imported

    # --- reading -----------------------------------------------------------------------------------------------

    def _read(self, files: Iterable[FileInput]) -> list[_Unit]:
        units: dict[str, _Unit] = {}
        room = MAX_STATEMENTS
        for file in files:
            report = FileReport(file.path, format_of(file.path))
            self._imported.files.append(report)
            for key, unit in self._units_of(file, report):
                report.statements += 1
                if room <= 0:
                    self._leave(unit.places[0], BEYOND)
                    continue
                room -= 1
                if key in units:
                    units[key].places += unit.places
                else:
                    units[key] = unit
        return list(units.values())

    def _units_of(self, file: FileInput, report: FileReport) -> Iterable[tuple[str, _Unit]]:
        if report.format is Format.UNKNOWN:
            report.skipped.append(Skipped(1, UNKNOWN_FORMAT))
        elif report.format is Format.DECISION:
            decision = decision_read(file.content)
            report.skipped += decision.skipped
            if decision.content:
                found = Found(1, "", decision.content, decision.content, decision.title, is_bullet=False)
                yield f"decision {file.path}", _Unit([_Place(report, found, is_decision=True)], decision)
        else:
            reading: Reading = file_read(file.path, file.content)
            report.skipped += reading.skipped
            for found in reading.found:
                place = _Place(report, found)
                # What holds in one folder alone is no second place of what holds in another.
                yield f"{folder_of(file.path)}\0{place.key}", _Unit([place])

    # --- what is known -----------------------------------------------------------------------------------------

    def _recognise(self, path: str, places: list[_Place]) -> None:
        """Which statements of a file came from it before, which are reworded, and what of before is gone."""
        left = list(self._known.by_path.get(path, ()))
        if left:
            for key in (_key_with_code, _key_of_content, _key_of_own):
                left = _matched(places, left, key)
            left = [known for known in left if known.holds]
            for place, known in _reworded([place for place in places if place.known is None], left):
                place.before = known
                left.remove(known)
        report = next(report for report in self._imported.files if report.path == path)
        report.gone = len(left)
        for known in left:
            if known.memory is not None:
                self._note(f"{known.memory.label} came from {path} and no longer stands there. Nothing was retired.")

    # --- proposing ---------------------------------------------------------------------------------------------

    def _take(self, unit: _Unit) -> None:
        fresh: list[_Place] = []
        for place in unit.places:
            if place.known is None:
                fresh.append(place)
            else:
                place.report.unchanged += 1
                self._took(place, place.known.candidate, place.known.candidate.status)
        if not fresh:
            return
        if self._full:
            for place in fresh:
                self._leave(place, self._full)
            return
        try:
            with transaction.atomic():
                proposed = self._propose(unit, fresh)
        except TooMany as refusal:
            self._full = f"Not taken: {refusal.detail[:1].lower()}{refusal.detail[1:]} Then import the files again."
            for place in fresh:
                self._leave(place, self._full)
        except (Invalid, Conflict) as refusal:
            for place in fresh:
                self._refuse(place, refusal)
        else:
            self._account(fresh, proposed)

    def _propose(self, unit: _Unit, fresh: list[_Place]) -> Proposed:
        """With the code in it, where it has some and screening lets it, else without."""
        self._withdraw_reworded(fresh)
        try:
            with transaction.atomic():
                return self._proposed(unit, fresh, _with_code(unit.first))
        except Excluded as refusal:
            if not unit.first.code or refusal.extra.get("exclusions") != [SOURCE_CODE]:
                raise
        return self._proposed(unit, fresh, unit.first.content)

    def _proposed(self, unit: _Unit, fresh: list[_Place], content: str) -> Proposed:
        known = self._same_elsewhere(unit, fresh)
        decision = unit.decision
        if known is not None:
            content, type_ = known.candidate.content, known.candidate.type.slug
        elif decision is not None:
            type_ = self._types.of_decision(is_turned_down=decision.is_turned_down)
        else:
            type_ = self._types.of(unit.first)
        return candidate_propose(
            principal=self._principal,
            look=self._look,
            proposal=Proposal(
                content=content,
                type=type_,
                scope=ScopeInput(repos=(self._repo,)),
                sources=tuple(self._source(place) for place in fresh[:MAX_SOURCES]),
                supersedes=() if known else self._replaced(unit, fresh),
                valid_from=decision.held_from if decision else None,
                tier=decision.tier if decision else Tier.DURABLE,
            ),
        )

    def _same_elsewhere(self, unit: _Unit, fresh: list[_Place]) -> Known | None:
        """The candidate that the same words became when another file brought them, with the words it has there."""
        if unit.decision is not None or any(place.before for place in fresh):
            return None
        at_hand = [place.known for place in unit.places if place.known is not None]
        known = at_hand[0] if at_hand else self._known.by_key.get(unit.places[0].key)
        if known is None or known.candidate.repo_ids == [] or not self._in_same_folder(known, fresh[0]):
            return None
        return known

    def _in_same_folder(self, known: Known, place: _Place) -> bool:
        paths = [path for path, rows in self._known.by_path.items() if known in rows]
        return any(folder_of(path) == folder_of(place.report.path) for path in paths)

    def _source(self, place: _Place) -> SourceInput:
        path, found = place.report.path, place.found
        return SourceInput(
            kind=SourceKind.DOCUMENT if place.is_decision else SourceKind.RULES_FILE,
            reference=reference_of(self._slug, path, found.heading),
            title=found.own[:200] if place.is_decision else f"{path}: {found.heading}" if found.heading else path,
            commit=self._commit,
            quote=found.own[:MAX_QUOTE],
        )

    def _replaced(self, unit: _Unit, fresh: list[_Place]) -> tuple[str, ...]:
        olds = [place.before.memory for place in fresh if place.before is not None]
        labels = [memory.label for memory in olds if memory is not None and memory.status in IN_FORCE]
        if unit.decision is not None:
            labels += self._records_named(unit.decision, fresh[0].report.path)
        return tuple(dict.fromkeys(labels))

    def _records_named(self, decision: Decision, path: str) -> list[str]:
        """Records of the same folder by the numbers that this one says it replaces, as far as they are known."""
        labels = []
        folder = path.rpartition("/")[0]
        for number in decision.replaces:
            there = [
                known
                for other, rows in self._known.by_path.items()
                if other != path and other.rpartition("/")[0] == folder and _number_of(other) == number
                for known in rows
            ]
            memory = next((known.memory for known in there if known.memory and known.memory.status in IN_FORCE), None)
            if memory is not None:
                labels.append(memory.label)
            else:
                self._note(
                    f"{path} says that it replaces {number}, of which no memory is in force. "
                    "A reviewer may name it at the approval."
                )
        return labels

    def _withdraw_reworded(self, fresh: list[_Place]) -> None:
        """What this principal alone proposed in other words, and nobody has decided about, makes room for the new."""
        for place in fresh:
            known = place.before
            if known is None or not known.is_open:
                continue
            candidate = Candidate.objects.get(pk=known.candidate.pk)
            if not candidate.is_open or not self._is_mine_alone(candidate):
                self._note(f"{place.report.path}, line {place.found.line}: its earlier wording still waits as well.")
                continue
            candidate_withdraw(principal=self._principal, candidate_id=candidate.pk, version=candidate.version)

    def _is_mine_alone(self, candidate: Candidate) -> bool:
        proposers = list(candidate.proposers.all())
        me = (getattr(self._principal.token, "pk", None), getattr(self._principal.user, "pk", None))
        return [(row.token_id, row.user_id) for row in proposers] == [me]

    # --- accounting --------------------------------------------------------------------------------------------

    def _account(self, fresh: list[_Place], proposed: Proposed) -> None:
        if proposed.status == CandidateStatus.REJECTED:
            for place in fresh:
                place.report.skipped.append(Skipped(place.found.line, proposed.reason))
                self._took(place, proposed.candidate, proposed.status)
            return
        for at, place in enumerate(fresh):
            if place.before is not None:
                place.report.changed += 1
            elif proposed.created and at == 0:
                place.report.new += 1
            else:
                place.report.joined += 1
            self._took(place, proposed.candidate, proposed.status)

    def _took(self, place: _Place, candidate: Candidate, status: str) -> None:
        taken = Taken(str(candidate.pk), str(status), place.report.path, place.found.heading, place.found.line)
        self._imported.candidates.append(taken)

    def _leave(self, place: _Place, reason: str) -> None:
        self._imported.not_taken += 1
        place.report.skipped.append(Skipped(place.found.line, reason))

    def _refuse(self, place: _Place, refusal: DomainError) -> None:
        self._imported.refused += 1
        said = " ".join(dict.fromkeys(error.message for error in refusal.errors)) or refusal.detail
        place.report.skipped.append(Skipped(place.found.line, said))

    def _note(self, sentence: str) -> None:
        if sentence not in self._imported.notes:
            self._imported.notes.append(sentence)

    def _tell(self) -> None:
        imported = self._imported
        for report in imported.files:
            report.skipped.sort(key=lambda skipped: skipped.line)
        hidden = len(imported.notes) - _NOTES
        if hidden > 0:
            imported.notes[_NOTES:] = [f"There are {hidden:,} more notes of this kind."]
        if imported.refused:
            imported.notes.append(f"{imported.refused:,} were refused by screening; each says why among the skipped.")
        if imported.not_taken:
            why = self._full.removeprefix("Not taken: ") or "one import takes no more."
            imported.notes.append(f"{imported.not_taken:,} statements were not taken: {why}")


def _with_code(found: Found) -> str:
    return f"{found.content}\n\n{found.code}" if found.code else found.content


def _key_with_code(place: _Place) -> tuple[str, ...]:
    return (key_of(_with_code(place.found)),)


def _key_of_content(place: _Place) -> tuple[str, ...]:
    return (key_of(place.found.content),)


def _key_of_own(place: _Place) -> tuple[str, ...]:
    """The same words under a heading that was renamed: nothing that anybody would have to decide about again."""
    own, body = key_of(place.found.own[:MAX_QUOTE]), key_of(place.found.body)
    return (own, body) if len(body.split()) >= WORDS_OF_A_STATEMENT else ()


def _matched(places: list[_Place], olds: list[Known], key: Callable[[_Place], tuple[str, ...]]) -> list[Known]:
    """Give places what came from them before, by the key that both have; answers those that none of them has."""
    by_key: dict[str, list[Known]] = defaultdict(list)
    for known in olds:
        by_key[known.quote_key if key is _key_of_own else known.key].append(known)
    taken: set[int] = set()
    for place in places:
        wanted = key(place) if place.known is None else ()
        if not wanted:
            continue
        ending = wanted[1] if len(wanted) > 1 else ""
        matching = [known for known in by_key.get(wanted[0], ()) if known.key.endswith(ending)]
        if matching:
            place.known = max(matching, key=lambda known: known.holds)
            taken.update(map(id, matching))
    return [known for known in olds if id(known) not in taken]


def _spread(unit: _Unit) -> None:
    """What stands in a file twice came from it before in both places, though only one of them is on record."""
    known = {place.report.path: place.known for place in unit.places if place.known is not None}
    for place in unit.places:
        if place.known is None and place.before is None:
            place.known = known.get(place.report.path)


def _reworded(places: list[_Place], olds: list[Known]) -> list[tuple[_Place, Known]]:
    """Pairs of a new statement and the one that it is a new wording of, the most alike first, each once."""
    pairs: list[tuple[float, int, int]] = []
    looked_at = compared = 0
    for at, place in enumerate(places):
        new = key_of(place.found.own)[:MAX_QUOTE]
        for index, known in enumerate(olds):
            if looked_at >= _MAX_PAIRS or compared >= _MAX_COMPARED:
                break
            looked_at += 1
            least = (
                0.0 if place.is_decision else _ALIKE_HERE if known.heading == place.found.heading else _ALIKE_ELSEWHERE
            )
            old = known.quote_key[:MAX_QUOTE]
            matcher = SequenceMatcher(None, old, new, autojunk=False)
            if matcher.real_quick_ratio() < least or matcher.quick_ratio() < least:
                continue
            compared += len(old) * len(new)
            ratio = matcher.ratio()
            if ratio >= least:
                pairs.append((ratio, at, index))
    taken: list[tuple[_Place, Known]] = []
    used: set[tuple[str, int]] = set()
    for _, at, index in sorted(pairs, key=lambda pair: (-pair[0], pair[1], pair[2])):
        if not used & {("new", at), ("old", index)}:
            used |= {("new", at), ("old", index)}
            taken.append((places[at], olds[index]))
    return taken


def _number_of(path: str) -> int | None:
    """The number in the name of a decision record: 3 of ``docs/adr/0003-queues.md``."""
    digits = ""
    for sign in path.rpartition("/")[2]:
        if sign.isdigit():
            digits += sign
        elif digits:
            break
    return int(digits) if 0 < len(digits) <= 6 and digits.isascii() else None
