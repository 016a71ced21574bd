from django.urls import path

from apps.answers import views

app_name = "answers"

urlpatterns = [
    path("ask/", views.ask_page, name="ask"),
]
