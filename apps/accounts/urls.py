"""Signing in and out. Of allauth only what people added by an admin need; sign-up leads to a sentence."""

from __future__ import annotations

from allauth.account import views as account
from allauth.socialaccount import views as social
from allauth.socialaccount.providers.google.provider import GoogleProvider
from allauth.socialaccount.providers.oauth2.urls import default_urlpatterns
from django.conf import settings
from django.urls import include, path

from apps.accounts import views

urlpatterns = [
    path("workspace/", views.workspace_choose, name="workspace-choose"),
    path("accounts/login/", account.login, name="account_login"),
    path("accounts/logout/", account.logout, name="account_logout"),
    path("accounts/inactive/", account.account_inactive, name="account_inactive"),
    path("accounts/password/change/", account.password_change, name="account_change_password"),
    path("accounts/password/set/", account.password_set, name="account_set_password"),
    path("accounts/reauthenticate/", account.reauthenticate, name="account_reauthenticate"),
    path("accounts/signup/", views.sign_up_closed, name="account_signup"),
    path("accounts/3rdparty/signup/", views.sign_up_closed, name="socialaccount_signup"),
    path("accounts/3rdparty/login/cancelled/", social.login_cancelled, name="socialaccount_login_cancelled"),
    path("accounts/3rdparty/login/error/", social.login_error, name="socialaccount_login_error"),
]
if settings.SOCIALACCOUNT_PROVIDERS:
    urlpatterns.append(path("accounts/", include(default_urlpatterns(GoogleProvider))))
