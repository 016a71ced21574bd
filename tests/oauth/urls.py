"""The addresses as they are with OAuth switched on."""

from __future__ import annotations

from django.conf import settings

from firmmemory import urls as project
from firmmemory.urls import handler400, handler403, handler404, handler500  # noqa: F401

assert not settings.FIRM_MEMORY_OAUTH or project.oauth
urlpatterns = [*project.oauth, *project.urlpatterns]
