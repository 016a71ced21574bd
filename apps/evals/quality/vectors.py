"""Embeddings that are made once: of a text that was embedded before by the same model, the vector is looked up."""

from __future__ import annotations

import hashlib
import re
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from apps.memories.providers.embedders.base import Embedder, Matrix
from apps.memories.providers.embedders.local import MODEL_SHA256, NAME

_ASKED_AT_ONCE: Final = 500


class KeptEmbedder:
    """Passes for the embedder that it is given, with its documents' vectors kept in a file.

    A question is embedded once, and kept only while this is in use: how long it takes belongs to what is measured.
    """

    def __init__(self, embedder: Embedder, folder: Path) -> None:
        self._embedder = embedder
        self._lock = threading.Lock()
        self._asked: dict[str, Matrix] = {}
        folder.mkdir(parents=True, exist_ok=True)
        # The provider embeds in threads of its own, one at a time.
        self._kept = sqlite3.connect(folder / f"vectors-{_model(embedder)}.sqlite", check_same_thread=False)
        self._kept.execute("CREATE TABLE IF NOT EXISTS vectors (text BLOB PRIMARY KEY, vector BLOB) WITHOUT ROWID")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._embedder, name)

    def reads(self, text: str) -> bool:
        return self._embedder.reads(text)

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        names = [hashlib.sha256(text.encode()).digest() for text in texts]
        with self._lock:
            known = dict(self._look_up(names))
            fresh = {name: text for name, text in zip(names, texts, strict=True) if name not in known}
            if fresh:
                made = self._embedder.embed_documents(list(fresh.values()))
                known |= dict(zip(fresh, made, strict=True))
                self._keep({name: known[name] for name in fresh})
        if not names:
            return np.empty((0, self._embedder.dimensions), np.float32)
        return np.stack([known[name] for name in names])

    def embed_query(self, text: str) -> Matrix:
        if text not in self._asked:
            self._asked[text] = self._embedder.embed_query(text)
        return self._asked[text]

    def close(self) -> None:
        self._kept.close()

    def _look_up(self, names: Sequence[bytes]) -> Iterator[tuple[bytes, Matrix]]:
        for start in range(0, len(names), _ASKED_AT_ONCE):
            asked = names[start : start + _ASKED_AT_ONCE]
            marks = ", ".join("?" * len(asked))
            rows = self._kept.execute(f"SELECT text, vector FROM vectors WHERE text IN ({marks})", asked)
            yield from ((name, np.frombuffer(vector, np.float32)) for name, vector in rows)

    def _keep(self, rows: dict[bytes, Matrix]) -> None:
        with self._kept:
            self._kept.executemany(
                "INSERT OR IGNORE INTO vectors VALUES (?, ?)",
                [(name, vector.astype(np.float32).tobytes()) for name, vector in rows.items()],
            )


def _model(embedder: Embedder) -> str:
    """A name for the file; the model that comes along has its checksum in it, as it may be another one some day."""
    version = f"-{MODEL_SHA256[:8]}" if embedder.name == NAME else ""
    return re.sub(r"[^a-zA-Z0-9.-]+", "-", f"{embedder.name}-{embedder.dimensions}{version}")
