"""How families of models want to be told a text from a question.

Most retrieval models are trained on pairs and expect each side to be marked, by a parameter of the request
or by a few words in front of the text. Unmarked, they still answer, only worse, and nothing says so. The
words are those of the models' own cards.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Final


@dataclass(frozen=True, slots=True)
class Side:
    """What goes with one side of a pair: parameters of the request, and words before the text."""

    parameters: dict[str, str] = field(default_factory=dict)
    prefix: str = ""


@dataclass(frozen=True, slots=True)
class Family:
    """Models whose names match one of ``patterns`` (lower case, ``*`` for anything), and their two sides."""

    patterns: tuple[str, ...]
    document: Side
    query: Side


PLAIN: Final = Side()
_SEARCH_QUERY: Final = "Represent this sentence for searching relevant passages: "
_INSTRUCTION: Final = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"

# The first match counts, so the narrower patterns come first.
FAMILIES: Final = (
    Family(("voyage/*",), Side({"input_type": "document"}), Side({"input_type": "query"})),
    Family(
        ("cohere/*", "bedrock/*cohere.embed*", "azure_ai/*cohere*embed*"),
        Side({"input_type": "search_document"}),
        Side({"input_type": "search_query"}),
    ),
    Family(
        ("gemini/*", "vertex_ai/*"),
        Side({"task_type": "RETRIEVAL_DOCUMENT"}),
        Side({"task_type": "RETRIEVAL_QUERY"}),
    ),
    Family(("nvidia_nim/*",), Side({"input_type": "passage"}), Side({"input_type": "query"})),
    Family(
        ("jina_ai/jina-embeddings-v3*", "jina_ai/jina-embeddings-v4*"),
        Side({"task": "retrieval.passage"}),
        Side({"task": "retrieval.query"}),
    ),
    Family(("*e5-mistral*", "*e5-large-instruct*", "*qwen3-embedding*"), PLAIN, Side(prefix=_INSTRUCTION)),
    Family(
        ("*/e5-*", "*multilingual-e5-*", "*e5-small*", "*e5-base*", "*e5-large*"),
        Side(prefix="passage: "),
        Side(prefix="query: "),
    ),
    Family(("*bge-m3*",), PLAIN, PLAIN),
    Family(("*bge-*-zh*",), PLAIN, Side(prefix="为这个句子生成表示以用于检索相关文章：")),
    Family(("*bge-*", "*mxbai-embed*"), PLAIN, Side(prefix=_SEARCH_QUERY)),
    Family(("*arctic-embed*v2*", "*arctic-embed2*"), PLAIN, Side(prefix="query: ")),
    Family(("*arctic-embed*",), PLAIN, Side(prefix=_SEARCH_QUERY)),
    Family(("*nomic-embed-text*",), Side(prefix="search_document: "), Side(prefix="search_query: ")),
    Family(
        ("*embeddinggemma*",),
        Side(prefix="title: none | text: "),
        Side(prefix="task: search result | query: "),
    ),
)
UNMARKED: Final = Family(("*",), PLAIN, PLAIN)


def family_of(model: str) -> Family:
    """The family of a model as LiteLLM writes it, such as ``voyage/voyage-3.5``."""
    name = model.lower()
    matching = (family for family in FAMILIES if any(fnmatchcase(name, each) for each in family.patterns))
    return next(matching, UNMARKED)
