"""Addresses. Each room brings its own: ``urls`` for pages, ``api_urls`` for ``/api/v1/``."""

from django.conf import settings
from django.contrib import admin
from django.urls import include, path, re_path

from apps.core import health, problems

api = [
    path("", include("apps.accounts.api_urls")),
    path("", include("apps.taxonomy.api_urls")),
    path("", include("apps.candidates.api_urls")),
    path("", include("apps.capture.api_urls")),
    path("", include("apps.approvals.api_urls")),
    path("", include("apps.retrieval.api_urls")),
    path("", include("apps.answers.api_urls")),
    path("", include("apps.agents.files.api_urls")),
]
pages = [
    path("", include("apps.accounts.urls")),
    path("", include("apps.approvals.urls")),
    path("", include("apps.candidates.urls")),
    path("", include("apps.capture.urls")),
    path("", include("apps.retrieval.urls")),
    path("", include("apps.answers.urls")),
    path("", include("apps.evals.urls")),
]
# With OAuth switched off there is nothing at its addresses, and nothing of it is loaded.
oauth = [path("", include("apps.oauth.urls"))] if settings.FIRM_MEMORY_OAUTH else []
urlpatterns = [
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("api/v1/", include(api)),
    re_path(r"^api/", problems.unknown_address),
    path("", include("apps.agents.urls")),
    *oauth,
    path("admin/", admin.site.urls),
    *pages,
]
handler400 = "apps.core.problems.bad_request"
handler403 = "apps.core.problems.permission_denied"
handler404 = "apps.core.problems.not_found"
handler500 = "apps.core.problems.server_error"
