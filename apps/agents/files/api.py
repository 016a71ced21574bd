"""Files that agents read, over REST: taken in, and written for a repository."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.accounts.authentication import principal_of
from apps.accounts.idempotency import idempotent
from apps.accounts.throttling import SEARCH
from apps.agents.files.exporting import DEFAULT_LINES, LEAST_LINES, MOST_LINES, FileFormat, files_export
from apps.agents.files.formats import MAX_PATH, Format
from apps.agents.files.services import MAX_ALL, MAX_COMMIT, MAX_FILE, MAX_FILES, FileInput, files_import
from apps.candidates.models import CandidateStatus
from apps.core.serializers import Flag, Many, NoQuery, OneOf, Raw, StrictQuery, StrictSerializer, Text, Whole
from apps.retrieval.receipts import served_record
from apps.scopes.services import MAX_REMOTE_LENGTH


class FileIn(StrictSerializer):
    path = Text(max_length=MAX_PATH, multiline=False, help_text="From the root of the repository, with slashes.")
    content = Raw(
        max_length=MAX_FILE, help_text="The whole text of the file. What lies between our markers is left out."
    )


class ImportIn(StrictSerializer):
    repo = Text(max_length=MAX_REMOTE_LENGTH, multiline=False, help_text="By slug, alias or remote.")
    commit = Text(max_length=MAX_COMMIT, multiline=False, required=False, allow_null=True)
    dry_run = Flag(default=False, help_text="Say what would become of it, and write nothing.")
    files = Many(FileIn(), max_items=MAX_FILES, allow_empty=False)


class SkippedOut(serializers.Serializer[Any]):
    line = serializers.IntegerField()
    reason = serializers.CharField()


class FileReportOut(serializers.Serializer[Any]):
    path = serializers.CharField()
    format = serializers.ChoiceField([each.value for each in Format])
    statements = serializers.IntegerField()
    new = serializers.IntegerField(help_text="Proposed for the first time.")
    joined = serializers.IntegerField(help_text="Said elsewhere already: one candidate or memory with several sources.")
    unchanged = serializers.IntegerField(help_text="Came from this file before; nothing was proposed.")
    changed = serializers.IntegerField(help_text="Proposed in the place of what stood here before.")
    gone = serializers.IntegerField(help_text="Came from this file before and no longer stands in it.")
    skipped = SkippedOut(many=True)


class TakenOut(serializers.Serializer[Any]):
    id = serializers.UUIDField(allow_null=True, help_text="Null for what a dry run would have made.")
    status = serializers.ChoiceField(CandidateStatus.choices)
    path = serializers.CharField()
    heading = serializers.CharField(allow_blank=True)
    line = serializers.IntegerField()


class ImportedOut(serializers.Serializer[Any]):
    files = FileReportOut(many=True)
    candidates = TakenOut(many=True)
    refused = serializers.IntegerField(help_text="Statements that will not do; each says why among the skipped.")
    not_taken = serializers.IntegerField(
        help_text="Statements that there was no room for. Import the files again later."
    )
    notes = serializers.ListField(child=serializers.CharField())


class FilesImportView(APIView):
    # JSON may spell each character with six bytes.
    max_body_bytes = 6 * MAX_ALL + 64 * 1024

    @extend_schema(
        operation_id="files_import",
        request=ImportIn,
        responses=ImportedOut,
        summary="Propose what rules files and decision records of a repository state",
    )
    @idempotent
    def post(self, request: Request) -> Response:
        NoQuery.read_query(request)
        principal = principal_of(request)
        data = ImportIn.read_body(request)
        imported = files_import(
            principal=principal,
            repo=data["repo"],
            files=[FileInput(**file) for file in data["files"]],
            commit=data.get("commit"),
            dry_run=data["dry_run"],
        )
        return Response(imported.as_dict())


class ExportQuery(StrictQuery):
    repo = Text(max_length=MAX_REMOTE_LENGTH, multiline=False, help_text="By slug, alias or remote.")
    format = OneOf(choices=[each.value for each in FileFormat], default=FileFormat.AGENTS_MD.value)
    max_lines = Whole(
        min_value=LEAST_LINES,
        max_value=MOST_LINES,
        default=DEFAULT_LINES,
        help_text="Of each file, between its markers.",
    )
    per_folder = Flag(default=False, help_text="What came from files of a folder, in a file of that folder.")


class ExportedFileOut(serializers.Serializer[Any]):
    path = serializers.CharField()
    block = serializers.CharField(help_text="Both marker lines and what is between them, without a break at the end.")
    whole = serializers.CharField(help_text="The file where there is none yet.")


class ExportOut(serializers.Serializer[Any]):
    repo = serializers.CharField()
    known = serializers.BooleanField(
        help_text="False: there is no such repository, and the files hold only what is for the whole firm."
    )
    files = ExportedFileOut(many=True)
    left_out = serializers.IntegerField()
    note = serializers.CharField(allow_blank=True)


class FilesExportView(APIView):
    throttle_kind = SEARCH

    @extend_schema(
        operation_id="files_export",
        parameters=[ExportQuery],
        responses=ExportOut,
        summary="What holds for a repository, as the files that agents read",
    )
    def get(self, request: Request) -> Response:
        asked = ExportQuery.read_query(request)
        principal = principal_of(request)
        export = files_export(principal=principal, **asked | {"format": FileFormat(asked["format"])})
        served_record(principal, "export", results=[{"id": pk} for pk in export.memory_ids])
        return Response(export.as_dict())
