from django.urls import path

from apps.candidates import notes_views, views

app_name = "candidates"

urlpatterns = [
    path("propose/", views.propose, name="propose"),
    path("propose/<uuid:candidate_id>/withdraw/", views.withdraw, name="candidate-withdraw"),
    path("memories/<str:reference>/correct/", views.correct, name="memory-correct"),
    path("tasks/", notes_views.tasks, name="tasks"),
    path("tasks/notes/<uuid:note_id>/propose/", notes_views.propose, name="note-propose"),
    path("tasks/notes/<uuid:note_id>/disposition/", notes_views.dispose, name="note-dispose"),
    path("tasks/notes/<uuid:note_id>/delete/", notes_views.delete, name="note-delete"),
]
