"""What the documents promise about files, pins and versions is there."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from django.conf import settings

ROOT = Path(settings.BASE_DIR)
DOCUMENTS = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
LINK = re.compile(r"\]\((?!https?://|mailto:|#)([^)\s#]+)[^)]*\)")
PIN = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^\]]*\])?(?:==([^\s;]+))?")


def without_code(text: str) -> str:
    return re.sub(r"```.*?```", "", text, flags=re.DOTALL)


def pins(path: str) -> dict[str, str | None]:
    lines = (ROOT / path).read_text().splitlines()
    found = [PIN.match(line) for line in lines if line and not line.startswith(("#", "-", " "))]
    return {match[1].lower(): match[2] for match in found if match}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_somewhere(document: Path) -> None:
    for target in LINK.findall(without_code(document.read_text())):
        assert (document.parent / target).exists(), target


@pytest.mark.parametrize(
    ("direct", "compiled"),
    [("requirements/base.in", "requirements.txt"), ("requirements/dev.in", "requirements/dev.txt")],
)
def test_every_dependency_has_its_reason(direct: str, compiled: str) -> None:
    text = (ROOT / "docs" / "dependencies.md").read_text().lower()
    versions = pins(compiled)
    for name in pins(direct):
        assert f"{name} {versions[name]}" in text, f"docs/dependencies.md says nothing about {name} {versions[name]}"


def test_supported_versions_of_python_are_the_same_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["requires-python"] == ">=3.11,<3.14"
    assert "Python 3.11, 3.12 or 3.13" in (ROOT / "README.md").read_text()
    assert 'python: ["3.11", "3.12", "3.13"]' in (ROOT / ".github" / "workflows" / "check.yml").read_text()


def test_the_licence_is_the_one_that_is_named() -> None:
    assert "Apache License\n                           Version 2.0, January 2004" in (ROOT / "LICENSE").read_text()


def test_decision_records_are_numbered_as_their_files_are() -> None:
    for path in sorted((ROOT / "docs" / "adr").glob("*.md")):
        assert path.read_text().startswith(f"# {int(path.name[:4])}. "), path.name
