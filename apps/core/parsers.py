from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import IO, Any

from rest_framework.parsers import BaseParser

from apps.core.errors import Malformed
from apps.core.problems import TooLarge, UnsupportedMediaType

MAX_BODY_BYTES = 2 * 1024 * 1024
MAX_DEPTH = 32


class StrictJSONParser(BaseParser):
    """JSON as RFC 8259 has it, and nothing that two readers could understand differently.

    A view that takes larger bodies sets ``max_body_bytes``. NUL and lone surrogates arrive as text: a field
    refuses them by its name.
    """

    media_type = "application/json"

    def parse(
        self, stream: IO[bytes], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        context = parser_context or {}
        limit: int = getattr(context.get("view"), "max_body_bytes", MAX_BODY_BYTES)
        _check_charset(media_type or "")
        return parse_object(read_bounded(stream, limit, declared=_declared_length(context)))


def read_bounded(stream: IO[bytes], limit: int, *, declared: int = 0) -> bytes:
    """The whole body, refused before it is read where its declared length is over the limit."""
    body = b"" if declared > limit else stream.read(limit + 1)
    if declared > limit or len(body) > limit:
        raise TooLarge(f"The body is too large: at most {limit:,} bytes are taken here.")
    return body


def parse_object(body: bytes) -> dict[str, Any]:
    value = parse_json(body)
    if not isinstance(value, dict):
        raise Malformed("The body must be one JSON object.", code="not_an_object")
    return value


def parse_json(body: bytes) -> Any:
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Malformed(f"The body is not UTF-8: byte {error.start:,} cannot be read.", code="not_utf8") from None
    try:
        value = json.loads(text, object_pairs_hook=_object, parse_float=_finite, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        fault, place = error.msg.removesuffix(" at"), f"line {error.lineno}, column {error.colno}"
        raise Malformed(f"The body is not JSON: {fault} at {place}.", code="not_json") from None
    except RecursionError:
        raise _too_deep() from None
    except ValueError:
        # Python refuses to read an integer of more than 4,300 digits.
        raise Malformed("The body holds a number that is too long to read.", code="not_json") from None
    _check_depth(value)
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise Malformed(f"The key {twice!r} stands twice in one object.", code="duplicate_key")
    return found


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise Malformed("The body holds a number that is too large.", code="not_json")
    return number


def _refuse_constant(name: str) -> None:
    raise Malformed(f"{name} is not JSON.", code="not_json")


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [inner for outer in level if isinstance(outer, dict | list) for inner in _children(outer)]
        if not level:
            return
    raise _too_deep()


def _children(container: dict[str, Any] | list[Any]) -> list[Any]:
    return list(container.values()) if isinstance(container, dict) else container


def _too_deep() -> Malformed:
    return Malformed(f"The body is nested more than {MAX_DEPTH} levels deep.", code="too_deep")


def _check_charset(media_type: str) -> None:
    for parameter in media_type.split(";")[1:]:
        name, _, value = parameter.strip().partition("=")
        if name.lower() == "charset" and value.strip('"').lower() not in ("utf-8", "utf8"):
            raise UnsupportedMediaType("JSON is sent as UTF-8; leave the charset out.")


def _declared_length(context: Mapping[str, Any]) -> int:
    request = context.get("request")
    try:
        return int(request.META.get("CONTENT_LENGTH") or 0) if request is not None else 0
    except ValueError:
        return 0
