"""How each agent's client is told of Firm Memory: which file, what stands in it, and how it gets there.

The token itself is written nowhere: clients that can read it from the environment are told the variable's name, and the
others start `fm mcp`, which reads what `fm configure` keeps.
"""

from __future__ import annotations

import os
import shutil
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import InlineTable

from firm_memory_client import jsonc
from firm_memory_client.writing import write_atomically

NAME: Final = "firm-memory"
TOKEN: Final = "FIRM_MEMORY_TOKEN"  # noqa: S105 - the name of a variable
URL: Final = "FIRM_MEMORY_URL"
CLIENTS: Final = ("claude-code", "claude-desktop", "codex", "cursor", "opencode", "vscode")


class CannotConnect(ValueError):
    """A sentence that says what stands in the way."""


@dataclass(frozen=True, slots=True)
class How:
    """``server`` is the folder of an installation on this machine, which is then started by itself."""

    url: str
    root: Path
    stdio: bool = False
    server: Path | None = None
    user: bool = False
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    platform: str = sys.platform

    @property
    def home(self) -> Path:
        return Path(self.environ.get("HOME") or Path.home())

    @property
    def starts(self) -> bool:
        """Whether the client starts a process, instead of calling the address."""
        return self.stdio or self.server is not None


@dataclass(frozen=True, slots=True)
class Plan:
    """``path`` gets ``entry`` under ``keys``, and ``item`` at the end of the list ``items`` unless its id is there."""

    client: str
    path: Path
    keys: tuple[str, ...]
    entry: dict[str, Any]
    around: dict[str, Any] = field(default_factory=dict)
    item: dict[str, Any] | None = None
    notes: tuple[str, ...] = ()

    @property
    def is_toml(self) -> bool:
        return self.path.suffix == ".toml"

    @property
    def snippet(self) -> str:
        """The file where there was none."""
        return self.applied("")

    def applied(self, text: str) -> str:
        """``text`` with this in it. Raises ``CannotConnect`` for a file that cannot be read."""
        try:
            return self._toml(text) if self.is_toml else self._jsonc(text)
        except jsonc.NotJson as error:
            raise CannotConnect(f"{self.path}: {error}") from None
        except (TOMLKitError, tomllib.TOMLDecodeError) as error:
            raise CannotConnect(f"{self.path}: It is no TOML. {error}") from None

    def _jsonc(self, text: str) -> str:
        known = jsonc.loads(text)
        if not isinstance(known, dict):
            raise jsonc.NotJson("The whole is no object. Mend it by hand.")
        for name, value in self.around.items():
            if name not in known:
                text = jsonc.with_member(text, (name,), value)
        if self.item is not None:
            there = known.get("inputs")
            listed = there if isinstance(there, list) else []
            if not any(isinstance(each, dict) and each.get("id") == self.item["id"] for each in listed):
                text = jsonc.with_item(text, "inputs", self.item)
        return jsonc.with_member(text, self.keys, self.entry)

    def _toml(self, text: str) -> str:
        document = tomlkit.parse(text)
        table: Any = document
        for key in self.keys[:-1]:
            if key not in table:
                table[key] = tomlkit.table(is_super_table=True)
            table = table[key]
            if not isinstance(table, dict):
                raise CannotConnect(f"{self.path}: {key} is no table. Mend it by hand.")
        name = self.keys[-1]
        if name in table and table[name] == self.entry:
            return text
        made: Any = tomlkit.inline_table() if isinstance(table, InlineTable) else tomlkit.table()
        for key, value in self.entry.items():
            made[key] = value
        table[name] = made
        after = tomlkit.dumps(document)
        tomllib.loads(after)
        return after


def plan_for(client: str, how: How) -> Plan:
    makers = {
        "claude-code": _claude_code,
        "claude-desktop": _claude_desktop,
        "codex": _codex,
        "cursor": _cursor,
        "opencode": _opencode,
        "vscode": _vscode,
    }
    return makers[client](how)


@dataclass(frozen=True, slots=True)
class Result:
    path: Path
    changed: bool
    backup: Path | None


def write(plan: Plan, root: Path | None = None) -> Result:
    """Put it into its file; what else is there stays, and the file as it was is kept beside it.

    ``root``: where the file must lie, also when a link leads to it.
    """
    try:
        path = plan.path.resolve()
    except (OSError, RuntimeError):
        raise CannotConnect(f"{plan.path} is, or lies behind, a link that leads in a circle.") from None
    if root is not None and not path.is_relative_to(root.resolve()):
        raise CannotConnect(f"{plan.path} leads out of the checkout. Write it by hand, or use --user.")
    try:
        before = path.read_bytes().decode("utf-8") if path.exists() else ""
    except UnicodeDecodeError:
        raise CannotConnect(f"{plan.path} cannot be read as UTF-8.") from None
    except OSError as error:
        raise CannotConnect(f"{plan.path} cannot be read: {error.strerror or error}.") from None
    after = plan.applied(before)
    if after == before:
        return Result(plan.path, False, None)
    try:
        backup = _kept(path) if before else None
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, after.encode())
    except OSError as error:
        raise CannotConnect(f"{plan.path} cannot be written: {error.strerror or error}.") from None
    return Result(plan.path, True, backup)


def _kept(path: Path) -> Path:
    backup, number = path.with_name(f"{path.name}.bak"), 1
    while backup.exists():
        backup, number = path.with_name(f"{path.name}.bak{number}"), number + 1
    shutil.copy2(path, backup)
    return backup


# --- each client ------------------------------------------------------------------------------------------
def _endpoint(how: How) -> str:
    return f"{how.url}/mcp"


def _started(how: How, *, folder: str | None = None) -> tuple[str, list[str]]:
    """The command of a process that speaks MCP, and its arguments."""
    more = ["--folder", folder] if folder else []
    if how.server is None:
        return "fm", ["mcp", *more]
    server = how.server.resolve()
    if not (server / "manage.py").is_file():
        raise CannotConnect(f"There is no installation of Firm Memory in {how.server}: it has no manage.py.")
    return str(server / ".venv" / "bin" / "python"), [str(server / "manage.py"), "mcp", *more]


def _variables(how: How, reference: str) -> dict[str, str]:
    """``reference`` holds ``NAME`` where the variable's name goes."""
    variables = {TOKEN: reference.replace("NAME", TOKEN)}
    return variables if how.server else variables | {URL: how.url}


_SET: Final = f"Put the token into the environment that it is started from: export {TOKEN}=…"


def _claude_code(how: How) -> Plan:
    path = how.home / ".claude.json" if how.user else how.root / ".mcp.json"
    if how.starts:
        command, arguments = _started(how)
        entry: dict[str, Any] = {"command": command, "args": arguments, "env": _variables(how, "${NAME}")}
    else:
        entry = {"type": "http", "url": _endpoint(how), "headers": {"Authorization": f"Bearer ${{{TOKEN}}}"}}
    return Plan("claude-code", path, ("mcpServers", NAME), entry, notes=(_SET,))


def _claude_desktop(how: How) -> Plan:
    """It starts processes alone and replaces no variables, so the token stays in what `fm configure` keeps."""
    if how.server is not None:
        raise CannotConnect(
            "Claude Desktop reads no variables, so the token would stand in its file. Leave --server out: `fm mcp` "
            "reads the token that `fm configure` keeps."
        )
    if how.platform == "darwin":
        folder = how.home / "Library" / "Application Support" / "Claude"
    elif how.platform == "win32":
        folder = Path(how.environ.get("APPDATA") or how.home / "AppData" / "Roaming") / "Claude"
    else:
        folder = how.home / ".config" / "Claude"
    command = shutil.which("fm") or "fm"
    entry = {"command": command, "args": ["mcp", "--url", how.url]}
    notes = (f"Run `fm configure --url {how.url}` first: it keeps the token.", "Then restart Claude Desktop.")
    return Plan("claude-desktop", folder / "claude_desktop_config.json", ("mcpServers", NAME), entry, notes=notes)


def _codex(how: How) -> Plan:
    home = Path(how.environ.get("CODEX_HOME") or how.home / ".codex")
    path = home / "config.toml" if how.user else how.root / ".codex" / "config.toml"
    if how.starts:
        command, arguments = _started(how)
        entry: dict[str, Any] = {"command": command, "args": arguments, "env_vars": [TOKEN]}
        if how.server is None:
            entry["env"] = {URL: how.url}
    else:
        entry = {"url": _endpoint(how), "bearer_token_env_var": TOKEN}
    notes = (_SET,) if how.user else (_SET, "Codex reads the file of a project that it trusts.")
    return Plan("codex", path, ("mcp_servers", NAME), entry, notes=notes)


def _cursor(how: How) -> Plan:
    path = (how.home if how.user else how.root) / ".cursor" / "mcp.json"
    if how.starts:
        command, arguments = _started(how, folder="${workspaceFolder}")
        entry: dict[str, Any] = {"command": command, "args": arguments, "env": _variables(how, "${env:NAME}")}
    else:
        entry = {"url": _endpoint(how), "headers": {"Authorization": f"Bearer ${{env:{TOKEN}}}"}}
    return Plan("cursor", path, ("mcpServers", NAME), entry, notes=(_SET,))


def _opencode(how: How) -> Plan:
    folder = how.home / ".config" / "opencode" if how.user else how.root
    there = [folder / name for name in ("opencode.jsonc", "opencode.json") if (folder / name).exists()]
    path = there[0] if there else folder / "opencode.json"
    if how.starts:
        command, arguments = _started(how)
        entry: dict[str, Any] = {
            "type": "local",
            "command": [command, *arguments],
            "environment": _variables(how, "{env:NAME}"),
        }
    else:
        entry = {
            "type": "remote",
            "url": _endpoint(how),
            "headers": {"Authorization": f"Bearer {{env:{TOKEN}}}"},
            "oauth": False,
        }
    first = _is_first_version(path)
    keys = ("mcp", NAME) if first else ("mcp", "servers", NAME)
    schema = {"$schema": "https://opencode.ai/config.json"}
    notes = (_SET, *(["The file is one of OpenCode 1, where servers stand directly under mcp."] if first else []))
    return Plan("opencode", path, keys, entry, around=schema, notes=notes)


def _is_first_version(path: Path) -> bool:
    """Servers stand directly under ``mcp``; since version 2 they stand under ``mcp.servers``."""
    try:
        said = jsonc.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    servers = said.get("mcp") if isinstance(said, dict) else None
    return isinstance(servers, dict) and any(
        isinstance(each, dict) and each.get("type") in ("local", "remote") for each in servers.values()
    )


def _vscode(how: How) -> Plan:
    if how.user:
        raise CannotConnect("VS Code keeps what is yours in its profile: run `MCP: Open User Configuration` there.")
    asked = {
        "type": "promptString",
        "id": "firm-memory-token",
        "description": "Token of Firm Memory",
        "password": True,
    }
    if how.starts:
        command, arguments = _started(how, folder="${workspaceFolder}")
        variables = _variables(how, "${input:firm-memory-token}")
        entry: dict[str, Any] = {"type": "stdio", "command": command, "args": arguments, "env": variables}
    else:
        entry = {
            "type": "http",
            "url": _endpoint(how),
            "headers": {"Authorization": "Bearer ${input:firm-memory-token}"},
        }
    path = how.root / ".vscode" / "mcp.json"
    return Plan("vscode", path, ("servers", NAME), entry, item=asked, notes=("VS Code asks for the token once.",))
