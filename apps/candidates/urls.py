from django.urls import path

from apps.candidates import views

app_name = "candidates"

urlpatterns = [
    path("propose/", views.propose, name="propose"),
    path("propose/<uuid:candidate_id>/withdraw/", views.withdraw, name="candidate-withdraw"),
    path("memories/<str:reference>/correct/", views.correct, name="memory-correct"),
]
