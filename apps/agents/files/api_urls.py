from django.urls import path

from apps.agents.files import api

urlpatterns = [
    path("files/import/", api.FilesImportView.as_view(), name="files-import"),
    path("export/files/", api.FilesExportView.as_view(), name="files-export"),
]
