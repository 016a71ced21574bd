"""Rules files of real projects go in, are approved, and come out with every bullet.

They lie in a folder that is not part of the project: the variable FIRM_MEMORY_EVAL_DATA names it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from apps.agents.files.exporting import MOST_LINES, FileFormat, files_export
from apps.agents.files.harmless import CUT
from apps.agents.files.services import FileInput, files_import
from apps.candidates.models import Candidate
from tests.agents.files.texts import EVERY
from tests.ledger import approve

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("pool")]

BULLET = re.compile(r"^[ \t]*(?:[-*+]|\d+[.)])[ \t]+(?:\[[ xX]\][ \t]+)?(?P<words>\S.*)$")
FENCE = re.compile(r"^[ \t]*(?:```|~~~)")


def real_files() -> list[Path]:
    named = os.environ.get("FIRM_MEMORY_EVAL_DATA")
    folder = Path(named) / "rules_files" if named else None
    return sorted(path for path in folder.glob("*__*") if path.is_file()) if folder else []


def bullets(text: str) -> dict[int, str]:
    """The first line of each bullet outside of code, by its number: told apart from how the reader does it."""
    found: dict[int, str] = {}
    fenced = False
    for number, line in enumerate(text.split("\n"), start=1):
        if FENCE.match(line):
            fenced = not fenced
        elif not fenced and (bullet := BULLET.match(line)):
            found[number] = bullet["words"]
    return found


def plain(text: str) -> str:
    """Letters and digits alone: what escaping and line breaks leave as they are."""
    return "".join(re.findall(r"[^\W_]+", text.casefold()))


def lost(path: str, text: str, reviewer, bot, repo: str) -> list[str]:
    """Import, approve, export; the bullets that are neither in the files nor among what was skipped with a reason."""
    imported = files_import(principal=bot, repo=repo, files=[FileInput(path, text)])
    for candidate in Candidate.objects.pending():
        approve(reviewer, candidate)
    (file,) = files_export(principal=bot, repo=repo, format=FileFormat.AGENTS_MD, max_lines=MOST_LINES).files
    written = plain(file.block)
    cut = [plain(line.removesuffix(CUT)) for line in file.block.split("\n") if line.endswith(CUT)]
    skipped = {one.line for report in imported.files for one in report.skipped}
    return [
        words
        for number, words in bullets(text).items()
        if number not in skipped and plain(words) not in written and not any(plain(words)[:40] in line for line in cut)
    ]


def test_no_bullet_of_small_files_is_lost(bot, reviewer):
    for path, text in EVERY.items():
        if not path.startswith(("docs/", "peps/")):
            kept = re.sub(r"<!--.*?-->|(?<=-->).*?(?=<!--)", "", text, flags=re.DOTALL)
            assert lost(path, kept, reviewer, bot, f"acme/{path.replace('/', '-')}") == [], path


@pytest.mark.timeout(600)
@pytest.mark.skipif(not real_files(), reason="Set FIRM_MEMORY_EVAL_DATA to a folder with rules_files.")
@pytest.mark.parametrize("file", real_files(), ids=lambda path: path.name)
def test_no_bullet_of_a_real_file_is_lost(bot, reviewer, settings, file):
    settings.FIRM_MEMORY_THROTTLE = False
    repo, _, path = file.name.partition("__")

    assert lost(path.replace("__", "/"), file.read_text(), reviewer, bot, repo.replace("+", "/")) == []
