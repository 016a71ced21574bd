"""``fm mcp``: an agent's client that starts a process speaks to it over stdio, and it speaks to the service over HTTP.

It adds what HTTP cannot know, the repository that is checked out here, and keeps the token out of the client's files.
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import IO, Any, Final

from firm_memory_client.errors import FirmMemoryError
from firm_memory_client.transport import Reply, Transport

MAX_LINE: Final = 32 * 1024 * 1024
_AT_ONCE: Final = 8
_VERSION_KEY: Final = "io.modelcontextprotocol/protocolVersion"
_NAMED_BY: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_INTERNAL: Final = -32603
_PARSE: Final = -32700
# Tools that take one repository, and what else says where to look.
_ONE: Final = frozenset({"memory_search", "memory_context", "memory_decisions", "memory_ingest"})

Message = dict[str, Any]


class Bridge:
    def __init__(self, transport: Transport, out: IO[bytes], *, repo: str | None, timeout: float) -> None:
        self._transport = transport
        self._out = out
        self._repo = repo
        self._timeout = timeout
        self._version = ""
        self._writing = Lock()

    def serve(self, lines: Iterable[bytes]) -> None:
        """Until there is no more line. Calls go side by side, what greets goes alone."""
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for line in lines:
                if not line.strip():
                    continue
                message = _message(line)
                if message is None:
                    self._say(_error(None, _PARSE, "That is no JSON-RPC message."))
                elif message.get("method") in ("tools/call", "resources/read"):
                    pool.submit(self.pass_on, message)
                else:
                    self.pass_on(message)

    def pass_on(self, message: Message) -> None:
        number = message.get("id")
        asks = "method" in message and number is not None
        try:
            sent = self._with_repository(message)
            reply = self._transport.post_once("mcp", sent, self._headers(sent), timeout=self._timeout)
            answer = _answer(reply)
        except FirmMemoryError as error:
            answer = _error(number, _INTERNAL, str(error))
        except Exception as error:
            # Whatever happens, whoever asked gets an answer.
            print(f"fm mcp: {type(error).__name__}", file=sys.stderr)
            answer = _error(number, _INTERNAL, "The call failed here, before it reached Firm Memory.")
        if not asks:
            return
        if answer is not None:
            answer["id"] = number
        else:
            answer = _error(number, _INTERNAL, f"{self._transport.base_url} gave no answer that an agent can read.")
        if message["method"] == "initialize":
            self._version = str(_dug(answer, "result", "protocolVersion") or "")
        if message["method"] == "tools/list" and self._repo:
            _without_need_of_repo(answer)
        self._say(answer)

    def _headers(self, message: Mapping[str, Any]) -> dict[str, str]:
        method = str(message.get("method", ""))
        headers = {"Accept": "application/json, text/event-stream"}
        version = _dug(message, "params", "_meta", _VERSION_KEY) or self._version
        if version and method != "initialize":
            headers["MCP-Protocol-Version"] = _header(str(version))
        if method:
            headers["Mcp-Method"] = _header(method)
        name = _dug(message, "params", _NAMED_BY.get(method, ""))
        if isinstance(name, str):
            headers["Mcp-Name"] = _header(name)
        return headers

    def _with_repository(self, message: Message) -> Message:
        """The same, with the repository checked out here where the agent named nothing that says where."""
        tool, given = _dug(message, "params", "name"), _dug(message, "params", "arguments")
        if self._repo is None or message.get("method") != "tools/call" or not isinstance(given, dict | None):
            return message
        given = dict(given or {})
        if tool in _ONE and "repo" not in given and "domains" not in given:
            given["repo"] = self._repo
        elif tool == "memory_propose" and not ({"repos", "domains", "firm"} & set(given)):
            given["repos"] = [self._repo]
        else:
            return message
        return message | {"params": dict(message["params"]) | {"arguments": given}}

    def _say(self, answer: Message) -> None:
        line = json.dumps(answer).encode() + b"\n"
        with self._writing:
            self._out.write(line)
            self._out.flush()


def lines_of(stream: IO[bytes]) -> Iterable[bytes]:
    """Bounded, so that nobody fills the memory by never ending a line."""
    while line := stream.readline(MAX_LINE):
        yield line


def _message(line: bytes) -> Message | None:
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return said if isinstance(said, dict) else None


def _answer(reply: Reply) -> Message | None:
    """What the service answers; a refusal before any tool, such as of a token, as an error of the protocol."""
    try:
        said = json.loads(reply.body) if reply.body else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(said, dict):
        return None
    if "jsonrpc" in said:
        return said
    return None if reply.status < 400 else _error(None, _INTERNAL, str(said.get("detail") or f"HTTP {reply.status}."))


def _error(number: Any, code: int, text: str) -> Message:
    return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": text}}


def _dug(value: Any, *path: str) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _header(value: str) -> str:
    """As the protocol writes into a header what a header cannot hold."""
    if value.isascii() and value.isprintable() and value == value.strip():
        return value
    return f"=?base64?{base64.b64encode(value.encode('utf-8', 'surrogatepass')).decode()}?="


def _without_need_of_repo(answer: Message) -> None:
    for tool in _dug(answer, "result", "tools") or []:
        schema = _dug(tool, "inputSchema")
        if tool.get("name") in _ONE and isinstance(schema, dict) and "repo" in schema.get("required", []):
            schema["required"] = [name for name in schema["required"] if name != "repo"]
