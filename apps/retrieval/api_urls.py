from django.urls import path

from apps.retrieval import api

urlpatterns = [
    path("memories/search/", api.SearchView.as_view(), name="memories-search"),
    path("memories/<str:reference>/", api.MemoryView.as_view(), name="memory"),
]
