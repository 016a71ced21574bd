"""The addresses as they are with OAuth switched on."""

from __future__ import annotations

from django.urls import include, path

from firmmemory import urls as project
from firmmemory.urls import handler400, handler403, handler404, handler500  # noqa: F401

urlpatterns = [path("", include("apps.oauth.urls")), *project.urlpatterns]
