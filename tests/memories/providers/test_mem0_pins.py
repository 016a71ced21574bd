"""What Firm Memory relies on in mem0, so that an upgrade that changes it fails here and not in the pool."""

from __future__ import annotations

import importlib.metadata
import inspect
import json

import pytest

from apps.memories.providers.base import ProviderError
from apps.memories.providers.mem0 import parts, slots

from .doubles import a_record, store


@pytest.fixture
def memory(embedder):
    return parts.build_memory(collection="fm_pool_g900", embedder=embedder)


def parameters(function) -> list[str]:
    return list(inspect.signature(function).parameters)


def test_the_version_is_the_one_that_was_read():
    assert importlib.metadata.version("mem0ai") == "2.2.1"


def test_telemetry_is_off():
    from mem0.memory import telemetry

    assert telemetry.MEM0_TELEMETRY is False


def test_the_interfaces_that_our_classes_fill():
    from mem0.embeddings.base import EmbeddingBase
    from mem0.llms.base import LLMBase
    from mem0.vector_stores.base import VectorStoreBase

    assert VectorStoreBase.__abstractmethods__ == {
        *("create_col", "insert", "search", "delete", "update", "get"),
        *("list_cols", "delete_col", "col_info", "list", "reset"),
    }
    assert parameters(VectorStoreBase.insert) == ["self", "vectors", "payloads", "ids"]
    assert parameters(VectorStoreBase.search) == ["self", "query", "vectors", "top_k", "filters"]
    assert parameters(VectorStoreBase.get) == ["self", "vector_id"]
    assert EmbeddingBase.__abstractmethods__ == {"embed"}
    assert parameters(EmbeddingBase.embed) == ["self", "text", "memory_action"]
    assert parameters(EmbeddingBase.embed_batch) == ["self", "texts", "memory_action"]
    assert LLMBase.__abstractmethods__ == {"generate_response"}
    for ours, base in (
        (slots.PoolStore, VectorStoreBase),
        (slots.EmbedderSlot, EmbeddingBase),
        (slots.NoLanguageModel, LLMBase),
    ):
        assert issubclass(ours, base)
        assert not ours.__abstractmethods__
    assert parameters(slots.PoolStore.insert) == parameters(VectorStoreBase.insert)
    assert parameters(slots.PoolStore.search) == parameters(VectorStoreBase.search)
    # Without an override mem0 would warn at every start that hybrid search is off.
    assert slots.PoolStore.keyword_search is not VectorStoreBase.keyword_search


def test_the_history_has_every_method_of_the_file_it_replaces():
    from mem0.memory.storage import SQLiteManager

    theirs = {name for name in vars(SQLiteManager) if not name.startswith("_")} - {"connection"}
    ours = {name for name in vars(slots.NoHistory) if not name.startswith("_")}
    assert theirs == ours


def test_the_tables_of_classes_by_which_ours_are_put_in():
    from mem0.utils import factory

    assert factory.VectorStoreFactory.provider_to_class["pgvector"] == "mem0.vector_stores.pgvector.PGVector"
    assert factory.EmbedderFactory.provider_to_class["fastembed"] == ("mem0.embeddings.fastembed.FastEmbedEmbedding")
    assert factory.LlmFactory.provider_to_class["openai"][0] == "mem0.llms.openai.OpenAILLM"


def test_a_memory_is_wired_with_our_classes_and_mem0s_names_keep_their_meaning(memory, embedder):
    assert type(memory.vector_store) is slots.PoolStore
    assert type(memory.embedding_model) is slots.EmbedderSlot
    assert type(memory.llm) is slots.NoLanguageModel
    assert type(memory.db) is slots.NoHistory
    assert memory.vector_store.collection_name == "fm_pool_g900"
    assert memory.vector_store.embedding_model_dims == embedder.dimensions
    assert memory._entity_store is None
    test_the_tables_of_classes_by_which_ours_are_put_in()


def test_a_failed_wiring_puts_mem0s_names_back(embedder, monkeypatch):
    from mem0 import Memory

    def fail(_):
        raise RuntimeError("no")

    monkeypatch.setattr(Memory, "from_config", fail)
    with pytest.raises(RuntimeError):
        parts.build_memory(collection="fm_pool_g900", embedder=embedder)
    test_the_tables_of_classes_by_which_ours_are_put_in()


def test_texts_and_questions_reach_our_embedder_apart(memory, embedder):
    memory.embedding_model.embed("a question", "search")
    memory.embedding_model.embed("a text", "add")
    memory.embedding_model.embed_batch(["two", "texts"])
    assert embedder.queries == ["a question"]
    assert embedder.documents == ["a text", "two", "texts"]


def test_mem0_itself_reads_our_rows(mem0):
    record = a_record("  Verbatim:\n日本語 ")
    store(mem0, record)
    memory = mem0._memories["fm_pool_g900"]
    read = memory.get(str(record.id))
    assert (read["id"], read["memory"]) == (str(record.id), record.content)
    json.dumps(read)


def test_mem0_cannot_write_read_unscoped_or_delete_by_itself(mem0):
    record = a_record()
    store(mem0, record)
    memory = mem0._memories["fm_pool_g900"]
    attempts = [
        lambda: memory.add("we deploy on fridays", user_id="pool"),
        lambda: memory.search("deploy", filters={"user_id": "pool"}),
        lambda: memory.get_all(filters={"user_id": "pool"}),
        lambda: memory.update(str(record.id), "changed"),
        lambda: memory.delete(str(record.id)),
        lambda: memory.delete_all(user_id="pool"),
        lambda: memory.reset(),
        lambda: memory.vector_store.create_col("x", 3, "cosine"),
        lambda: memory.vector_store.list(),
        lambda: memory.vector_store.search("", [0.0], filters={}),
    ]
    for number, attempt in enumerate(attempts):
        with pytest.raises(ProviderError, match="so the pool refuses it"):
            attempt()
            pytest.fail(f"attempt {number} was not refused")
    assert mem0.get(record.id) == record
    assert mem0.describe().rows == 1


def test_the_prompts_that_extraction_may_read():
    from mem0.configs.prompts import ADDITIVE_EXTRACTION_PROMPT, generate_additive_extraction_prompt
    from mem0.memory.utils import extract_json, parse_messages, remove_code_blocks

    assert '"memory"' in ADDITIVE_EXTRACTION_PROMPT
    assert {"existing_memories", "new_messages", "timestamp", "custom_instructions"} <= set(
        parameters(generate_additive_extraction_prompt)
    )
    assert remove_code_blocks("```json\n{}\n```") == "{}"
    assert extract_json('x {"memory": []} y')
    assert "user: hello" in parse_messages([{"role": "user", "content": "hello"}])
