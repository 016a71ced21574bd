from django.apps import AppConfig


class AnswersConfig(AppConfig):
    name = "apps.answers"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from apps.answers.intent import told_by_model
        from apps.answers.use import tokens_of
        from apps.capture import budget
        from apps.retrieval import intents

        budget.spent_elsewhere.append(tokens_of)
        intents.second_opinions.append(told_by_model)
