"""Included while OAuth is switched on; otherwise there is nothing at these addresses."""

from django.urls import path

from apps.oauth import views

app_name = "oauth"
urlpatterns = [
    path(".well-known/oauth-protected-resource", views.protected_resource, name="protected-resource"),
    path(
        ".well-known/oauth-protected-resource/mcp",
        views.protected_resource,
        {"path": "/mcp"},
        name="protected-resource-mcp",
    ),
    path(
        ".well-known/oauth-protected-resource/api/v1",
        views.protected_resource,
        {"path": "/api/v1"},
        name="protected-resource-rest",
    ),
    path(".well-known/oauth-authorization-server", views.authorization_server, name="authorization-server"),
    path(".well-known/openid-configuration", views.authorization_server, name="openid-configuration"),
    path("oauth/authorize", views.authorize, name="authorize"),
    path("oauth/token", views.token, name="token"),
    path("oauth/revoke", views.revoke, name="revoke"),
    path("oauth/register", views.register, name="register"),
    path("accounts/agents/", views.agents, name="agents"),
    path("accounts/agents/<int:connection_id>/disconnect/", views.disconnect, name="disconnect"),
]
