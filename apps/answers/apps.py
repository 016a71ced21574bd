from django.apps import AppConfig


class AnswersConfig(AppConfig):
    name = "apps.answers"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from apps.answers.use import tokens_of
        from apps.capture import budget

        budget.spent_elsewhere.append(tokens_of)
