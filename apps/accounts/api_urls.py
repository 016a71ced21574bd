from __future__ import annotations

from django.urls import path

from apps.accounts.api import MeView, SchemaView

urlpatterns = [
    path("me/", MeView.as_view(), name="me"),
    path("schema/", SchemaView.as_view(), name="schema"),
]
