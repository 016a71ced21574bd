from django.apps import AppConfig


class CaptureConfig(AppConfig):
    name = "apps.capture"
    default_auto_field = "django.db.models.BigAutoField"
