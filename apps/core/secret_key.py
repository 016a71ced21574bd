"""The secret key of an installation on one machine: made on first start, kept in the data folder."""

from __future__ import annotations

import secrets
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

FILE_NAME = "secret_key"


def persistent_secret_key(data_dir: Path) -> str:
    """Return the key kept in ``data_dir``, making it first where there is none.

    Web, worker and commands may start at the same moment: all of them get the same key.
    """
    path = data_dir / FILE_NAME
    try:
        if not path.exists():
            _create(path)
        key = path.read_text().strip()
    except PermissionError as error:
        raise ImproperlyConfigured(
            f"{error.filename} is not accessible to this user. Run as the user who made the data folder, "
            "set SECRET_KEY, or set FIRM_MEMORY_DATA_DIR to a folder of your own."
        ) from None
    if len(key) < 50:
        raise ImproperlyConfigured(
            f"{path} is damaged: it holds fewer than 50 characters. Remove it and start again; "
            "everyone then signs in anew."
        )
    return key


def _create(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{FILE_NAME}.{secrets.token_hex(8)}")
    draft.touch(mode=0o600)
    draft.write_text(secrets.token_urlsafe(64) + "\n")
    try:
        # A hard link appears complete or not at all, and fails where another process was first.
        path.hardlink_to(draft)
    except FileExistsError:
        pass
    finally:
        draft.unlink()
