from django.apps import AppConfig


class ScopesConfig(AppConfig):
    name = "apps.scopes"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from apps.scopes.constraints import register

        register()
