"""The files of a checkout on this machine: found to be taken in, and written with what was exported."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from tempfile import mkstemp
from typing import Final

from apps.agents.files.exporting import Exported
from apps.agents.files.formats import Format, format_of, is_safe
from apps.agents.files.markers import BrokenMarkers, merged
from apps.agents.files.services import FileInput

# Nobody's own rules are in these.
_PASSED_OVER: Final = frozenset({".git", "node_modules", ".venv", "venv", "vendor", "target", "dist", "build"})


class Unusable(Exception):
    """A file that cannot be read or written as it is; the message is a sentence for whoever runs the command."""


def files_under(paths: Sequence[Path], root: Path) -> Iterator[FileInput]:
    """The given files, and those that agents read in the given folders, by their paths below ``root``, sorted.

    Links are not followed: what they lead to is read where it lies. Raises ``Unusable``.
    """
    base = root.resolve()
    seen: set[str] = set()
    for path in paths:
        found = _walk(path) if path.is_dir() else iter([path])
        for each in found:
            if path.is_dir() and format_of(each.as_posix()) is Format.UNKNOWN:
                continue
            name = _name_below(each, base)
            if name not in seen:
                seen.add(name)
                yield FileInput(name, _text_of(each))


def _walk(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _PASSED_OVER)
        for name in sorted(names):
            path = Path(parent) / name
            if not path.is_symlink() and path.is_file():
                yield path


def _name_below(path: Path, base: Path) -> str:
    try:
        name = _resolved(path).relative_to(base).as_posix()
    except ValueError:
        raise Unusable(f"{path} is not below {base}. Name the root of the checkout with --root.") from None
    if not is_safe(name):
        raise Unusable(f"{name!r} is a name that no import takes. Rename it, or leave it out.")
    return name


def _text_of(path: Path) -> str:
    try:
        # What is no UTF-8 is shown as such and costs nothing else.
        return path.read_bytes().decode("utf-8", "replace")
    except OSError as error:
        raise Unusable(f"{path} cannot be read: {error.strerror}.") from None


@dataclass(frozen=True, slots=True)
class Written:
    """What became, or would become, of one exported file: ``state`` is new, changed, unchanged or skipped."""

    path: str
    state: str
    why: str = ""
    difference: tuple[str, ...] = ()


def files_write(files: Sequence[Exported], folder: Path, *, check: bool = False) -> list[Written]:
    """Put each file's block into the file in ``folder``; with ``check`` say what would change and write nothing.

    A folder that is not there is not made: what holds in it holds for nothing in this checkout. Raises ``Unusable``
    before anything was written, where a file leads out of ``folder``, is no UTF-8, or has broken markers.
    """
    base = folder.resolve()
    planned: list[tuple[Written, Path, bytes]] = []
    targets: dict[Path, str] = {}
    for file in files:
        target = base / file.path
        if not _parent_is_there(file.path, base):
            planned.append((Written(file.path, "skipped", "There is no such folder in this checkout."), target, b""))
            continue
        real = _real(target, base)
        if real in targets:
            why = f"It is the same file as {targets[real]}, which was written."
            planned.append((Written(file.path, "skipped", why), real, b""))
            continue
        targets[real] = file.path
        planned.append(_planned(file, real))
    for written, real, content in planned:
        if not check and written.state in ("new", "changed"):
            _replace(real, content)
    return [written for written, _, _ in planned]


# Tools look for these at the root, so they are made where they are missing.
_MADE: Final = (".cursor", ".cursor/rules")


def _parent_is_there(path: str, base: Path) -> bool:
    parent = path.rpartition("/")[0]
    return not parent or parent in _MADE or (base / parent).is_dir()


def _real(target: Path, base: Path) -> Path:
    real = _resolved(target)
    if not real.is_relative_to(base) or ".git" in (part.lower() for part in real.relative_to(base).parts):
        raise Unusable(f"{target} leads out of {base}, and was not written. Remove the link.")
    return real


def _resolved(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError):  # of a circle, by version of Python
        raise Unusable(f"{path} is, or lies behind, a link that leads in a circle. Remove the link.") from None


def _planned(file: Exported, real: Path) -> tuple[Written, Path, bytes]:
    if not real.exists():
        return Written(file.path, "new", difference=_difference(file.path, "", file.whole)), real, file.whole.encode()
    try:
        before = real.read_bytes().decode("utf-8")
        after = merged(before, file.block)
    except UnicodeDecodeError:
        raise Unusable(f"{file.path} is no UTF-8, and was not written.") from None
    except OSError as error:
        raise Unusable(f"{file.path} cannot be read: {error.strerror}.") from None
    except BrokenMarkers as problem:
        raise Unusable(f"{file.path}: {problem}") from None
    if before == after:
        return Written(file.path, "unchanged"), real, b""
    return Written(file.path, "changed", difference=_difference(file.path, before, after)), real, after.encode()


def _difference(path: str, before: str, after: str) -> tuple[str, ...]:
    lines = unified_diff(
        before.splitlines(), after.splitlines(), f"{path} as it is", f"{path} as it would be", lineterm=""
    )
    return tuple(lines)


def _replace(path: Path, content: bytes) -> None:
    """In one step, so that whoever reads meanwhile gets the old file or the new one; its mode stays."""
    try:
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
        path.parent.mkdir(parents=True, exist_ok=True)
        # Under a name that nobody knows before: in its place a checkout could have a link to anywhere.
        descriptor, name = mkstemp(prefix=f".{path.name}.", dir=path.parent)
        beside = Path(name)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            beside.chmod(mode)
            beside.replace(path)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise Unusable(f"{path} cannot be written: {error.strerror}.") from None
