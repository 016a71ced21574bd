from django.apps import AppConfig


class CandidatesConfig(AppConfig):
    name = "apps.candidates"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from apps.candidates.constraints import register

        register()
