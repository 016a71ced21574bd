"""LiteLLM itself, talking to a server on this machine that answers as the hosted ones do."""

from __future__ import annotations

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from apps.memories.providers.base import ProviderError, ProviderTimeout
from apps.memories.providers.embedders.litellm import LiteLLMEmbedder
from apps.memories.providers.inmemory import InMemoryProvider
from tests.in_time import in_time

SECRET = "sk-a-key-that-must-not-be-shown"


class Server(ThreadingHTTPServer):
    """Answers with vectors of ``length`` numbers, or as told; remembers what it was asked."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[dict] = []
        self.length = 3
        self.status = 200
        self.answer = None
        self.gate: threading.Event | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def vectors(self, body: dict) -> dict:
        length = body.get("dimensions") or self.length
        rows = [
            # The first text is answered last: the index decides, not the order.
            {"object": "embedding", "index": index, "embedding": [float(len(text)), *([2.0] * (length - 1))]}
            for index, text in reversed(list(enumerate(body["input"])))
        ]
        return {"object": "list", "model": "m", "data": rows, "usage": {"prompt_tokens": 1, "total_tokens": 1}}


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append({"path": self.path, **body})
        if self.server.gate is not None:
            self.server.gate.wait(20)
        if self.server.answer is not None:
            answer = self.server.answer
        elif self.server.status != 200:
            answer = {"error": {"message": f"{body['input'][0]} {SECRET}", "code": "x", "type": "x"}}
        else:
            answer = self.server.vectors(body)
        content = json.dumps(answer).encode()
        self.send_response(self.server.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch):
    server = Server()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    monkeypatch.setenv("OPENAI_API_BASE", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("HOSTED_VLLM_API_BASE", server.url)
    yield server
    if server.gate is not None:
        server.gate.set()
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def embedder(server) -> LiteLLMEmbedder:
    return LiteLLMEmbedder("openai/own-model", dimensions=3, query_seconds=5, document_seconds=5)


def test_texts_come_back_as_unit_vectors_in_order(embedder, server):
    rows = embedder.embed_documents(["a", "four", "twelve chars"])
    assert rows.shape == (3, 3)
    assert rows.dtype == np.float32
    assert np.linalg.norm(rows, axis=1) == pytest.approx(np.ones(3))
    assert rows[:, 0].tolist() == pytest.approx([1 / 3, 4 / 24**0.5, 12 / 152**0.5])
    assert server.asked == [{"path": "/v1/embeddings", "model": "own-model", "input": ["a", "four", "twelve chars"]}]
    assert embedder.embed_query("why?").shape == (3,)
    assert embedder.embed_documents([]).shape == (0, 3)


def test_the_name_is_the_setting(embedder):
    assert (embedder.name, embedder.dimensions) == ("litellm:openai/own-model", 3)


def test_texts_and_questions_are_marked_apart_where_the_family_wants_it(server):
    embedder = LiteLLMEmbedder("hosted_vllm/intfloat/e5-base-v2", dimensions=3)
    embedder.embed_documents(["a text"])
    embedder.embed_query("a question")
    assert [each["input"] for each in server.asked] == [["passage: a text"], ["query: a question"]]


@pytest.mark.parametrize(
    ("model", "base", "document", "query"),
    [
        ("voyage/voyage-3.5", "VOYAGE_API_BASE", {"input_type": "document"}, {"input_type": "query"}),
        (
            "nvidia_nim/nvidia/nv-embedqa-e5-v5",
            "NVIDIA_NIM_API_BASE",
            {"input_type": "passage"},
            {"input_type": "query"},
        ),
        (
            "jina_ai/jina-embeddings-v3",
            "JINA_AI_API_BASE",
            {"task": "retrieval.passage"},
            {"task": "retrieval.query"},
        ),
    ],
)
def test_the_marks_reach_the_server(server, monkeypatch, model, base, document, query):
    """LiteLLM drops parameters that it does not know for a model, silently."""
    import litellm

    monkeypatch.setenv(base, server.url)
    for name in ("VOYAGE_API_KEY", "NVIDIA_NIM_API_KEY", "JINA_AI_API_KEY"):
        monkeypatch.setenv(name, SECRET)
    real = litellm.embedding
    monkeypatch.setattr(litellm, "embedding", lambda **asked: real(**asked, api_base=f"{server.url}/embeddings"))
    embedder = LiteLLMEmbedder(model, dimensions=3)
    embedder.embed_documents(["a text"])
    embedder.embed_query("a question")
    for asked, marks in zip(server.asked, (document, query), strict=True):
        assert marks.items() <= asked.items()


def test_a_length_is_asked_for_only_where_the_model_has_another(server):
    native = LiteLLMEmbedder("openai/text-embedding-3-small", dimensions=3)
    native.embed_documents(["x"])
    assert [each.get("dimensions") for each in server.asked] == [None]
    server.asked.clear()
    shortened = LiteLLMEmbedder("openai/text-embedding-3-small", dimensions=2)
    assert shortened.embed_documents(["x"]).shape == (1, 2)
    assert shortened.embed_query("x").shape == (2,)
    assert [each.get("dimensions") for each in server.asked] == [None, 2, 2]


def test_a_model_of_another_fixed_length_is_refused(embedder, server):
    server.length = 4
    with pytest.raises(ProviderError, match=r"vectors of 4 dimensions.*DIMENSIONS says 3") as caught:
        embedder.embed_query("x")
    assert caught.value.permanent


@pytest.mark.parametrize(
    ("status", "permanent"),
    [
        (400, True),
        (401, True),
        (403, True),
        (404, True),
        (422, True),
        (408, False),
        (429, False),
        (500, False),
        (502, False),
        (503, False),
    ],
)
def test_failures_say_whether_to_try_again_and_nothing_secret(embedder, server, capfd, caplog, status, permanent):
    server.status = status
    with pytest.raises(ProviderError, match="own-model could not be used") as caught:
        embedder.embed_documents(["a private text"])
    assert caught.value.permanent is permanent
    assert isinstance(caught.value, ProviderTimeout) is (status == 408)
    assert len(server.asked) == 1, "trying again is the caller's decision"
    told = [str(caught.value), *capfd.readouterr(), caplog.text]
    assert not any(SECRET in each or "a private text" in each for each in told)
    # Standard output belongs to the protocol of the MCP command.
    assert told[1] == ""


def test_a_server_that_is_not_there_is_no_permanent_failure(server, monkeypatch):
    monkeypatch.setenv("OPENAI_API_BASE", "http://127.0.0.1:9/v1")
    with pytest.raises(ProviderError) as caught:
        LiteLLMEmbedder("openai/own-model", dimensions=3, query_seconds=2).embed_query("x")
    assert not caught.value.permanent


def test_a_missing_key_is_a_permanent_failure(server, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(ProviderError, match="Check the model's name and its key") as caught:
        LiteLLMEmbedder("openai/own-model", dimensions=3).embed_query("x")
    assert caught.value.permanent


def test_a_model_that_litellm_does_not_know_is_a_permanent_failure(server):
    with pytest.raises(ProviderError) as caught:
        LiteLLMEmbedder("nonsense", dimensions=3).embed_query("x")
    assert caught.value.permanent


def test_a_slow_server_is_given_up_in_time(server):
    server.gate = threading.Event()
    embedder = LiteLLMEmbedder("openai/own-model", dimensions=3, query_seconds=0.3)

    def given_up():
        with pytest.raises(ProviderError) as caught:
            embedder.embed_query("x")
        return caught.value

    assert not in_time(given_up, below=3).permanent


@pytest.mark.parametrize(
    "answer",
    [
        {"object": "list", "model": "m", "data": [], "usage": {}},
        {"object": "list", "model": "m", "data": [{"index": 0, "embedding": ["x", "y", "z"]}], "usage": {}},
        {"object": "list", "model": "m", "data": [{"index": 0, "embedding": []}], "usage": {}},
        {"unexpected": True},
    ],
)
def test_answers_that_are_no_vectors_are_failures(embedder, server, answer):
    server.answer = answer
    with pytest.raises(ProviderError):
        embedder.embed_query("x")


def test_fewer_vectors_than_texts_are_a_failure(embedder, server):
    server.answer = {
        "object": "list",
        "model": "m",
        "data": [{"object": "embedding", "index": 0, "embedding": [1.0, 2.0, 3.0]}],
        "usage": {"prompt_tokens": 1, "total_tokens": 1},
    }
    with pytest.raises(ProviderError, match="1 vectors of 3 dimensions for 2 texts"):
        embedder.embed_documents(["one", "two"])


def test_a_vector_of_zeros_is_a_failure(embedder, server):
    server.answer = {
        "object": "list",
        "model": "m",
        "data": [{"object": "embedding", "index": 0, "embedding": [0.0, 0.0, 0.0]}],
        "usage": {"prompt_tokens": 1, "total_tokens": 1},
    }
    with pytest.raises(ProviderError, match="without a direction"):
        embedder.embed_query("x")


def test_many_texts_go_in_requests_that_hosted_models_accept(embedder, server):
    texts = [f"{number} " + "x" * (1_500 if number % 2 else 10) for number in range(150)]
    rows = embedder.embed_documents(texts)
    sent = [each["input"] for each in server.asked]
    assert [text for part in sent for text in part] == texts
    assert all(len(part) <= 64 and sum(map(len, part)) <= 100_000 for part in sent)
    assert rows[:, 0] == pytest.approx([len(text) / (len(text) ** 2 + 8) ** 0.5 for text in texts], rel=1e-5)


def test_how_much_a_model_reads_comes_from_litellms_list_or_is_small(server):
    assert LiteLLMEmbedder("openai/text-embedding-3-small", dimensions=3).max_tokens == 8_191
    assert LiteLLMEmbedder("text-embedding-3-small", dimensions=3).max_tokens == 8_191
    assert LiteLLMEmbedder("openai/own-model", dimensions=3).max_tokens == 512


def test_long_texts_are_cut_for_small_models(embedder, server):
    provider = InMemoryProvider(embedder)
    prepared = provider.prepare("word " * 700)
    assert len(prepared.passages) == 6
    assert prepared.embedder == "litellm:openai/own-model"
    assert len(server.asked) == 1


def test_the_price_list_is_not_fetched(server):
    embedder = LiteLLMEmbedder("openai/own-model", dimensions=3)
    embedder.embed_query("x")
    import litellm
    from litellm.litellm_core_utils.get_model_cost_map import get_model_cost_map

    assert "litellm" in sys.modules
    assert litellm.suppress_debug_info is True
    # With the setting in place the function answers from the file in the package, whatever the address.
    assert get_model_cost_map(url="http://127.0.0.1:9/nothing.json")
