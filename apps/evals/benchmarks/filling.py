"""Open candidates and memories by the thousand, in SQL, with all the rows that a proposal and an approval leave.

Where the role may, the triggers are left out meanwhile: what they would check of each row by itself is so by
construction, and with them it takes many times as long. The text is made of a vocabulary in which a few words are
frequent and most are rare, as in life. The pool stays empty: what is looked at are pages, and those that search it are
measured elsewhere.
"""

from __future__ import annotations

from typing import Any, Final

from django.db import ProgrammingError, connection, transaction

from apps.accounts.models import TokenKind, Workspace
from apps.accounts.principal import Principal
from apps.accounts.selectors import principal_for_token
from apps.evals.benchmarks import dataset
from apps.retrieval.tasks import lexemes_count
from apps.scopes.services import scope_register

REPOSITORIES: Final = 40
DOMAINS: Final = 8
_VOCABULARY: Final = [
    f"{stem}{ending}"
    for stem in ("pay", "ship", "cache", "queue", "retry", "token", "index", "shard", "log", "sync", "batch", "route")
    for ending in ("ments", "ping", "able", "ing", "ers", "less", "wise", "ment", "ful", "ity", "ed", "ance", "ory")
]

_TEXT: Final = """array_to_string(ARRAY(
    SELECT words[1 + floor(power(random(), 3) * array_length(words, 1))::int] FROM generate_series(1, 30 + n %% 20)
), ' ') || ' ' || n"""

# One candidate for each memory and one for each that is open; one in four would replace a memory, of which half are
# not in force, and one in ten is flagged.
_CANDIDATES: Final = f"""
INSERT INTO candidates_candidate (
    id, workspace_id, content, type_id, firm, domain_ids, repo_ids, audience_ids, tier, confidence, status,
    status_reason, fingerprint, version, origin_token_id, origin_name, supersedes, correction_kind, correction_reason,
    has_replacement, flags, seen_count, near, created_at, updated_at
)
SELECT gen_random_uuid(), %(workspace)s, {_TEXT}, types[1 + n %% array_length(types, 1)], n %% 200 = 0,
    CASE WHEN n %% 3 = 0 THEN ARRAY[domains[1 + floor(power(random(), 3) * array_length(domains, 1))::int]]
        ELSE '{{}}'::bigint[] END,
    ARRAY[repos[1 + floor(power(random(), 2) * array_length(repos, 1))::int]], '{{}}', 'durable',
    0.6 + (n %% 40) / 100.0, 'pending', '', md5(%(kind)s || n) || md5(n::text), 1, %(token)s, %(name)s,
    CASE WHEN n %% 4 = 0 AND %(targets)s::uuid[] <> '{{}}' THEN
        ARRAY[(%(targets)s::uuid[])[1 + (n / 4) %% array_length(%(targets)s::uuid[], 1)]] ELSE '{{}}'::uuid[] END,
    '', '', false,
    CASE WHEN n %% 10 = 1 THEN '[{{"kind": "new-domain", "field": "scope", "shown": "x"}}]'::jsonb ELSE '[]'::jsonb END,
    1, '[]', now() - make_interval(mins => n), now()
FROM generate_series(1, %(rows)s) n,
    (SELECT %(words)s::text[] AS words, %(types)s::bigint[] AS types, %(domains)s::bigint[] AS domains,
            %(repos)s::bigint[] AS repos) given
"""
_SUPPORT: Final = """
WITH fresh AS (
    SELECT c.id FROM candidates_candidate c WHERE c.workspace_id = %(workspace)s
    AND NOT EXISTS (SELECT 1 FROM candidates_proposer p WHERE p.candidate_id = c.id)
), proposed AS (
    INSERT INTO candidates_proposer (candidate_id, workspace_id, token_id, name, created_at)
    SELECT id, %(workspace)s, %(token)s, %(name)s, now() FROM fresh
)
INSERT INTO candidates_candidateevidence (candidate_id, source_id, workspace_id, quote)
SELECT id, %(source)s, %(workspace)s, '' FROM fresh
"""
_EVENTS: Final = """
INSERT INTO accounts_auditevent (
    workspace_id, actor, token_id, verb, subject_kind, subject_id, before, after, request_id, created_at
)
SELECT workspace_id, origin_name, origin_token_id, 'propose', 'candidate', id::text, '{}', '{"status": "pending"}',
    md5(id::text), created_at
FROM candidates_candidate WHERE workspace_id = %(workspace)s
"""
_VERDICTS: Final = """
INSERT INTO memories_verdict (
    id, workspace_id, subject_kind, subject_id, action, reviewer_id, reviewer_name, reason, before, after, via,
    second_person, request_id, created_at
)
SELECT gen_random_uuid(), workspace_id, 'candidate', id, 'approve', %(reviewer)s, %(reviewer_name)s, '',
    '{"status": "pending"}', '{"status": "approved"}', 'ui', true, '', created_at + interval '1 minute'
FROM candidates_candidate WHERE workspace_id = %(workspace)s
"""
_DECIDED: Final = """
UPDATE candidates_candidate c SET status = 'approved', decision_id = v.id, version = 2
FROM memories_verdict v WHERE v.subject_id = c.id AND c.workspace_id = %(workspace)s
"""
_MEMORIES: Final = """
INSERT INTO memories_memory (
    id, workspace_id, number, content, type_id, firm, domain_ids, repo_ids, audience_ids, tier, status, confidence,
    recorded_at, verdict_id, fingerprint
)
SELECT gen_random_uuid(), c.workspace_id, row_number() OVER (ORDER BY c.created_at), c.content, c.type_id, c.firm,
    c.domain_ids, c.repo_ids, '{}', 'durable', 'active', c.confidence, v.created_at, v.id, c.fingerprint
FROM candidates_candidate c JOIN memories_verdict v ON v.subject_id = c.id WHERE c.workspace_id = %(workspace)s
"""
_EVIDENCE: Final = """
INSERT INTO memories_memoryevidence (memory_id, source_id, workspace_id, quote)
SELECT id, %(source)s, workspace_id, '' FROM memories_memory WHERE workspace_id = %(workspace)s
"""
_RETIRED: Final = """
UPDATE memories_memory SET status = 'retired', retired_at = now()
WHERE workspace_id = %(workspace)s AND number %% 50 = 0
"""
_SOURCE: Final = """
INSERT INTO sources_source (workspace_id, kind, reference, url, title, "commit", created_at)
VALUES (%s, 'merge_request', 'acme/pages!1', '', 'The merge request', '', now()) RETURNING id
"""


def fill(rows: int) -> Principal:
    """``rows`` memories, two in a hundred retired, and ``rows`` open candidates; answers a reviewer of them."""
    workspace, reviewer = dataset.workspace_with_reviewer()
    token = principal_for_token(dataset.agent_secret(workspace, "pages", TokenKind.BOT), "rest").token
    values = _values(workspace, reviewer, token, rows)
    with transaction.atomic(), connection.cursor() as cursor:
        _without_triggers()
        for statement in (_CANDIDATES, _SUPPORT, _VERDICTS, _DECIDED, _MEMORIES, _EVIDENCE):
            cursor.execute(statement, values)
    with transaction.atomic(), connection.cursor() as cursor:
        _without_triggers()
        cursor.execute(_RETIRED, values)
        cursor.execute("SELECT array_agg(id) FROM memories_memory WHERE number % 25 = 0")
        values |= {"kind": "open", "targets": cursor.fetchone()[0]}
        for statement in (_CANDIDATES, _SUPPORT, _EVENTS):
            cursor.execute(statement, values)
    lexemes_count(workspace)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM (ANALYZE)")
    return reviewer


def _without_triggers() -> None:
    """Until this transaction ends, in this connection alone; a role that may not goes the long way."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL session_replication_role = replica")
    except ProgrammingError:
        return


def _values(workspace: Workspace, reviewer: Principal, token: Any, rows: int) -> dict[str, Any]:
    scope = scope_register(
        workspace,
        firm=False,
        domains=[f"domain-{at}" for at in range(DOMAINS)],
        repos=[f"acme/service-{at:02}" for at in range(REPOSITORIES)],
    ).scope
    with connection.cursor() as cursor:
        cursor.execute("SELECT setseed(0.5)")
        cursor.execute(_SOURCE, [workspace.pk])
        source = cursor.fetchone()[0]
    return {
        "workspace": workspace.pk,
        "rows": rows,
        "kind": "decided",
        "targets": [],
        "words": _VOCABULARY,
        "types": list(workspace.memory_types.order_by("slug").values_list("pk", flat=True)),
        "domains": list(scope.domain_ids),
        "repos": list(scope.repo_ids),
        "token": token.pk,
        "name": token.name,
        "source": source,
        "reviewer": reviewer.user.pk if reviewer.user is not None else None,
        "reviewer_name": reviewer.name,
    }
