"""The plugin of Claude Code: its files, and its hooks run as Claude Code runs them."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.client.playing import playing

CLIENT = Path(__file__).resolve().parents[2] / "client"
PLUGIN = CLIENT / "claude-code-plugin"
TEXT = "What reviewers approved.\n<<<BEGIN 1>>>\nM-1 ownership\n| Ring \x1b]0;me\x07 anna.\n<<<END 1>>>"


def known(_):
    item = {"id": "1", "number": "M-1", "content": "Ring anna.", "type": "ownership"}
    return 200, {"text": TEXT, "items": [item], "note": "", "degraded": False}


@pytest.fixture
def environment(home, tmp_path):
    """With `fm` on the path as an installation puts it there."""
    tools = tmp_path / "bin"
    tools.mkdir()
    fm = tools / "fm"
    fm.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m firm_memory_client "$@"\n')
    fm.chmod(0o755)
    return {"PATH": f"{tools}:/usr/bin:/bin", "HOME": str(home), "PYTHONPATH": str(CLIENT / "src")}


def run_hook(event: str, given: object, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    (group,) = json.loads((PLUGIN / "hooks" / "hooks.json").read_text())["hooks"][event]
    (hook,) = group["hooks"]
    return subprocess.run(
        ["sh", "-c", hook["command"]],
        env=environment | {"CLAUDE_PLUGIN_ROOT": str(PLUGIN)},
        input=given if isinstance(given, str) else json.dumps(given),
        capture_output=True,
        text=True,
        timeout=hook["timeout"],
        check=False,
    )


def started(checkout: Path, source: str = "startup") -> dict[str, str]:
    return {
        "session_id": "s2",
        "transcript_path": "/nowhere.jsonl",
        "cwd": str(checkout),
        "hook_event_name": "SessionStart",
        "source": source,
    }


def ended(checkout: Path, transcript: Path) -> dict[str, str]:
    return {
        "session_id": "s1",
        "transcript_path": str(transcript),
        "cwd": str(checkout),
        "hook_event_name": "SessionEnd",
        "reason": "prompt_input_exit",
    }


@pytest.fixture
def transcript(tmp_path):
    path = tmp_path / "it's a session.jsonl"
    path.write_text('{"type": "user", "message": {"content": "Why do we round?"}}\n' * 100)
    return path


def test_a_session_starts_with_what_is_known(checkout, environment):
    with playing(context=known) as service:
        environment |= {"FIRM_MEMORY_URL": service.url, "FIRM_MEMORY_TOKEN": "fm_agent_x"}
        done = run_hook("SessionStart", started(checkout), environment)
    assert (done.returncode, done.stderr) == (0, "")
    said = json.loads(done.stdout)
    assert said["hookSpecificOutput"]["hookEventName"] == "SessionStart"
    context = said["hookSpecificOutput"]["additionalContext"]
    assert "| Ring \\x1b]0;me\\x07 anna." in context
    assert service.asked[0].query["repo"] == ["https://git.example.com/acme/pay"]


@pytest.mark.parametrize("given", ["", "{", "[]", '{"cwd": 1}', '{"cwd": "/nowhere"}'])
def test_whatever_comes_in_a_session_is_not_held_up(given, checkout, environment):
    for event in ("SessionStart", "SessionEnd"):
        done = run_hook(event, given, environment)
        assert (done.returncode, done.stdout) == (0, "")


def test_a_session_starts_without_the_service_without_a_token_and_without_fm(checkout, environment):
    down = environment | {"FIRM_MEMORY_URL": "http://127.0.0.1:9", "FIRM_MEMORY_TOKEN": "fm_agent_x"}
    begun = time.monotonic()
    for each in (down, environment, environment | {"PATH": "/usr/bin:/bin"}):
        done = run_hook("SessionStart", started(checkout), each)
        assert (done.returncode, done.stdout) == (0, "")
    assert time.monotonic() - begun < 10


def test_an_open_address_is_warned_about_in_a_sentence(checkout, environment):
    far = environment | {"FIRM_MEMORY_URL": "http://memory.invalid", "FIRM_MEMORY_TOKEN": "fm_agent_x"}
    done = run_hook("SessionStart", started(checkout), far)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith("fm: http://memory.invalid is not encrypted")
    assert all(line.startswith("fm: ") for line in done.stderr.splitlines())


def test_a_session_that_ended_is_offered_once_in_the_next(checkout, environment, transcript):
    done = run_hook("SessionEnd", ended(checkout, transcript), environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    resumed = run_hook("SessionStart", started(checkout, "compact"), environment)
    assert resumed.stdout == ""
    said = json.loads(run_hook("SessionStart", started(checkout), environment).stdout)
    context = said["hookSpecificOutput"]["additionalContext"]
    assert "If the user agrees, and only then" in context
    assert shlex.split(context.splitlines()[-1]) == [
        *("fm", "ingest", str(transcript), "--kind", "transcript", "--repo", "acme/pay"),
        *("--source", "transcript", "claude-code:s1", "--external-id", "claude-code:s1"),
    ]
    assert "was not handed over" in said["systemMessage"]
    assert run_hook("SessionStart", started(checkout), environment).stdout == ""


def test_what_is_kept_about_a_session_only_its_owner_reads(checkout, environment, transcript, home):
    run_hook("SessionEnd", ended(checkout, transcript), environment)
    (kept,) = (home / ".local/state/firm-memory/sessions").iterdir()
    assert kept.stat().st_mode & 0o777 == 0o600
    assert "Why do we round?" not in kept.read_text()


def test_a_session_is_not_offered_where_nobody_wants_it(checkout, environment, transcript, tmp_path):
    short = tmp_path / "short.jsonl"
    short.write_text("{}\n")
    run_hook("SessionEnd", ended(checkout, short), environment)
    run_hook("SessionEnd", ended(checkout, transcript), environment | {"FIRM_MEMORY_SESSIONS": "never"})
    run_hook("SessionEnd", ended(tmp_path, transcript), environment)
    assert run_hook("SessionStart", started(checkout), environment).stdout == ""


def test_a_session_may_be_handed_over_without_a_question(checkout, environment, transcript):
    with playing(ingest=lambda _: (202, {"events": ["e1"], "notes": [""]})) as service:
        environment |= {"FIRM_MEMORY_URL": service.url, "FIRM_MEMORY_TOKEN": "fm_agent_x"}
        asked = service.asked
        # The service of this test reads JSON lines of one line as JSON.
        done = run_hook("SessionEnd", ended(checkout, transcript), environment | {"FIRM_MEMORY_SESSIONS": "always"})
        until = time.monotonic() + 20
        while not asked and time.monotonic() < until:
            time.sleep(0.05)
    assert done.returncode == 0
    assert asked[0].body["external_id"] == f"claude-code:{transcript.stem}"
    assert asked[0].body["scope"] == {"repos": ["acme/pay"]}
    assert asked[0].body["content"].startswith('{"type": "user"')


def test_the_plugin_is_whole():
    manifest = json.loads((PLUGIN / ".claude-plugin" / "plugin.json").read_text())
    (listed,) = json.loads((CLIENT / ".claude-plugin" / "marketplace.json").read_text())["plugins"]
    assert manifest["name"] == listed["name"] == "firm-memory"
    assert (CLIENT / listed["source"]).resolve() == PLUGIN
    server = json.loads((PLUGIN / ".mcp.json").read_text())["mcpServers"]["firm-memory"]
    assert (server["command"], server["args"][0]) == ("fm", "mcp")
    for script in (PLUGIN / "hooks").glob("*.sh"):
        assert os.access(script, os.X_OK)
    skill = (PLUGIN / "skills" / "firm-memory" / "SKILL.md").read_text()
    assert skill.startswith("---\nname: firm-memory\ndescription: ")
