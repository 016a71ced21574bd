from __future__ import annotations

import pytest

from apps.memories.providers.embedders.families import UNMARKED, family_of


@pytest.mark.parametrize(
    ("model", "document", "query"),
    [
        ("voyage/voyage-3.5", {"input_type": "document"}, {"input_type": "query"}),
        ("cohere/embed-v4.0", {"input_type": "search_document"}, {"input_type": "search_query"}),
        (
            "bedrock/cohere.embed-multilingual-v3",
            {"input_type": "search_document"},
            {"input_type": "search_query"},
        ),
        ("gemini/gemini-embedding-001", {"task_type": "RETRIEVAL_DOCUMENT"}, {"task_type": "RETRIEVAL_QUERY"}),
        ("vertex_ai/text-embedding-005", {"task_type": "RETRIEVAL_DOCUMENT"}, {"task_type": "RETRIEVAL_QUERY"}),
        ("nvidia_nim/nvidia/nv-embedqa-e5-v5", {"input_type": "passage"}, {"input_type": "query"}),
        ("jina_ai/jina-embeddings-v3", {"task": "retrieval.passage"}, {"task": "retrieval.query"}),
    ],
)
def test_families_marked_by_a_parameter(model, document, query):
    family = family_of(model)
    assert (family.document.parameters, family.query.parameters) == (document, query)
    assert (family.document.prefix, family.query.prefix) == ("", "")


@pytest.mark.parametrize(
    ("model", "document", "query"),
    [
        ("hosted_vllm/intfloat/e5-base-v2", "passage: ", "query: "),
        ("huggingface/intfloat/multilingual-e5-large", "passage: ", "query: "),
        ("hosted_vllm/intfloat/multilingual-e5-large-instruct", "", "Instruct: "),
        ("hosted_vllm/intfloat/e5-mistral-7b-instruct", "", "Instruct: "),
        ("hosted_vllm/Qwen/Qwen3-Embedding-0.6B", "", "Instruct: "),
        ("together_ai/BAAI/bge-base-en-v1.5", "", "Represent this sentence"),
        ("ollama/bge-m3", "", ""),
        ("hosted_vllm/BAAI/bge-large-zh-v1.5", "", "为这个句子"),
        ("ollama/mxbai-embed-large", "", "Represent this sentence"),
        ("ollama/nomic-embed-text", "search_document: ", "search_query: "),
        ("ollama/snowflake-arctic-embed", "", "Represent this sentence"),
        ("ollama/snowflake-arctic-embed2", "", "query: "),
        ("ollama/embeddinggemma", "title: none | text: ", "task: search result | query: "),
    ],
)
def test_families_marked_by_words(model, document, query):
    family = family_of(model)
    assert family.document.prefix == document
    assert family.query.prefix.startswith(query)
    assert bool(family.query.prefix) == bool(query)
    assert not family.document.parameters
    assert not family.query.parameters


@pytest.mark.parametrize("model", ["openai/text-embedding-3-small", "mistral/mistral-embed", "azure/mine"])
def test_other_models_take_both_sides_alike(model):
    assert family_of(model) is UNMARKED
