from __future__ import annotations

import hashlib

from apps.core.screening.text import normalise_for_fingerprint
from apps.scopes.scope import Scope


def fingerprint(content: str, *, type_id: int, scope: Scope) -> str:
    """SHA-256 over what makes two statements the same: normalised content, type and scope.

    Case, spacing and a trailing full stop make no difference; another scope or type does.
    """
    parts = (
        normalise_for_fingerprint(content),
        str(type_id),
        "firm" if scope.firm else "",
        ",".join(map(str, scope.domain_ids)),
        ",".join(map(str, scope.repo_ids)),
    )
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()
