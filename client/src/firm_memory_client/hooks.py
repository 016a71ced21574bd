"""What Claude Code runs at the begin and the end of a session. Neither ever fails or holds up the session.

A session that ends leaves no time to hand its transcript over, and nobody to ask. So its path is kept, and the next
session in the same checkout asks its user. FIRM_MEMORY_SESSIONS is ``ask`` (the default), ``always`` or ``never``.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from firm_memory_client.checkout import repository_of, root_of, slug_of
from firm_memory_client.client import Client
from firm_memory_client.config import settings, state_path
from firm_memory_client.errors import FirmMemoryError
from firm_memory_client.plain import plain
from firm_memory_client.writing import write_atomically

VARIABLE: Final = "FIRM_MEMORY_SESSIONS"
_SECONDS: Final = 5.0
_BUDGET: Final = 1_500
_OLDEST_SECONDS: Final = 14 * 86_400
# A transcript of a few lines has nothing in it that is worth a question.
_LEAST_BYTES: Final = 4_000
_FRESH: Final = ("startup", "clear", "")


def session_start(event: Mapping[str, Any], environ: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """What to answer to Claude Code: context for the model, and a sentence for the person where there is one."""
    folder = _folder(event)
    parts = [_context(folder, environ)]
    said = ""
    if str(event.get("source", "")) in _FRESH:
        offered = _offer(folder, environ)
        if offered:
            parts.append(offered)
            said = "Firm Memory: the last session here was not handed over. Say if it should be."
    text = "\n\n".join(filter(None, parts))
    answer: dict[str, Any] = {}
    if text:
        answer["hookSpecificOutput"] = {"hookEventName": "SessionStart", "additionalContext": text}
    return answer | ({"systemMessage": said} if said else {})


def session_end(event: Mapping[str, Any], environ: Mapping[str, str] = os.environ) -> str:
    """``kept`` for the next session to ask about, ``handed over`` in a process of its own, or ``nothing``."""
    wanted = environ.get(VARIABLE, "ask").strip().lower() or "ask"
    transcript = Path(str(event.get("transcript_path") or ""))
    folder = _folder(event)
    if wanted == "never" or repository_of(folder) is None or not _is_worth_it(transcript):
        return "nothing"
    if wanted == "always":
        _hand_over(folder, transcript, environ)
        return "handed over"
    path = _kept(folder, environ)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    kept = {"transcript": str(transcript), "session": str(event.get("session_id", "")), "at": time.time()}
    write_atomically(path, json.dumps(kept).encode(), mode=0o600)
    return "kept"


def command_for(folder: Path, transcript: Path, session: str) -> list[str]:
    """How a session is handed over: once, whoever does it and how often."""
    reference = f"claude-code:{session or transcript.stem}"
    repo = slug_of(repository_of(folder) or "")
    return [
        *("fm", "ingest", str(transcript), "--kind", "transcript", "--repo", repo),
        *("--source", "transcript", reference, "--external-id", reference),
    ]


def _folder(event: Mapping[str, Any]) -> Path:
    given = Path(str(event.get("cwd") or "."))
    return given if given.is_dir() else Path.cwd()


def _context(folder: Path, environ: Mapping[str, str]) -> str:
    repo = repository_of(folder)
    if repo is None:
        return ""
    try:
        found = settings(environ=environ)
        if found.token is None:
            return ""
        with _client(found.url, found.token.reveal()) as client:
            context = client.context(repo, budget_tokens=_BUDGET)
    except FirmMemoryError as error:
        print(f"fm: {error}", file=sys.stderr)
        return ""
    if context.degraded:
        print(f"fm: {context.note}", file=sys.stderr)
    return plain(context.text) if context.items else ""


def _client(url: str, token: str) -> Client:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        client = Client(url, token, timeout=_SECONDS, retries=0)
    for warning in caught:
        print(f"fm: {warning.message}", file=sys.stderr)
    return client


def _is_worth_it(transcript: Path) -> bool:
    try:
        return transcript.is_file() and transcript.stat().st_size >= _LEAST_BYTES
    except OSError:
        return False


def _hand_over(folder: Path, transcript: Path, environ: Mapping[str, str]) -> None:
    """Not waited for: Claude Code ends what takes longer than a moment."""
    _, *arguments = command_for(folder, transcript, transcript.stem)
    subprocess.Popen(
        [sys.executable, "-m", "firm_memory_client", *arguments],
        cwd=folder,
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _kept(folder: Path, environ: Mapping[str, str]) -> Path:
    name = hashlib.sha256(str(root_of(folder)).encode("utf-8", "surrogateescape")).hexdigest()[:24]
    return state_path(environ) / "sessions" / f"{name}.json"


def _offer(folder: Path, environ: Mapping[str, str]) -> str:
    """Asked once: whoever says no, or nothing, is not asked again about the same session."""
    path = _kept(folder, environ)
    try:
        kept = json.loads(path.read_text())
        path.unlink()
        transcript, session, at = Path(kept["transcript"]), str(kept["session"]), float(kept["at"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    if time.time() - at > _OLDEST_SECONDS or not _is_worth_it(transcript):
        return ""
    import shlex

    command = shlex.join(command_for(folder, transcript, session))
    return (
        "The last session in this checkout was not handed to the firm's memory. If the user agrees, and only then, run "
        f"this; a reviewer decides about whatever is found in it:\n{command}"
    )
