"""Django's command line, with a sentence instead of a traceback where only the person at it can help."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line
from django.db import OperationalError

from apps.core.errors import DomainError


def run(argv: Sequence[str]) -> None:
    try:
        execute_from_command_line(list(argv))
    except ImproperlyConfigured as error:
        sys.exit(str(error))
    except DomainError as error:
        sys.exit(error.detail)
    except OperationalError as error:
        from apps.core.database import down_sentence  # needs the settings, which are read by now

        sentence = down_sentence(error)
        if sentence is None:
            raise
        sys.exit(sentence)
