"""Weights for the categories that every workspace began with, where no curator has set any."""

from django.db import migrations

WEIGHTS = {
    "identity": {"ownership": 1.25},
    "project": {"incident": 1.1},
    "convention": {"implement": 1.15},
    "decision": {"explain-why": 1.1, "history": 1.1},
    "reference": {"terminology": 1.25},
}


def weigh(apps, schema_editor):
    categories = apps.get_model("taxonomy", "Category").objects
    for slug, weights in WEIGHTS.items():
        categories.filter(slug=slug, weights={}).update(weights=weights)


class Migration(migrations.Migration):
    dependencies = [("taxonomy", "0001_initial")]

    operations = [migrations.RunPython(weigh, migrations.RunPython.noop)]
