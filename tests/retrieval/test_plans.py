"""How PostgreSQL goes about each look-up of a search, on enough rows for its choice to mean something.

A change of a statement, an index or a setting that makes it read a whole table fails here.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import pytest
from django.db import connection

from apps.accounts.models import Workspace
from apps.candidates.models import Candidate
from apps.candidates.near import near_by_name
from apps.core.clock import now
from apps.memories.models import Corpus, Memory
from apps.memories.selectors import chains_of, memories_shown
from apps.retrieval import scope_sizes
from apps.retrieval.filters import Admission
from apps.retrieval.ledger import amendments_of, facts_of, successors_of
from apps.retrieval.request import SearchRequest
from apps.retrieval.services import search
from apps.retrieval.stages import identifier, text
from apps.retrieval.stages.text import Way
from apps.retrieval.tasks import lexemes_count
from apps.retrieval.terms import rarest_terms
from apps.scopes.models import Domain, Repository
from apps.scopes.selectors import SearchScope
from apps.taxonomy.models import MemoryType
from tests import ledger

pytestmark = pytest.mark.django_db

ROWS = 12_000
DOMAIN, REPOSITORY = 3, 7
EVERYTHING = SearchScope(everything=True)
NARROW = SearchScope(everything=False, domain_ids=(DOMAIN,), repo_ids=(REPOSITORY,))

# Written past the triggers, which would take a minute. "rare" stands in three memories, "usual" and "known" in one of
# ten each, "common" in all.
FILL = """
INSERT INTO memories_memory (id, workspace_id, number, content, type_id, firm, domain_ids, repo_ids, audience_ids, tier,
                             status, recorded_at, verdict_id, fingerprint)
SELECT md5('memory ' || %(workspace)s || ' ' || number)::uuid, %(workspace)s, number,
       'Statement common' || CASE number %% 10 WHEN 0 THEN ' usual' WHEN 5 THEN ' known' ELSE '' END
           || CASE WHEN number %% 4000 = 1 THEN ' rare' ELSE '' END || ' word' || number %% 997 || ' number' || number
           || repeat(' padding for a statement of some length', 6),
       %(type)s, number %% 200 = 0, ARRAY[number %% 40], ARRAY[number %% 60], '{}', 'durable', 'active',
       '2026-01-01', md5('verdict ' || %(workspace)s || ' ' || number)::uuid, md5(number::text)
FROM generate_series(1, %(rows)s) AS number
"""


@pytest.fixture(scope="module")
def filled_once(module_transaction: Any) -> None:
    with module_transaction():
        fill(Workspace.objects.get(slug="firm"), ROWS)


@pytest.fixture
def filled(filled_once: None, workspace: Workspace) -> Workspace:
    scope_sizes.forget_sizes()
    return workspace


def fill(workspace: Workspace, rows: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        type_id = MemoryType.objects.filter(workspace=workspace).values_list("pk", flat=True).first()
        cursor.execute(FILL, {"workspace": workspace.pk, "type": type_id, "rows": rows})
        cursor.execute("SET LOCAL session_replication_role = origin")
    lexemes_count(workspace)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE memories_memory")
        cursor.execute("ANALYZE memories_lexeme")
    scope_sizes.forget_sizes()


def admission(workspace: Workspace, scope: SearchScope = EVERYTHING, **changes: Any) -> Admission:
    return Admission(workspace_id=workspace.pk, scope=scope, audiences=frozenset(), now=now(), **changes)


def plan(statement: str, values: Any) -> str:
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN {statement}", values)
        return "\n".join(line for (line,) in cursor.fetchall())


def plans(work: Any) -> dict[str, str]:
    """The plans of everything that ``work`` asks, by statement, made under the settings it was asked under."""
    found: dict[str, str] = {}
    explaining = False

    def explain(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        nonlocal explaining
        if not explaining and sql.lstrip(" (\n").startswith(("SELECT", "WITH")) and "set_config" not in sql:
            explaining = True
            found[sql] = plan(sql, params)
            explaining = False
        return execute(sql, params, many, context)

    with connection.execute_wrapper(explain):
        work()
    return found


def the_plan_of(found: dict[str, str], part: str) -> str:
    (one,) = (lines for sql, lines in found.items() if part in sql)
    return one


@pytest.mark.parametrize("about", [{}, {"as_of": "then"}])
def test_rare_words_lead_to_their_documents_through_the_index_over_words(filled, about, monkeypatch):
    monkeypatch.setattr(text, "MAX_READ", ROWS - 1)  # so that the scope is too large to be read whole
    asked = admission(filled, **{name: now() for name in about})
    found = plans(lambda: text.bm25(asked, "why is it rare and common", limit=10))
    lines = the_plan_of(found, "preselected")
    assert "Bitmap Index Scan on memory_text" in lines
    assert "Seq Scan on memories_" not in lines


def test_a_narrow_scope_leads_to_its_documents_and_common_words_are_not_looked_up(filled):
    found = plans(lambda: text.bm25(admission(filled, NARROW), "statement common usual padding", limit=10))
    lines = the_plan_of(found, "preselected")
    assert "BitmapOr" in lines
    for index in ("memory_firm", "memory_domains", "memory_repos"):
        assert f"Bitmap Index Scan on {index}" in lines
    assert "memory_text" not in lines
    assert "Seq Scan on memories_" not in lines


def test_words_that_stand_in_a_fifth_of_all_documents_do_not_make_it_read_the_table(filled, monkeypatch):
    monkeypatch.setattr(text, "LEAST_MATCHES", ROWS // 5)
    found = plans(lambda: text.bm25(admission(filled), "usual known", limit=10))
    lines = the_plan_of(found, "preselected")
    assert "Bitmap Index Scan on memory_text" in lines
    assert "Seq Scan on memories_" not in lines


def test_counting_a_scope_reads_its_indexes(filled):
    found = plans(lambda: text.bm25(admission(filled, NARROW), "statement common usual padding", limit=10))
    lines = the_plan_of(found, "count(*)")
    assert "Bitmap Index Scan on memory_repos" in lines
    assert "Seq Scan on memories_" not in lines


def test_words_are_looked_up_one_by_one(filled):
    found = plans(lambda: rarest_terms(filled.pk, "why is it rare and common", limit=10))
    (lines,) = found.values()
    assert "Index Scan using lexeme_once" in lines or "Index Only Scan using lexeme_once" in lines
    assert "Seq Scan on memories_lexeme" not in lines


def test_a_small_workspace_beside_a_large_one_does_not_read_the_large_ones_matches(filled, other_workspace):
    fill(other_workspace, 300)
    asked = admission(other_workspace)
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
    terms = rarest_terms(other_workspace.pk, "statement common", limit=10)
    corpus = Corpus.objects.get(workspace=other_workspace)
    for way in (Way(tuple(terms)), Way()):
        lines = plan(*text.rank_statement(asked, terms, way, corpus, limit=10))
        assert "memory_text" not in lines
        assert "Seq Scan on memories_" not in lines


def test_what_the_ledger_lets_through_is_looked_up_by_its_keys(filled):
    ids = list(Memory.objects.order_by("number").values_list("pk", flat=True)[:200])
    for look in (facts_of, successors_of, amendments_of):
        found = plans(partial(look, admission(filled), ids))
        (lines,) = found.values()
        assert "memories_memory_pkey" in lines
        assert "Seq Scan on memories_memory" not in lines


def test_identifiers_lead_to_their_documents_through_the_index_over_words(filled):
    found = plans(lambda: identifier.exact(admission(filled), ["rare", "OMS-123"]))
    lines = the_plan_of(found, "ARRAY[memory.search_vector")
    assert "Bitmap Index Scan on memory_text" in lines
    by_source = the_plan_of(found, "source.reference")
    assert "Seq Scan on memories_" not in lines + by_source
    assert "Seq Scan on sources_" not in by_source


SOURCES = """
WITH made AS (
    INSERT INTO sources_source (workspace_id, kind, reference, url, title, created_at)
    SELECT %(workspace)s, 'issue', 'acme/depot#' || number, '', '', '2026-01-01'
    FROM generate_series(1, %(rows)s) AS number
    RETURNING id, split_part(reference, '#', 2)::integer AS number
)
INSERT INTO memories_memoryevidence (memory_id, source_id, workspace_id, quote)
SELECT memory.id, made.id, memory.workspace_id, '' FROM made JOIN memories_memory AS memory USING (number)
WHERE memory.workspace_id = %(workspace)s
"""


# Two of three memories were replaced or amended by the next one.
EDGES = """
INSERT INTO memories_supersession (workspace_id, old_id, new_id, kind, verdict_id, holds_from)
SELECT old.workspace_id, old.id, new.id, CASE old.number %% 3 WHEN 0 THEN 'amends' ELSE 'full' END, new.verdict_id,
       '2026-01-01'
FROM memories_memory AS old JOIN memories_memory AS new USING (workspace_id)
WHERE old.workspace_id = %(workspace)s AND new.number = old.number + 1 AND old.number %% 3 < 2
"""


@pytest.fixture
def linked(filled: Workspace) -> Workspace:
    """With a source for each memory, and edges between them."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute(SOURCES, {"workspace": filled.pk, "rows": ROWS})
        cursor.execute(EDGES, {"workspace": filled.pk})
        cursor.execute("SET LOCAL session_replication_role = origin")
        for table in ("sources_source", "memories_memoryevidence", "memories_supersession"):
            cursor.execute(f"ANALYZE {table}")
    return filled


@pytest.mark.parametrize("count", [1, 10, 100, 200])
def test_what_is_asked_about_hits_reads_no_more_than_is_about_them(linked, carol, count):
    ids = list(Memory.objects.order_by("number").values_list("pk", flat=True)[:count])
    asked = admission(linked)
    about = {
        "facts": partial(facts_of, asked, ids),
        "successors": partial(successors_of, asked, ids),
        "amendments": partial(amendments_of, asked, ids),
        "chains": partial(chains_of, ledger.of_person(carol), ids[:100]),
        "shown": partial(memories_shown, ledger.of_person(carol), ids[:20]),
    }
    for what, look in about.items():
        for lines in plans(look).values():
            for table in ("memories_memory ", "memories_memoryevidence", "memories_supersession", "sources_source"):
                assert f"Seq Scan on {table}" not in lines, what


def test_what_a_text_names_is_looked_up_by_its_keys(linked):
    named = Candidate(workspace=linked, content="This supersedes M-12, as acme/pay!4821 and OMS-123 say.")
    (lines,) = plans(lambda: near_by_name(named)).values()
    assert "memory_number_once" in lines
    assert "source_once" in lines
    assert "Seq Scan" not in lines


POOL = """
INSERT INTO fm_pool_g1 (id, vector, payload)
SELECT id, array_fill(1, ARRAY[384])::vector, jsonb_build_object(
    'data', content, 'memory_id', id, 'passage', 0, 'workspace', workspace_id, 'tier', tier, 'status', status,
    'type', 'tooling_setup', 'firm', firm, 'domain_ids', to_jsonb(domain_ids), 'repo_ids', to_jsonb(repo_ids),
    'audience_ids', '[]'::jsonb, 'recorded_at', extract(epoch FROM recorded_at))
FROM memories_memory
"""


def test_a_whole_search_reads_no_large_table_from_end_to_end(filled, carol):
    Domain.objects.bulk_create(Domain(pk=number, workspace=filled, slug=f"d{number}") for number in range(40))
    Repository.objects.bulk_create(Repository(pk=number, workspace=filled, slug=f"r{number}") for number in range(60))
    with connection.cursor() as cursor:
        cursor.execute("DROP INDEX fm_pool_g1_hnsw")  # of no use to this test, and slow to fill
        cursor.execute(POOL)
        cursor.execute("ANALYZE fm_pool_g1")
    request = SearchRequest(q="why is it rare and usual and common", recipe="text", limit=10)
    answers = []
    found = plans(lambda: answers.append(search(principal=ledger.of_person(carol), request=request)))
    assert len(answers[0].results) == 10
    assert answers[0].degraded is False
    assert len(found) > 8
    for statement, lines in found.items():
        for table in ("memories_memory ", "memories_lexeme", "fm_pool_g1"):
            assert f"Seq Scan on {table}" not in lines, statement


def test_no_setting_outlives_a_transaction(filled):
    """Behind a pooler the next transaction may be another's, so every setting is made for its transaction alone."""
    sent: list[str] = []
    made: list[tuple[str, str]] = []

    def record(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        sent.append(sql)
        if "set_config" in sql:
            made.extend(pairwise(params))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(record):
        text.bm25(admission(filled, NARROW), "statement common usual padding", limit=10)
    settings = [statement for statement in sent if "set_config" in statement]
    assert ("enable_seqscan", "off") in made
    for statement in settings:
        assert statement.count("set_config(") == statement.count(", true)")
    for statement in sent:
        assert (
            not statement.lstrip().upper().startswith(("SET ", "RESET ", "LISTEN", "PREPARE", "DECLARE", "CREATE TEMP"))
        )


def test_common_words_of_a_large_workspace_stay_within_their_time(filled, monkeypatch):
    """However common the words, what is looked at is bounded: here at a tenth of the rows."""
    monkeypatch.setattr(text, "LEAST_MATCHES", 500)
    monkeypatch.setattr(text, "MAX_MATCHES", 1_200)
    monkeypatch.setattr(text, "MAX_READ", 1_000)
    found = plans(lambda: text.bm25(admission(filled), "statement common usual padding", limit=10))
    lines = the_plan_of(found, "preselected")
    assert "'usual'" in lines
    assert "'common'" not in lines.split("Index Cond:")[1].splitlines()[0]
