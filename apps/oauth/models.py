from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from apps.accounts.models import ApiToken, Workspace
from apps.core.triggers import no_delete, read_only_except, same_workspace


class Connection(models.Model):
    """What a person allowed a client to do in their name, once.

    It leads from what allauth issues, by ``grant_id``, to a token of kind agent that the person owns and nobody knows
    the secret of. Whatever the client does is done by that token.
    """

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="connections")
    token = models.OneToOneField(ApiToken, on_delete=models.PROTECT, related_name="connection")
    client = models.ForeignKey("allauth_idp_oidc.Client", on_delete=models.PROTECT, related_name="connections")
    grant_id = models.CharField(max_length=32, unique=True, editable=False)
    came_from = models.CharField(max_length=300, help_text="Where the answer was sent: an origin, or a scheme.")
    spent = ArrayField(
        models.CharField(max_length=64),
        default=list,
        editable=False,
        help_text="Digests of the last refresh tokens that were used. One that comes again was copied.",
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        ordering = ["-id"]
        triggers = [
            no_delete("connection_no_delete"),
            same_workspace("connection_same_workspace", ("token_id", "accounts_apitoken")),
            read_only_except("connection_read_only", "spent"),
        ]

    def __str__(self) -> str:
        return self.token.name
