from django.apps import AppConfig


class CaptureConfig(AppConfig):
    name = "apps.capture"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from apps.capture.constraints import register
        from apps.core.schedules import register_schedule

        register()
        register_schedule("capture: sweep", task="apps.capture.tasks.sweep", minutes=1)
        register_schedule("capture: forget payloads", task="apps.capture.tasks.forget_payloads", minutes=60)
