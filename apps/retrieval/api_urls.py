from django.urls import path

from apps.retrieval import api, context_api

urlpatterns = [
    path("context/", context_api.ContextView.as_view(), name="context"),
    path("memories/search/", api.SearchView.as_view(), name="memories-search"),
    path("memories/<str:reference>/", api.MemoryView.as_view(), name="memory"),
]
