"""The model that comes with the installation, itself."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from apps.memories.providers.base import ProviderError
from apps.memories.providers.embedders import local
from apps.memories.providers.embedders.local import TOKENIZER, LocalEmbedder
from apps.memories.providers.embedders.passages import split_passages

TEXTS = [
    "We retry failed payments with exponential backoff, at most five times.",
    "short",
    "支払いサービスは決済サービスと別のものです。",
    "",
    "word " * 2_000,
]


@pytest.fixture(scope="module")
def embedder() -> LocalEmbedder:
    return LocalEmbedder()


def test_vectors_have_unit_length(embedder):
    rows = embedder.embed_documents(TEXTS)
    assert rows.shape == (len(TEXTS), 384)
    assert rows.dtype == np.float32
    assert np.linalg.norm(rows, axis=1) == pytest.approx(np.ones(len(TEXTS)), abs=1e-6)
    assert embedder.embed_documents([]).shape == (0, 384)


def test_a_text_has_the_same_vector_alone_and_in_company(embedder):
    together = embedder.embed_documents(TEXTS)
    alone = [embedder.embed_documents([text])[0] for text in reversed(TEXTS)]
    again = LocalEmbedder(threads=1).embed_documents(TEXTS[:2])
    assert np.array_equal(together, np.stack(alone[::-1]))
    assert again == pytest.approx(together[:2], abs=1e-5)
    assert np.array_equal(embedder.embed_query(TEXTS[0]), together[0])


def test_the_vectors_are_those_of_this_model(embedder):
    """Another model, pooling or normalisation under the same name would pass every other test."""
    expected = [-0.0348, 0.0301, 0.0130, 0.0254, -0.0375, -0.1587, 0.0688, -0.0116]
    assert embedder.embed_query("Hello world")[:8] == pytest.approx(expected, abs=2e-3)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("how often is a charge attempted again?", True),
        ("Wie oft wird eine Rückzahlung wiederholt?", True),
        ("HTTP 504", True),
        ("!?", True),
        ("支払い OMS-123", True),
        ("支払いはいつ締めますか", False),
        ("Как выплачиваются возвраты?", False),
        ("كيف تُخزَّن المبالغ", False),
        ("🚀", False),
    ],
)
def test_it_says_which_scripts_it_reads(embedder, text, read):
    assert embedder.reads(text) is read


def test_what_it_cannot_read_is_near_to_whatever_it_cannot_read(embedder):
    """Why it has to say so."""
    rows = embedder.embed_documents(["支払いは月末の営業日に締める。", "日志保留三十天。", "🚀"])
    assert (rows @ rows.T).min() > local.UNRELATED_BELOW


def test_a_question_is_nearest_to_its_answer(embedder):
    answers = [
        "We retry failed payments with exponential backoff, at most five times.",
        "The frontend team owns the design system.",
        "Feature flags are removed two weeks after a launch.",
    ]
    scores = embedder.embed_documents(answers) @ embedder.embed_query("how often is a charge attempted again?")
    assert scores.argmax() == 0


def test_spans_point_into_the_text(embedder):
    text = "Kubernetes’ naïve  retries\n支払い"
    spans = embedder.token_spans(text)
    assert text[spans[0][0] :].startswith("Kub")
    assert spans[-1][1] == len(text)
    assert len(embedder.token_spans("word " * 2_000)) == 2_000


def test_a_long_text_is_cut_so_that_the_model_reads_every_passage_whole(embedder):
    text = " ".join(f"Decision {number}: the cache of service {number} expires." for number in range(120))
    passages = split_passages(text, embedder)
    assert len(passages) > 5
    assert all(len(embedder.token_spans(passage)) + 2 <= embedder.max_tokens for passage in passages)
    assert passages[-1].endswith("expires.")


def test_it_is_loaded_once_however_many_ask(monkeypatch):
    loads = []
    real = local._session

    def counting(model, threads):
        loads.append(threads)
        return real(model, threads)

    monkeypatch.setattr(local, "_session", counting)
    embedder = LocalEmbedder(threads=1)
    threads = [threading.Thread(target=embedder.embed_query, args=("x",)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert loads == [1]


def test_nothing_is_loaded_before_it_is_needed(monkeypatch):
    monkeypatch.setattr(local, "_session", lambda *_: pytest.fail("loaded too early"))
    embedder = LocalEmbedder()
    assert (embedder.name, embedder.dimensions, embedder.max_tokens) == ("local", 384, 256)


def test_warming_up_loads_it():
    embedder = LocalEmbedder(threads=1)
    embedder.warm_up()
    assert "_load_once" in vars(embedder)


def test_another_model_file_is_refused(tmp_path):
    model = tmp_path / "model.onnx"
    model.write_bytes(b"not the model")
    with pytest.raises(ProviderError, match=r"model\.onnx .* is not the one this version was made with") as caught:
        LocalEmbedder(model=model).embed_query("x")
    assert caught.value.permanent


def test_another_tokenizer_is_refused(tmp_path):
    tokenizer = tmp_path / "tokenizer.json"
    tokenizer.write_bytes(TOKENIZER.read_bytes() + b"\n")
    with pytest.raises(ProviderError, match=r"tokenizer\.json .* is not the one"):
        LocalEmbedder(tokenizer=tokenizer).embed_query("x")


def test_a_missing_file_is_said(tmp_path):
    with pytest.raises(ProviderError, match=r"gone\.onnx .* cannot be read"):
        LocalEmbedder(model=tmp_path / "gone.onnx").embed_query("x")


def test_a_missing_package_is_said(monkeypatch):
    monkeypatch.setattr(local, "MODEL_PACKAGE", "no_such_package_at_all")
    with pytest.raises(ProviderError, match="is not installed") as caught:
        LocalEmbedder().embed_query("x")
    assert caught.value.permanent


def test_a_failed_load_is_tried_again(tmp_path):
    model = tmp_path / "model.onnx"
    embedder = LocalEmbedder(model=model)
    with pytest.raises(ProviderError):
        embedder.embed_query("x")
    model.write_bytes(local._packaged_model().read_bytes())
    assert embedder.embed_query("x").shape == (384,)
