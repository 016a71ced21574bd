from django.apps import AppConfig


class SourcesConfig(AppConfig):
    name = "apps.sources"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from apps.sources.constraints import register

        register()
