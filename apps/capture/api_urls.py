from django.urls import path

from apps.capture import api

urlpatterns = [
    path("ingest/", api.IngestView.as_view(), name="ingest"),
    path("ingest/<uuid:event_id>/", api.EventView.as_view(), name="event"),
]
