from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class TaxonomyConfig(AppConfig):
    name = "apps.taxonomy"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from apps.accounts.services import on_workspace_added
        from apps.taxonomy.constraints import register
        from apps.taxonomy.seed import taxonomy_seed

        register()
        on_workspace_added(taxonomy_seed)
        post_migrate.connect(_seed_default_workspace, sender=self, dispatch_uid="taxonomy.seed")


def _seed_default_workspace(**kwargs: Any) -> None:
    from apps.accounts.services import DEFAULT_WORKSPACE, workspace_ensure
    from apps.taxonomy.seed import taxonomy_seed

    taxonomy_seed(workspace_ensure(slug=DEFAULT_WORKSPACE))
