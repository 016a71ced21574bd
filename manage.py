#!/usr/bin/env python3
"""Django's command line for Firm Memory."""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

VENV_PYTHON = Path(__file__).resolve().parent / ".venv" / "bin" / "python"


def main() -> None:
    if find_spec("django") is None and VENV_PYTHON.exists():
        # Started outside the virtual environment that `make up` made: go on inside.
        os.execv(VENV_PYTHON, [str(VENV_PYTHON), *sys.argv])  # noqa: S606
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "firmmemory.settings.dev")
    from apps.core.command_line import run

    run(sys.argv)


if __name__ == "__main__":
    main()
