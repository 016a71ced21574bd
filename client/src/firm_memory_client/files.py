"""Files that agents read, in a checkout: found, read, and written where they belong and nowhere else."""

from __future__ import annotations

import contextlib
import difflib
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from firm_memory_client.checkout import tracked
from firm_memory_client.markers import BrokenMarkers, check_block, merged
from firm_memory_client.models import ExportedFile
from firm_memory_client.writing import write_atomically

MAX_FILE: Final = 512 * 1024
MAX_PATH: Final = 250
_MAX_WALKED: Final = 200_000
_SKIPPED_FOLDERS: Final = frozenset({".git", ".hg", ".svn", ".venv", "venv", "node_modules", "__pycache__", "vendor"})
_RULES: Final = frozenset({"agents.md", "claude.md", ".cursorrules"})
_DECISION_FOLDERS: Final = frozenset(
    {"adr", "adrs", "decisions", "decision-records", "architecture-decisions", "peps", "keps", "rfcs", "rfc"}
)
_DECISION: Final = re.compile(
    r"(?:(?:adr|pep|kep|rfc)?[-_]?\d{1,5}[-_. ].*|(?:adr|pep|kep|rfc)[-_]?\d{1,5})\.(?:md|markdown|rst|txt)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Skipped:
    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Written:
    """``state`` is ``written``, ``unchanged``, ``stale`` (looked at only), ``skipped`` or ``refused``.

    ``reason`` says why it is one of the last two.
    """

    path: str
    state: str
    reason: str = ""
    diff: str = ""


def is_wanted(path: str) -> bool:
    """Whether ``path``, from the root and with slashes, is a file that agents read or a numbered decision record."""
    *folders, name = path.lower().split("/")
    if name in _RULES:
        return True
    if name.endswith(".mdc"):
        return folders[-2:] == [".cursor", "rules"] or ".cursor" in folders
    if folders[-1:] == [".github"] and name == "copilot-instructions.md":
        return True
    if name.endswith(".instructions.md"):
        return ".github" in folders and "instructions" in folders
    return bool(_DECISION_FOLDERS & set(folders)) and _DECISION.fullmatch(name) is not None


def found_in(root: Path, named: Sequence[Path] = ()) -> list[str]:
    """Paths from ``root`` of the files to import: all that agents read, or those in and among ``named``.

    A file that is named itself counts whatever it is called. Raises ``ValueError`` for one outside of ``root``.
    """
    if not named:
        return sorted(path for path in _all(root) if is_wanted(path))
    found: list[str] = []
    for each in named:
        inside = _inside(root, each)
        if (root / inside).is_dir():
            below = "" if inside == "." else f"{inside}/"
            found += sorted(path for path in _all(root) if path.startswith(below) and is_wanted(path))
        else:
            found.append(inside)
    return list(dict.fromkeys(found))


def _inside(root: Path, named: Path) -> str:
    # Only the folder is resolved, so that a link is named as the link that it is.
    absolute = Path(os.path.abspath(named))  # noqa: PTH100 - must not follow a link
    full = absolute.parent.resolve() / absolute.name
    if not full.exists() and not full.is_symlink():
        raise ValueError(f"There is no {named}.")
    try:
        return full.relative_to(root).as_posix()
    except ValueError:
        if _resolved(full) == root:
            return "."
        raise ValueError(f"{named} is outside of {root}.") from None


def _all(root: Path) -> Iterable[str]:
    known = tracked(root)
    return known if known is not None else _walked(root)


def _walked(root: Path) -> Iterator[str]:
    seen = 0
    for folder, folders, names in os.walk(root, followlinks=False):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED_FOLDERS)
        for name in sorted(names):
            seen += 1
            if seen > _MAX_WALKED:
                return
            yield (Path(folder) / name).relative_to(root).as_posix()


def read_all(root: Path, paths: Iterable[str]) -> tuple[list[tuple[str, str]], list[Skipped]]:
    """Their texts, and what was left out, with why."""
    texts: list[tuple[str, str]] = []
    skipped: list[Skipped] = []
    for path in paths:
        try:
            texts.append((path, _read(root, path)))
        except ValueError as error:
            skipped.append(Skipped(path, str(error)))
    return texts, skipped


def _read(root: Path, path: str) -> str:
    full = _resolved(root / path)
    if not full.is_relative_to(root):
        raise ValueError("It is a link to outside of the checkout.")
    if len(path) > MAX_PATH or not path.isprintable():
        raise ValueError(f"Its path has more than {MAX_PATH} characters, or some that are not printable.")
    if not full.is_file():
        raise ValueError("It is no file, or gone.")
    try:
        with full.open("rb") as file:
            raw = file.read(MAX_FILE + 1)
    except OSError as error:
        raise ValueError(f"It cannot be read: {error.strerror or error}.") from None
    if len(raw) > MAX_FILE:
        raise ValueError(f"It is larger than {MAX_FILE // 1024} KiB.")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError("It is not UTF-8.") from None


# --- writing ----------------------------------------------------------------------------------------------
def export_to(root: Path, files: Sequence[ExportedFile], *, check: bool = False) -> list[Written]:
    """Put each block into its file. All are looked at before the first is written; what cannot be is ``refused``.

    With ``check`` nothing is written, and what would change is ``stale`` with a diff.
    """
    same = _same_files(root, files)
    planned = [_skipped(file, same[file.path]) if file.path in same else _planned(root, file) for file in files]
    if check or any(isinstance(plan, Written) and plan.state == "refused" for plan in planned):
        return [plan if isinstance(plan, Written) else plan.shown("stale") for plan in planned]
    return [plan if isinstance(plan, Written) else _write(plan) for plan in planned]


def _same_files(root: Path, files: Sequence[ExportedFile]) -> dict[str, str]:
    """Paths that lead by a link to the file of another one before them, with that one's path."""
    seen: dict[Path, str] = {}
    same: dict[str, str] = {}
    for file in files:
        with contextlib.suppress(OSError, ValueError):  # said when it is its turn
            first = seen.setdefault(_place(root, file.path), file.path)
            if first != file.path:
                same[file.path] = first
    return same


def _skipped(file: ExportedFile, first: str) -> Written:
    return Written(file.path, "skipped", f"It is the same file as {first}, and gets its block.")


@dataclass(frozen=True, slots=True)
class _Plan:
    path: str
    at: Path
    before: str
    after: str

    def shown(self, state: str) -> Written:
        names = (f"{self.path} (here)", f"{self.path} (Firm Memory)")
        lines = difflib.unified_diff(self.before.splitlines(), self.after.splitlines(), *names, lineterm="")
        return Written(self.path, state, diff="\n".join(lines))


def _planned(root: Path, file: ExportedFile) -> _Plan | Written:
    try:
        at = _place(root, file.path)
        before = at.read_bytes().decode("utf-8") if at.exists() else None
        after = _after(before, file)
    except UnicodeDecodeError:
        return Written(file.path, "refused", "It is not UTF-8.")
    except (OSError, ValueError) as error:
        return Written(file.path, "refused", getattr(error, "strerror", None) or str(error))
    return Written(file.path, "unchanged") if before == after else _Plan(file.path, at, before or "", after)


def _after(before: str | None, file: ExportedFile) -> str:
    check_block(file.block)
    if before is None and file.whole:
        if merged(file.whole, file.block) != file.whole:
            raise BrokenMarkers("What the service answered for a new file does not hold its block.")
        return file.whole
    return merged(before or "", file.block)


def _place(root: Path, path: str) -> Path:
    """Where ``path`` is below ``root``. Raises ``ValueError`` for one that leads elsewhere, also by a link."""
    parts = PurePosixPath(path).parts
    unsafe = path.startswith(("/", "~")) or set(path) & set("\\:\0") or not path.isprintable()
    if unsafe or not parts or any(part == ".." or part.lower() == ".git" for part in parts):
        raise ValueError("Its path is none of a file in the checkout.")
    at = root
    for part in parts:
        at = at / part
        if at.is_symlink():
            resolved = _resolved(at)
            if not resolved.is_relative_to(root) or ".git" in resolved.relative_to(root).parts:
                raise ValueError("It is, or lies behind, a link to outside of the checkout.")
    at = at.resolve()
    if at.exists() and not at.is_file():
        raise ValueError("It is no file.")
    return at


def _resolved(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError):  # of a circle, by version of Python
        raise ValueError("It is, or lies behind, a link that leads in a circle.") from None


def _write(plan: _Plan) -> Written:
    try:
        if (plan.at.read_bytes() if plan.at.exists() else b"") != plan.before.encode():
            return Written(plan.path, "refused", "Somebody changed it meanwhile. Export again.")
        plan.at.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(plan.at, plan.after.encode())
    except OSError as error:
        return Written(plan.path, "refused", f"It cannot be written: {error.strerror or error}.")
    return Written(plan.path, "written")
