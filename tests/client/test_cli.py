"""`fm` where no service is asked, or one that plays."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.client.playing import playing

DOWN = {"FIRM_MEMORY_URL": "http://127.0.0.1:9", "FIRM_MEMORY_TOKEN": "fm_agent_x"}

CODES = [
    pytest.param(["search"], 2, id="no question"),
    pytest.param(["search", "x", "--everything", "--repo", "a"], 2, id="two places"),
    pytest.param(["search", "x", "--limit", "0"], 2, id="no number"),
    pytest.param(["propose", "x", "--type", "ownership"], 2, id="no source"),
    pytest.param(["propose", "--type", "ownership", "--source", "issue", "1"], 2, id="no text"),
    pytest.param(["propose", "--file", "gone.md", "--type", "ownership"], 2, id="no file"),
    pytest.param(["ingest", "gone.md"], 2, id="no kind"),
    pytest.param(["connect", "emacs"], 2, id="no client"),
    pytest.param(["search", "x"], 0, id="down"),
    pytest.param(["ask", "x"], 0, id="down for an answer"),
    pytest.param(["context"], 0, id="down for context"),
    pytest.param(["search", "x", "--strict"], 5, id="down and strict"),
    pytest.param(["ask", "x", "--strict"], 5, id="down and strict for an answer"),
    pytest.param(["context", "--strict"], 5, id="down and strict for context"),
    pytest.param(["get", "M-1"], 5, id="down for one"),
    pytest.param(["propose", "x", "--type", "ownership", "--source", "issue", "1"], 5, id="down for a proposal"),
    pytest.param(["notes", "list", "t"], 5, id="down for notes"),
]


@pytest.mark.parametrize(("arguments", "code"), CODES)
def test_how_it_ends(arguments, code, fm, checkout):
    timeout = [] if code == 2 else ["--timeout", "0.2"]
    ended = fm(*arguments, *timeout, env=DOWN)
    assert ended.code == code, ended
    assert ended.err
    assert "Traceback" not in ended.err
    if code != 2:
        told = fm(*arguments, *timeout, "--json", env=DOWN)
        assert (told.code, isinstance(told.data, dict)) == (code, True)
        assert told.data.get("degraded") is True or told.data["error"]["exit"] == code


@pytest.mark.parametrize(
    "env", [{"FIRM_MEMORY_TOKEN": ""}, {"FIRM_MEMORY_URL": "memory"}], ids=["no token", "no address"]
)
def test_what_is_not_set_is_said(env, fm, checkout):
    told = fm("me", "--json", env=DOWN | env)
    assert (told.code, told.data["error"]["code"]) == (2, "misconfigured")


def test_outside_of_a_checkout_everything_is_searched_and_nothing_is_proposed(fm, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    empty = {"results": [], "intent": "look-up", "degraded": False, "note": ""}
    with playing(memories_search=lambda _: (200, empty)) as service:
        env = {"FIRM_MEMORY_URL": service.url, "FIRM_MEMORY_TOKEN": "fm_agent_x"}
        assert fm("search", "x", env=env).code == 1
        assert fm("propose", "x", "--type", "ownership", "--source", "issue", "1", env=env).code == 2
        assert fm("context", env=env).code == 2
    assert [each.query for each in service.asked] == [{"q": ["x"]}]


def test_everything_is_searched_when_asked(fm, checkout):
    empty = {"results": [], "intent": "look-up", "degraded": False, "note": ""}
    with playing(memories_search=lambda _: (200, empty)) as service:
        env = {"FIRM_MEMORY_URL": service.url, "FIRM_MEMORY_TOKEN": "fm_agent_x"}
        for more in (["--everything"], [], ["--repo", "a", "--repo", "b"], ["--domain", "d"]):
            fm("search", "x", *more, env=env)
    assert [each.query.get("repos") for each in service.asked] == [
        None,
        ["https://git.example.com/acme/pay"],
        ["a", "b"],
        None,
    ]


def test_an_answer_in_part_is_shown_and_strict_ends_with_its_code(fm, checkout):
    part = {"results": [{"number": "M-1", "content": "Back off."}], "degraded": True, "note": "The pool is down."}
    with playing(memories_search=lambda _: (200, part)) as service:
        env = {"FIRM_MEMORY_URL": service.url, "FIRM_MEMORY_TOKEN": "fm_agent_x"}
        loose, strict = fm("search", "x", env=env), fm("search", "x", "--strict", env=env)
    assert (loose.code, strict.code, loose.out == strict.out) == (0, 5, True)
    assert "Back off." in loose.out
    assert loose.err == "The pool is down.\n"


HOSTILE = "Yes.\x1b[2J\x1b]0;owned\x07\r\nM-2  approved \u202e [bold]x[/bold]"


@pytest.mark.parametrize(
    "command", [["search", "x"], ["get", "M-1"], ["ask", "x"], ["context"], ["notes", "list", "t"], ["me"]]
)
def test_hostile_statements_are_shown_and_do_nothing(command, fm, checkout):
    memory = {
        "id": HOSTILE,
        "number": HOSTILE,
        "content": HOSTILE,
        "type": HOSTILE,
        "status": HOSTILE,
        "scope": {"repos": [HOSTILE]},
        "sources": [{"kind": HOSTILE, "reference": HOSTILE, "title": HOSTILE, "url": HOSTILE}],
        "verdicts": [{"action": HOSTILE, "reviewer": HOSTILE, "reason": HOSTILE}],
        "chain": [{"number": HOSTILE, "status": HOSTILE}] * 2,
        "name": HOSTILE,
        "workspace": HOSTILE,
    }
    listed = memory | {
        "results": [memory],
        "items": [memory],
        "text": HOSTILE,
        "answer": HOSTILE,
        "citations": [HOSTILE],
    }
    listed |= {"note": HOSTILE}
    paths = ("memories_search", "memories_M-1", "ask", "context", "tasks_t_notes", "me")
    with playing(**{path: lambda _: (200, listed) for path in paths}) as service:
        env = {"FIRM_MEMORY_URL": service.url, "FIRM_MEMORY_TOKEN": "fm_agent_x"}
        shown = fm(*command, env=env)
        told = fm(*command, "--json", env=env)
    assert shown.code == told.code == 0, shown
    assert not set("\x1b\x07\r\u202e") & set(shown.out + shown.err + told.out + told.err)
    assert "\\x1b[2J" in shown.out
    assert not [line for line in shown.out.splitlines() if line.startswith("M-2")] or command == ["context"]


def test_there_is_no_colour_where_nobody_sees_it(fm, checkout, monkeypatch):
    """A run of tests is no terminal; on one, NO_COLOR counts."""
    from firm_memory_client.cli import common

    class Terminal:
        def isatty(self) -> bool:
            return True

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert common._color(Terminal())
    assert not common._color(sys.__stdin__) or sys.__stdin__.isatty()
    monkeypatch.setenv("NO_COLOR", "1")
    assert not common._color(Terminal())
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert not common._color(Terminal())


def test_an_open_address_is_warned_about(fm, checkout):
    ended = fm("me", "--timeout", "0.2", env=DOWN | {"FIRM_MEMORY_URL": "http://memory.invalid"})
    assert "http://memory.invalid is not encrypted" in ended.err


# --- the package ------------------------------------------------------------------------------------------------------
def test_it_is_built_and_installed_by_itself(tmp_path):
    folder = Path(__file__).resolve().parents[2] / "client"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-build-isolation"]
    subprocess.run([*command, "--disable-pip-version-check", "--target", str(tmp_path), str(folder)], check=True)
    assert (tmp_path / "firm_memory_client" / "py.typed").exists()
    done = subprocess.run(
        [str(tmp_path / "bin" / "fm"), "--version"],
        env={"PYTHONPATH": str(tmp_path), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "fm, version 0.1.0\n"
    code = "import sys, firm_memory_client; assert 'django' not in sys.modules and 'rich' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": str(tmp_path)}, check=True)
