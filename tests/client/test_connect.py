"""What `fm connect` prints and writes, for each client, and what else is in the file."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from firm_memory_client import jsonc
from firm_memory_client.connect import CLIENTS, CannotConnect, How, plan_for, write

TOKEN = "fm_agent_a-secret-that-nobody-may-see"
ENV = {"FIRM_MEMORY_URL": "https://memory.example.com", "FIRM_MEMORY_TOKEN": TOKEN}
REFERENCE = "${FIRM_MEMORY_TOKEN}"

ENTRIES = {
    ("claude-code", ""): (
        ".mcp.json",
        ("mcpServers",),
        {"type": "http", "url": "https://memory.example.com/mcp", "headers": {"Authorization": f"Bearer {REFERENCE}"}},
    ),
    ("claude-code", "--stdio"): (
        ".mcp.json",
        ("mcpServers",),
        {
            "command": "fm",
            "args": ["mcp"],
            "env": {"FIRM_MEMORY_TOKEN": REFERENCE, "FIRM_MEMORY_URL": "https://memory.example.com"},
        },
    ),
    ("codex", ""): (
        ".codex/config.toml",
        ("mcp_servers",),
        {"url": "https://memory.example.com/mcp", "bearer_token_env_var": "FIRM_MEMORY_TOKEN"},
    ),
    ("codex", "--stdio"): (
        ".codex/config.toml",
        ("mcp_servers",),
        {
            "command": "fm",
            "args": ["mcp"],
            "env_vars": ["FIRM_MEMORY_TOKEN"],
            "env": {"FIRM_MEMORY_URL": "https://memory.example.com"},
        },
    ),
    ("cursor", ""): (
        ".cursor/mcp.json",
        ("mcpServers",),
        {
            "url": "https://memory.example.com/mcp",
            "headers": {"Authorization": "Bearer ${env:FIRM_MEMORY_TOKEN}"},
        },
    ),
    ("opencode", ""): (
        "opencode.json",
        ("mcp", "servers"),
        {
            "type": "remote",
            "url": "https://memory.example.com/mcp",
            "headers": {"Authorization": "Bearer {env:FIRM_MEMORY_TOKEN}"},
            "oauth": False,
        },
    ),
    ("opencode", "--stdio"): (
        "opencode.json",
        ("mcp", "servers"),
        {
            "type": "local",
            "command": ["fm", "mcp"],
            "environment": {
                "FIRM_MEMORY_TOKEN": "{env:FIRM_MEMORY_TOKEN}",
                "FIRM_MEMORY_URL": "https://memory.example.com",
            },
        },
    ),
    ("vscode", ""): (
        ".vscode/mcp.json",
        ("servers",),
        {
            "type": "http",
            "url": "https://memory.example.com/mcp",
            "headers": {"Authorization": "Bearer ${input:firm-memory-token}"},
        },
    ),
}


def read(path: Path) -> dict:
    text = path.read_text()
    return tomllib.loads(text) if path.suffix == ".toml" else jsonc.loads(text)


def dug(value: dict, *path: str) -> dict:
    for name in path:
        value = value[name]
    return value


@pytest.mark.parametrize(("client", "how"), ENTRIES, ids=[f"{client} {how}".strip() for client, how in ENTRIES])
def test_what_is_printed_is_what_is_written(client, how, checkout, fm):
    name, keys, entry = ENTRIES[client, how]
    arguments = [client, *filter(None, [how])]
    printed = fm("connect", *arguments, env=ENV)
    assert (printed.code, (checkout / name).exists()) == (0, False)
    written = fm("connect", *arguments, "--write", env=ENV)
    assert written.code == 0
    assert (checkout / name).read_text().rstrip() == printed.out.rstrip()
    assert dug(read(checkout / name), *keys) == {"firm-memory": entry}
    assert fm("connect", *arguments, "--write", env=ENV).out == f"{checkout / name} holds it already.\n"


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("how", ["", "--stdio", "--user"])
def test_the_token_stands_in_no_file(client, how, checkout, fm, home):
    arguments = [client, *filter(None, [how]), "--write"]
    ended = fm("connect", *arguments, env=ENV)
    assert ended.code == (2 if (client, how) == ("vscode", "--user") else 0)
    texts = [
        path.read_text()
        for folder in (checkout, home)
        for path in folder.rglob("*")
        if path.suffix in (".json", ".toml")
    ]
    assert ended.code or any("firm-memory" in text for text in texts)
    assert TOKEN not in "".join([*texts, ended.out, ended.err])


def test_claude_desktop_starts_fm_which_knows_the_token(fm, home, checkout):
    ended = fm("connect", "claude-desktop", "--write", env=ENV)
    entry = read(home / ".config/Claude/claude_desktop_config.json")["mcpServers"]["firm-memory"]
    assert entry["args"] == ["mcp", "--url", "https://memory.example.com"]
    assert Path(entry["command"]).name == "fm"
    assert "fm configure" in ended.err


@pytest.mark.parametrize(
    ("platform", "path"),
    [
        ("darwin", "Library/Application Support/Claude"),
        ("win32", "AppData/Roaming/Claude"),
        ("linux", ".config/Claude"),
    ],
)
def test_claude_desktop_is_looked_for_where_it_is(platform, path, tmp_path):
    how = How(url="https://m", root=tmp_path, environ={"HOME": str(tmp_path)}, platform=platform)
    assert plan_for("claude-desktop", how).path == tmp_path / path / "claude_desktop_config.json"


def test_an_installation_on_this_machine_is_started(tmp_path):
    server = tmp_path / "srv"
    server.mkdir()
    with pytest.raises(CannotConnect, match="no installation"):
        plan_for("codex", How(url="https://m", root=tmp_path, server=server))
    (server / "manage.py").touch()
    how = How(url="https://m", root=tmp_path, server=server)
    assert plan_for("codex", how).entry == {
        "command": f"{server}/.venv/bin/python",
        "args": [f"{server}/manage.py", "mcp"],
        "env_vars": ["FIRM_MEMORY_TOKEN"],
    }
    assert plan_for("cursor", how).entry["args"][-2:] == ["--folder", "${workspaceFolder}"]
    with pytest.raises(CannotConnect, match="reads no variables"):
        plan_for("claude-desktop", how)


JSONC = """{
\t// Ours, and dear to us.
\t"servers": {
\t\t"github": {"url": "https://api.example.com/mcp/"}, // with a comment
\t},
\t"inputs": [
\t\t/* asked once */
\t\t{"id": "other", "type": "promptString"}
\t],
}
"""


def test_other_entries_and_comments_stay_in_json_with_comments(checkout, fm):
    path = checkout / ".vscode" / "mcp.json"
    path.parent.mkdir()
    path.write_text(JSONC)
    ended = fm("connect", "vscode", "--write", "--json", env=ENV)
    after = path.read_text()
    for line in JSONC.splitlines()[:4]:
        assert line in after
    assert "/* asked once */" in after
    said = jsonc.loads(after)
    assert list(said["servers"]) == ["github", "firm-memory"]
    assert [each["id"] for each in said["inputs"]] == ["other", "firm-memory-token"]
    assert Path(ended.data["backup"]).read_text() == JSONC
    assert ended.data["changed"] is True
    again = fm("connect", "vscode", "--write", "--json", env=ENV)
    assert (again.data["changed"], again.data["backup"], path.read_text()) == (False, None, after)


def test_an_older_entry_is_replaced_and_nothing_else(checkout, fm):
    path = checkout / ".mcp.json"
    path.write_text('{"mcpServers": {"firm-memory": {"type": "sse", "url": "x"}, "b": {"command": "b"}}, "z": 1}')
    fm("connect", "claude-code", "--write", env=ENV)
    said = json.loads(path.read_text())
    assert list(said["mcpServers"]) == ["firm-memory", "b"]
    assert said["mcpServers"]["firm-memory"]["type"] == "http"
    assert (said["mcpServers"]["b"], said["z"]) == ({"command": "b"}, 1)
    fm("connect", "claude-code", "--stdio", "--write", env=ENV)
    assert sorted(each.name for each in checkout.glob(".mcp.json.*")) == [".mcp.json.bak", ".mcp.json.bak1"]


TOML = """# Mine.
model = "o5"  # the big one

[mcp_servers.github]
url = "https://api.example.com/mcp/"

[profiles.fast]
model = "mini"
"""


def test_other_tables_and_comments_stay_in_toml(fm, home, checkout):
    path = home / ".codex" / "config.toml"
    path.parent.mkdir()
    path.write_text(TOML)
    assert fm("connect", "codex", "--user", "--write", env=ENV).code == 0
    after = path.read_text()
    assert after.startswith(TOML.split("\n[profiles")[0])
    said = tomllib.loads(after)
    assert list(said["mcp_servers"]) == ["github", "firm-memory"]
    assert said["profiles"] == {"fast": {"model": "mini"}}
    assert "already" in fm("connect", "codex", "--user", "--write", env=ENV).out
    fm("connect", "codex", "--user", "--write", "--stdio", env=ENV)
    assert tomllib.loads(path.read_text())["mcp_servers"]["firm-memory"]["command"] == "fm"


def test_a_file_of_opencode_one_keeps_its_shape(checkout, fm):
    path = checkout / "opencode.jsonc"
    path.write_text('{"mcp": {"jira": {"type": "remote", "url": "https://jira.example.com/mcp"}}}')
    ended = fm("connect", "opencode", "--write", env=ENV)
    assert list(read(path)["mcp"]) == ["jira", "firm-memory"]
    assert "OpenCode 1" in ended.err


@pytest.mark.parametrize(
    ("name", "client", "text"),
    [
        (".mcp.json", "claude-code", '{"mcpServers": ['),
        (".mcp.json", "claude-code", '{"mcpServers": []}'),
        (".mcp.json", "claude-code", "[]"),
        (".vscode/mcp.json", "vscode", "[1]"),
        (".cursor/mcp.json", "cursor", '"text"'),
        ("opencode.json", "opencode", "3"),
        (".mcp.json", "claude-code", "[" * 5000),
        (".codex/config.toml", "codex", "[mcp_servers"),
        (".codex/config.toml", "codex", "mcp_servers = 1"),
        (".vscode/mcp.json", "vscode", '{"inputs": {}}'),
    ],
    ids=["cut", "a list", "no object", "items", "text", "number", "deep", "no TOML", "a number", "inputs"],
)
def test_a_file_that_cannot_be_changed_is_left_alone(name, client, text, checkout, fm):
    path = checkout / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    ended = fm("connect", client, "--write", env=ENV)
    assert (ended.code, path.read_text()) == (2, text)
    assert name in ended.err


def test_a_link_out_of_the_checkout_is_not_written_to(checkout, fm, tmp_path):
    outside = tmp_path / "theirs.json"
    outside.write_text("{}")
    (checkout / ".mcp.json").symlink_to(outside)
    ended = fm("connect", "claude-code", "--write", env=ENV)
    assert (ended.code, outside.read_text()) == (2, "{}")


# --- JSON with comments ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '{\n  "a": {\n    "b": 1\n  }\n}\n'),
        ("{}", '{\n  "a": {\n    "b": 1\n  }\n}'),
        ('{"x": 0}', '{"x": 0,\n  "a": {\n    "b": 1\n  }\n}'),
        ('{\n    "x": 0 // why\n}\n', '{\n    "x": 0, // why\n    "a": {\n        "b": 1\n    }\n}\n'),
        ('{\n  "x": 0, // why\n}\n', '{\n  "x": 0, // why\n  "a": {\n    "b": 1\n  },\n}\n'),
        ('{\r\n  "a": {}\r\n}\r\n', '{\r\n  "a": {\r\n    "b": 1\r\n  }\r\n}\r\n'),
        ('{"a": {"b": [1, /* , */ "}"]}}', '{"a": {"b": 1}}'),
        ('{"a": {"b": 0}, "a": {"b": 2}}', '{"a": {"b": 0}, "a": {"b": 1}}'),
        ('\ufeff{"a": {"b": 1}}', '\ufeff{"a": {"b": 1}}'),
    ],
)
def test_one_place_changes_and_nothing_else(before, after):
    changed = jsonc.with_member(before, ("a", "b"), 1)
    assert changed.rstrip() == after.rstrip()
    assert jsonc.loads(changed)["a"]["b"] == 1
    assert jsonc.with_member(changed, ("a", "b"), 1) == changed


@pytest.mark.parametrize(
    "text", ["{", '{"a" 1}', '{"a": tru}', '{"a": 1} x', '{"a": "\n"}', "{/*}", '{"a": 1 "b": 2}', "{,}"]
)
def test_what_is_no_json_is_said_with_its_line(text):
    with pytest.raises(jsonc.NotJson, match="line 1"):
        jsonc.loads(text)


@pytest.mark.parametrize(
    "text",
    ['mcp_servers = {a = {url = "x"}}\n', "mcp_servers = {}\n", 'mcp_servers.x.url = "y"\n[other]\na = 1\n'],
    ids=["inline", "empty", "dotted"],
)
def test_servers_of_codex_in_other_spellings_stay_and_ours_is_added(text, tmp_path):
    plan = plan_for("codex", How("https://memory.example.com", tmp_path))
    before, after = tomllib.loads(text), tomllib.loads(plan.applied(text))
    assert after["mcp_servers"].pop("firm-memory") == plan.entry
    assert after == before
    assert plan.applied(plan.applied(text)) == plan.applied(text)


@pytest.mark.parametrize("there", ["file", "circle"])
def test_a_folder_that_is_none_is_a_sentence_and_no_traceback(there, tmp_path):
    folder = tmp_path / ".cursor"
    folder.touch() if there == "file" else folder.symlink_to(".cursor")
    with pytest.raises(CannotConnect, match=r"cannot be written|in a circle"):
        write(plan_for("cursor", How("https://memory.example.com", tmp_path)), tmp_path)


@pytest.mark.parametrize("client", [each for each in CLIENTS if each != "claude-desktop"])
def test_a_folder_in_the_place_of_the_file_is_said(client, tmp_path):
    plan = plan_for(client, How("https://memory.example.com", tmp_path))
    plan.path.mkdir(parents=True)
    with pytest.raises(CannotConnect, match="Is a directory"):
        write(plan, tmp_path)
