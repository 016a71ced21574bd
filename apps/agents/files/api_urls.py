from django.urls import path

from apps.agents.files import api

urlpatterns = [
    path("files/import/", api.FilesImportView.as_view(), name="files-import"),
]
