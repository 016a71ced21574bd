from django.urls import path

from apps.approvals import views
from apps.approvals.trail import views as trail

app_name = "approvals"

urlpatterns = [
    path("", views.home, name="home"),
    path("review/", views.queue, name="queue"),
    path("review/shortcuts/", views.switch_shortcuts, name="shortcuts"),
    path("review/bulk/all/", views.bulk_all, name="candidates-bulk-all"),
    path("review/filters/", views.filter_save, name="filter-save"),
    path("review/filters/<int:filter_id>/open-with/", views.filter_open_with, name="filter-open-with"),
    path("review/filters/<int:filter_id>/remove/", views.filter_remove, name="filter-remove"),
    path("review/bulk/", views.bulk, name="candidates-bulk"),
    path("review/<uuid:candidate_id>/", views.candidate, name="candidate"),
    path("review/<uuid:candidate_id>/approve/", views.approve, name="candidate-approve"),
    path("review/<uuid:candidate_id>/reject/", views.reject, name="candidate-reject"),
    path("review/<uuid:candidate_id>/reopen/", views.reopen, name="candidate-reopen"),
    path("audit/", trail.trail, name="trail"),
    path("audit/export.<str:format>", trail.export, name="trail-export"),
    path("memories/<str:reference>/retire/", views.retire, name="memory-retire"),
    path("memories/<str:reference>/restore/", views.restore, name="memory-restore"),
]
