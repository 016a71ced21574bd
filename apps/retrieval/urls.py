from django.urls import path

from apps.retrieval import views

app_name = "retrieval"

urlpatterns = [
    path("memories/", views.memories, name="memories"),
    path("memories/weights/", views.weights, name="weights"),
    path("memories/<str:reference>/", views.memory, name="memory"),
]
