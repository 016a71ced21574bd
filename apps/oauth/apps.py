from django.apps import AppConfig


class OAuthConfig(AppConfig):
    """The tables are there whether OAuth is on or off, so that switching it migrates nothing; the addresses are not."""

    name = "apps.oauth"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from apps.accounts.selectors import on_other_bearer
        from apps.core.schedules import register_schedule
        from apps.oauth.constraints import register
        from apps.oauth.selectors import lent_to

        register()
        on_other_bearer(lent_to)
        register_schedule("oauth: clear away", task="apps.oauth.tasks.sweep", minutes=60)
