from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class MemoriesConfig(AppConfig):
    name = "apps.memories"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from apps.core.schedules import register_schedule
        from apps.memories.constraints import register

        register()
        register_schedule("memories: refresh ended", task="apps.memories.tasks.refresh_ended", minutes=1)
        register_schedule("memories: embed late notes", task="apps.memories.tasks.notes_embed_late", minutes=1)
        register_schedule("memories: expire notes", task="apps.memories.tasks.notes_expire", minutes=10)
        post_migrate.connect(_ensure_pool, sender=self, dispatch_uid="memories.pool")


def _ensure_pool(**kwargs: Any) -> None:
    from apps.memories.generations import ensure_live_generation

    ensure_live_generation()
