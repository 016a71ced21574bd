from django.apps import AppConfig


class TaxonomyConfig(AppConfig):
    name = "apps.taxonomy"
    default_auto_field = "django.db.models.BigAutoField"
