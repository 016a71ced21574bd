"""Sources of one kind and reference have one audience, and so has what came from them. See `apps.sources.models`."""

from django.db import migrations

SOURCES = """
WITH restricted AS (
    SELECT workspace_id, kind, reference,
           (array_agg(audience_id ORDER BY id) FILTER (WHERE audience_id IS NOT NULL))[1] AS audience_id
    FROM sources_source GROUP BY workspace_id, kind, reference HAVING count(audience_id) > 0
)
UPDATE sources_source source SET audience_id = restricted.audience_id FROM restricted
WHERE source.audience_id IS NULL AND source.workspace_id = restricted.workspace_id
  AND source.kind = restricted.kind AND source.reference = restricted.reference
"""

SUPPORTED = """
UPDATE {table} row SET {also}audience_ids = ARRAY(
    SELECT given.id FROM unnest(row.audience_ids) AS given(id)
    UNION
    SELECT source.audience_id FROM {evidence} evidence JOIN sources_source source ON source.id = evidence.source_id
    WHERE evidence.{key} = row.id AND source.audience_id IS NOT NULL
    ORDER BY 1
)
WHERE EXISTS (
    SELECT FROM {evidence} evidence JOIN sources_source source ON source.id = evidence.source_id
    WHERE evidence.{key} = row.id AND NOT row.audience_ids @> ARRAY[source.audience_id]
)
"""

EVENTS = """
UPDATE capture_captureevent event SET audience_ids = ARRAY(
    SELECT given.id FROM unnest(event.audience_ids) AS given(id)
    UNION
    SELECT source.audience_id FROM jsonb_array_elements(event.sources) AS listed(named)
    JOIN sources_source source ON source.workspace_id = event.workspace_id
        AND source.kind = named ->> 'kind' AND source.reference = named ->> 'reference'
    WHERE source.audience_id IS NOT NULL
    ORDER BY 1
)
WHERE EXISTS (
    SELECT FROM jsonb_array_elements(event.sources) AS listed(named)
    JOIN sources_source source ON source.workspace_id = event.workspace_id
        AND source.kind = named ->> 'kind' AND source.reference = named ->> 'reference'
    WHERE NOT event.audience_ids @> ARRAY[source.audience_id]
)
"""

POOL = """
UPDATE {table} pool SET payload = jsonb_set(pool.payload, '{{audience_ids}}', to_jsonb(memory.audience_ids))
FROM memories_memory memory WHERE memory.id = pool.memory_id AND memory.audience_ids <> pool.audience_ids
"""


def equalise(apps, schema_editor):
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(SOURCES)
        if not cursor.rowcount:
            return
        cursor.execute(
            SUPPORTED.format(
                table="candidates_candidate",
                evidence="candidates_candidateevidence",
                key="candidate_id",
                also="version = version + 1, ",
            )
        )
        cursor.execute(
            SUPPORTED.format(
                table="memories_memory", evidence="memories_memoryevidence", key="memory_id", also=""
            )
        )
        cursor.execute(EVENTS)
        cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = current_schema() AND tablename ~ '^fm_pool_g[0-9]+$'")
        for (table,) in cursor.fetchall():
            cursor.execute(POOL.format(table=table))


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0001_savedfilter"),
        ("candidates", "0003_restricted_indexes"),
        ("capture", "0003_audiences_and_candidates"),
        ("memories", "0003_restricted_indexes"),
        ("sources", "0002_one_audience"),
    ]

    operations = [migrations.RunPython(equalise, migrations.RunPython.noop)]
