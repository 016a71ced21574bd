from typing import Any

from django.apps import AppConfig
from django.core.signals import request_finished
from django.db.backends.signals import connection_created
from django.db.models.signals import post_migrate


class CoreConfig(AppConfig):
    name = "apps.core"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from apps.core import checks  # noqa: F401  (registers itself)
        from apps.core.hardening import triggers_ready
        from apps.core.health import register_check
        from apps.core.patience import bound_waiting

        register_check("triggers", triggers_ready)
        connection_created.connect(bound_waiting, dispatch_uid="core.patience")
        request_finished.connect(_forget_request_id, dispatch_uid="core.request_id")
        post_migrate.connect(_create_cache_table, sender=self, dispatch_uid="core.cache_table")
        post_migrate.connect(_ensure_schedules, sender=self, dispatch_uid="core.schedules")
        post_migrate.connect(_harden_triggers, sender=self, dispatch_uid="core.triggers")


def _create_cache_table(*, using: str, **kwargs: Any) -> None:
    """The table of Django's database cache belongs to no model, so no migration makes it."""
    from django.core.management import call_command

    call_command("createcachetable", database=using, verbosity=0)


def _ensure_schedules(**kwargs: Any) -> None:
    from apps.core.schedules import schedules_ensure

    schedules_ensure()


def _harden_triggers(**kwargs: Any) -> None:
    from apps.core.hardening import triggers_harden

    triggers_harden()


def _forget_request_id(**kwargs: Any) -> None:
    from apps.core import request_id

    request_id.current.set("")
