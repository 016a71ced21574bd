"""What runs under a process id, zombies not counted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def program(pid: int) -> str:
    """The program of a process; empty where there is none, or only a zombie that nobody has reaped."""
    if sys.platform == "linux":
        try:
            return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0", 1)[0].decode(errors="replace")
        except OSError:
            return ""
    command = ["ps", "-o", "comm=", "-p", str(pid)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
