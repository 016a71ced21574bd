"""A process that has imported the product already, and forks for each piece of work that is to die.

``python -m tests.forking <module>`` reads arguments from its standard input, one JSON list a line, lets a fork of
itself call the module's ``main`` with them, and answers with its return code and what it said to standard error.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parents[1]


class Forks:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def run(self, *arguments: str) -> tuple[int, str]:
        """The return code, negative for a signal, and what was written to standard error."""
        assert self.process.stdin is not None and self.process.stdout is not None
        print(json.dumps(arguments), file=self.process.stdin, flush=True)
        code, said = json.loads(self.process.stdout.readline())
        return code, said


@contextmanager
def forks(module: str, environment: Mapping[str, str]) -> Iterator[Forks]:
    # A fork of a process with threads could wait for a lock that one of them held.
    single = dict(environment) | {"OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tests.forking", module]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, env=single, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            yield Forks(process)
        finally:
            process.kill()


def main(module: str) -> None:
    import django

    django.setup()
    work = importlib.import_module(module)
    for name in ("tests.ledger", "tests.memories.providers.doubles", "apps.memories.providers.mem0.provider"):
        importlib.import_module(name)
    for line in sys.stdin:
        with tempfile.TemporaryFile("w+") as said:
            child = os.fork()
            if not child:
                _in_fork(work.main, json.loads(line), said)
            _, status = os.waitpid(child, 0)
            said.seek(0)
            print(json.dumps([os.waitstatus_to_exitcode(status), said.read()]), flush=True)


def _in_fork(work, arguments: list[str], said: IO[str]) -> None:
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    os.dup2(0, 1)
    os.dup2(said.fileno(), 2)
    try:
        work(*arguments)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1])
