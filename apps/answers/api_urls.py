from django.urls import path

from apps.answers import api

urlpatterns = [
    path("ask/", api.AskView.as_view(), name="ask"),
]
