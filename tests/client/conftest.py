"""A home of its own for each test, a checkout of acme/pay, and `fm` as a person runs it."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from firm_memory_client.cli import main


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        return json.loads(self.out)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    for name in ("FIRM_MEMORY_URL", "FIRM_MEMORY_TOKEN", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(folder))
    return folder


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=anna", "-c", "user.email=anna@example.com", "-c", "commit.gpgsign=false")
    subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True)


@pytest.fixture(scope="session")
def _repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("template")
    git(folder, "init", "--quiet")
    git(folder, "remote", "add", "origin", "git@git.example.com:acme/pay.git")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", "Begin")
    shutil.rmtree(folder / ".git" / "hooks", ignore_errors=True)
    return folder


@pytest.fixture
def checkout(_repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, at a commit of acme/pay."""
    folder = tmp_path / "pay"
    shutil.copytree(_repository, folder)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def fm() -> Callable[..., Ended]:
    """Run `fm`; ``text`` is its standard input."""

    def run(*arguments: str, text: str = "", env: dict[str, str] | None = None) -> Ended:
        done = CliRunner().invoke(main, list(arguments), input=text, env=env)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return Ended(done.exit_code, done.stdout, done.stderr)

    return run
