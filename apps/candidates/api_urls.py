from django.urls import path, register_converter
from django.urls.converters import PathConverter

from apps.candidates import api, notes_api


class TaskConverter(PathConverter):
    """Any name, so that one that will not do is told why, also for a line break in it."""

    regex = r"[\s\S]+"


register_converter(TaskConverter, "task")

urlpatterns = [
    path("candidates/", api.CandidatesView.as_view(), name="candidates"),
    path("candidates/<uuid:candidate_id>/", api.CandidateView.as_view(), name="candidate"),
    path("candidates/<uuid:candidate_id>/revise/", api.ReviseView.as_view(), name="candidate-revise"),
    path("candidates/<uuid:candidate_id>/withdraw/", api.WithdrawView.as_view(), name="candidate-withdraw"),
    path("memories/<str:reference>/corrections/", api.CorrectionsView.as_view(), name="memory-corrections"),
    # A task's name may hold slashes, and is as long as it can be.
    path("tasks/<task:task>/notes/", notes_api.NotesView.as_view(), name="notes"),
    path("tasks/<task:task>/notes/<uuid:note_id>/", notes_api.NoteView.as_view(), name="note"),
    path(
        "tasks/<task:task>/notes/<uuid:note_id>/disposition/",
        notes_api.DispositionView.as_view(),
        name="note-disposition",
    ),
    path("tasks/<task:task>/notes/<uuid:note_id>/propose/", notes_api.ProposeNoteView.as_view(), name="note-propose"),
]
