"""What every operation of the API has in common, for the OpenAPI document."""

from __future__ import annotations

from typing import Any

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import ResolvedComponent

from apps.core.problems import MEDIA_TYPE

PROBLEM: dict[str, Any] = {
    "type": "object",
    "description": "RFC 9457.",
    "required": ["type", "title", "status", "detail", "code", "instance", "request_id"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "What went wrong and what to do, as a sentence."},
        "code": {"type": "string", "description": "Stable; for programs."},
        "instance": {"type": "string"},
        "request_id": {"type": "string"},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["field", "message"],
                "properties": {"field": {"type": "string"}, "message": {"type": "string"}},
            },
        },
        "extra": {"type": "object", "description": "More for programs, such as who decided and when."},
    },
}
RESPONSES = {
    "400": "Malformed, or an unknown key or parameter.",
    "401": "No token, or one that is not known, expired or revoked.",
    "403": "This may not be done by this token or person.",
    "404": "Not there, or in another workspace.",
    "405": "Another method is meant.",
    "409": "Decided already, stale, or conflicting with what is stored.",
    "413": "The body is too large.",
    "415": "The body is not JSON.",
    "422": "A known field holds a value that will not do.",
    "429": "Too many requests; see Retry-After.",
    "503": "A part that this depends on is down; see Retry-After.",
}
_ALWAYS = ("400", "401", "403", "405", "429", "503")
_OF_BODIES = ("409", "413", "415", "422")
_IDEMPOTENCY_KEY: dict[str, Any] = {
    "in": "header",
    "name": "Idempotency-Key",
    "required": False,
    "description": "The same request with the same key gets the first answer again.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[!-~]+$"},
}


class ProblemAutoSchema(AutoSchema):
    """Adds the problems that an operation may answer with, and the key that makes a POST repeatable."""

    def get_operation(self, *args: Any, **kwargs: Any) -> dict[str, Any] | None:
        operation: dict[str, Any] | None = super().get_operation(*args, **kwargs)
        if operation is None:
            return None
        responses = operation.setdefault("responses", {})
        for status in self._statuses(operation):
            responses.setdefault(status, self._problem(RESPONSES[status]))
        if self.method == "POST" and getattr(self.view, "idempotent", True):
            operation.setdefault("parameters", []).append(_IDEMPOTENCY_KEY)
        return operation

    def _statuses(self, operation: dict[str, Any]) -> list[str]:
        statuses = set(_ALWAYS)
        if self.method != "GET":
            statuses.update(_OF_BODIES)
        if operation.get("parameters"):
            statuses.add("422")
        if "{" in self.path:
            statuses.add("404")
        return sorted(statuses)

    def _problem(self, description: str) -> dict[str, Any]:
        component = ResolvedComponent(name="Problem", type=ResolvedComponent.SCHEMA, schema=PROBLEM, object="Problem")
        self.registry.register_on_missing(component)
        return {"description": description, "content": {MEDIA_TYPE: {"schema": component.ref}}}
