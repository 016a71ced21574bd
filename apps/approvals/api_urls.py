from django.urls import path

from apps.approvals import api

urlpatterns = [
    path("candidates/bulk/", api.BulkView.as_view(), name="candidates-bulk"),
    path("candidates/<uuid:candidate_id>/approve/", api.ApproveView.as_view(), name="candidate-approve"),
    path("candidates/<uuid:candidate_id>/reject/", api.RejectView.as_view(), name="candidate-reject"),
    path("candidates/<uuid:candidate_id>/reopen/", api.ReopenView.as_view(), name="candidate-reopen"),
    path("memories/<str:reference>/retire/", api.RetireView.as_view(), name="memory-retire"),
    path("memories/<str:reference>/restore/", api.RestoreView.as_view(), name="memory-restore"),
]
