from django.contrib.postgres.indexes import GinIndex
from django.db import migrations, models

import apps.memories.models
from django.contrib.postgres.search import SearchVectorField

# English stems of the bare parts of what is written: the parser would keep `a/b-c` whole, and run ideographs together
# into one lexeme a sentence. Questions are parsed alike. Measured against stems of the text as it stands, and against
# stems beside unstemmed parts: docs/benchmarks.md.
FUNCTIONS = r"""
CREATE OR REPLACE FUNCTION public.fm_search_document(content text) RETURNS tsvector
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT to_tsvector(
        'pg_catalog.english',
        regexp_replace(
            regexp_replace(content, '[^[:alnum:]]+', ' ', 'g'),
            '([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af])', ' \1 ', 'g'
        )
    )
$$;

CREATE FUNCTION public.fm_document_length(document tsvector) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT coalesce(sum(coalesce(cardinality(positions), 1)), 0)::integer FROM unnest(document)
$$;

CREATE OR REPLACE FUNCTION public.fm_all_words(question text) RETURNS tsquery
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT coalesce(string_agg(quote_literal(lexeme), ' & '), '')::tsquery
    FROM unnest(public.fm_search_document(question))
$$;
"""


class Migration(migrations.Migration):
    dependencies = [("memories", "0004_shorter_messages")]

    operations = [
        migrations.RemoveIndex("memory", "memory_text"),
        migrations.RemoveField("memory", "search_vector"),
        migrations.RemoveField("memory", "doclen"),
        migrations.RunSQL(FUNCTIONS, migrations.RunSQL.noop),
        migrations.AddField(
            "memory",
            "search_vector",
            models.GeneratedField(
                db_persist=True,
                expression=apps.memories.models.SearchDocument("content"),
                output_field=SearchVectorField(),
            ),
        ),
        migrations.AddField(
            "memory",
            "doclen",
            models.GeneratedField(
                db_persist=True,
                expression=models.Func(
                    apps.memories.models.SearchDocument("content"),
                    function="fm_document_length",
                    output_field=models.IntegerField(),
                ),
                output_field=models.IntegerField(),
            ),
        ),
        migrations.AddIndex("memory", GinIndex(fields=["search_vector"], name="memory_text")),
    ]
