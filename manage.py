#!/usr/bin/env python
"""Django's command line for Firm Memory."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "firmmemory.settings.dev")
    from apps.core.command_line import run

    run(sys.argv)


if __name__ == "__main__":
    main()
