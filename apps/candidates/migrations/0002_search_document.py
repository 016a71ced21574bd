from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVectorField
from django.db import migrations, models

import apps.memories.models


class Migration(migrations.Migration):
    dependencies = [("candidates", "0001_initial"), ("memories", "0005_search_document")]

    operations = [
        migrations.RemoveIndex("candidate", "candidate_text"),
        migrations.RemoveField("candidate", "search_vector"),
        migrations.AddField(
            "candidate",
            "search_vector",
            models.GeneratedField(
                db_persist=True,
                expression=apps.memories.models.SearchDocument("content"),
                output_field=SearchVectorField(),
            ),
        ),
        migrations.AddIndex("candidate", GinIndex(fields=["search_vector"], name="candidate_text")),
    ]
