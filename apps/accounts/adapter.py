"""People come in by invitation: an admin adds them, and nobody signs up.

With Google configured, a person signs in by the account whose *verified* address is the e-mail address that the
admin gave them (``manage.py member add NAME --email …``). The first time connects the two.
"""

from __future__ import annotations

from allauth.account.adapter import DefaultAccountAdapter
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialLogin
from django.contrib.auth.models import User
from django.http import HttpRequest

from apps.core.errors import Forbidden
from apps.core.problems import problem_page

_NOT_TOGETHER = "This name or address and this password do not go together. Mind capitals, and try again."


class InvitedOnlyAccountAdapter(DefaultAccountAdapter):
    error_messages = {
        **DefaultAccountAdapter.error_messages,
        "username_password_mismatch": _NOT_TOGETHER,
        "email_password_mismatch": _NOT_TOGETHER,
    }

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False


class InvitedOnlySocialAdapter(DefaultSocialAccountAdapter):
    def is_open_for_signup(self, request: HttpRequest, sociallogin: SocialLogin) -> bool:
        return False

    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> None:
        if sociallogin.is_existing:
            return
        user = invited_person(verified_addresses(sociallogin))
        if user is None:
            refusal = Forbidden(
                "No member has the verified address of this account. Ask an admin to add you with it.",
                code="not_invited",
            )
            raise ImmediateHttpResponse(problem_page(refusal, request))
        sociallogin.connect(request, user)


def verified_addresses(sociallogin: SocialLogin) -> list[str]:
    return [address.email for address in sociallogin.email_addresses if address.verified]


def invited_person(addresses: list[str]) -> User | None:
    """The one active member with one of these addresses; None for nobody, and for more than one."""
    found: set[User] = set()
    # A blank address is what everybody has who was added without one: it names nobody.
    for address in filter(None, addresses):
        found.update(User.objects.filter(email__iexact=address, is_active=True, memberships__isnull=False).distinct())
    return found.pop() if len(found) == 1 else None
