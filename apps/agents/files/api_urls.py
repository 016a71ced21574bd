from django.urls import path

from apps.agents.files import api
from apps.agents.files.whole.api import WholeExportView

urlpatterns = [
    path("files/import/", api.FilesImportView.as_view(), name="files-import"),
    path("export/", WholeExportView.as_view(), name="export"),
    path("export/files/", api.FilesExportView.as_view(), name="files-export"),
]
