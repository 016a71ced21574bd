from __future__ import annotations

from typing import TYPE_CHECKING

from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from apps.accounts.authentication import not_authenticated
from apps.accounts.models import Role
from apps.accounts.principal import Principal
from apps.accounts.throttling import SAFE_METHODS, spend_anonymous

if TYPE_CHECKING:
    from rest_framework.views import APIView  # at run time DRF's views import this module


class HasPrincipal(BasePermission):
    """Somebody known is asking, and not with a read-only token for a change."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        principal = request.auth
        if not isinstance(principal, Principal):
            spend_anonymous(request._request)
            raise not_authenticated()
        if request.method not in SAFE_METHODS:
            principal.require_write()
        return True


class HasRole(HasPrincipal):
    """Base of permissions by role; ``role_required(Role.REVIEWER)`` makes one."""

    role = Role.MEMBER
    to = "use this"

    def has_permission(self, request: Request, view: APIView) -> bool:
        super().has_permission(request, view)
        principal = request.auth
        if isinstance(principal, Principal):
            principal.require_reading_role(self.role, to=self.to)
        return True


def role_required(role: Role, *, to: str) -> type[HasRole]:
    """A permission class; ``to`` completes "Only a person with the … role may …"."""
    return type("RoleRequired", (HasRole,), {"role": role, "to": to})
