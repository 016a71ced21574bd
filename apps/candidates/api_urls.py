from django.urls import path

from apps.candidates import api

urlpatterns = [
    path("candidates/", api.CandidatesView.as_view(), name="candidates"),
    path("candidates/<uuid:candidate_id>/", api.CandidateView.as_view(), name="candidate"),
    path("candidates/<uuid:candidate_id>/revise/", api.ReviseView.as_view(), name="candidate-revise"),
    path("candidates/<uuid:candidate_id>/withdraw/", api.WithdrawView.as_view(), name="candidate-withdraw"),
    path("memories/<str:reference>/corrections/", api.CorrectionsView.as_view(), name="memory-corrections"),
]
