from django.urls import path

from apps.capture import views

app_name = "capture"

urlpatterns = [
    path("captured/", views.captured, name="captured"),
    path("captured/drops/", views.drops, name="drops"),
    path("captured/<uuid:event_id>/", views.event, name="event"),
    path("captured/<uuid:event_id>/overrule/", views.overrule, name="event-overrule"),
]
