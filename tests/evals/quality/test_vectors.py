from __future__ import annotations

import numpy as np

from apps.evals.quality.vectors import KeptEmbedder
from tests.memories.providers.doubles import HashingEmbedder


def test_a_text_is_embedded_once_and_a_question_once_in_each_run(tmp_path):
    model = HashingEmbedder(name="local", dimensions=384)
    kept = KeptEmbedder(model, tmp_path)
    first = kept.embed_documents(["One.", "Two.", "One."])
    kept.close()
    again = KeptEmbedder(HashingEmbedder(name="local", dimensions=384), tmp_path)
    asked = []
    again._embedder.embed_documents = asked.append
    second = again.embed_documents(["Two.", "One."])
    assert asked == []
    assert np.array_equal(first[[1, 0]], second) and np.array_equal(first[0], first[2])
    assert np.array_equal(first, model.embed_documents(["One.", "Two.", "One."]))
    assert np.array_equal(again.embed_query("Who?"), again.embed_query("Who?"))
    assert again._embedder.queries == ["Who?"]
    assert again.embed_documents([]).shape == (0, 384)
    assert (again.name, again.dimensions, again.max_tokens) == (model.name, 384, model.max_tokens)
    again.close()


def test_models_keep_their_vectors_apart(tmp_path):
    for name in ("local", "litellm:acme/other"):
        KeptEmbedder(HashingEmbedder(name=name, dimensions=384), tmp_path).close()
    assert len(list(tmp_path.glob("vectors-*.sqlite"))) == 2
