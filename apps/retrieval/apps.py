from django.apps import AppConfig


class RetrievalConfig(AppConfig):
    name = "apps.retrieval"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from apps.core.schedules import register_schedule

        register_schedule("retrieval: count words", task="apps.retrieval.tasks.count_lexemes", minutes=5)
        register_schedule("retrieval: forget receipts", task="apps.retrieval.tasks.forget_receipts", minutes=60)
