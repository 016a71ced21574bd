from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Throttle",
            fields=[
                ("key", models.CharField(max_length=100, primary_key=True, serialize=False)),
                (
                    "used_until",
                    models.DateTimeField(
                        help_text="When the requests made so far will have been spread out to the allowed rate."
                    ),
                ),
            ],
        ),
        # One row is rewritten by every request of its caller. Unlogged, that waits for no disk; with room left in
        # the page and no index on what changes, the new version goes beside the old one.
        migrations.RunSQL(
            "ALTER TABLE core_throttle SET UNLOGGED; ALTER TABLE core_throttle SET (fillfactor = 20)",
            migrations.RunSQL.noop,
        ),
    ]
