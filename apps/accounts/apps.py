from typing import Any

from django.apps import AppConfig
from django.apps import apps as global_apps
from django.db.models.signals import post_migrate


class AccountsConfig(AppConfig):
    name = "apps.accounts"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from apps.accounts import openapi  # noqa: F401 - registers itself with the schema generator
        from apps.accounts.constraints import register

        register()
        post_migrate.connect(_add_default_workspace, sender=self, dispatch_uid="accounts.workspace")


def _add_default_workspace(*, apps: Any = None, **kwargs: Any) -> None:
    from apps.accounts.services import DEFAULT_WORKSPACE, workspace_ensure

    try:
        (apps or global_apps).get_model("accounts", "Workspace")
    except LookupError:
        return  # only another app was migrated so far
    workspace_ensure(slug=DEFAULT_WORKSPACE)
