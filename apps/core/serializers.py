"""What arrives at a REST door, read strictly.

A room declares what it takes and gets a plain, typed dict, or one refusal that names everything wrong::

    class ScopeIn(StrictSerializer):
        firm = Flag(default=False)
        repos = Many(Text(max_length=500), default=list)

    class ProposeIn(StrictSerializer):
        content = Text(max_length=8_000)
        confidence = Share(required=False)
        scope = ScopeIn()

    data = ProposeIn.read_body(request)

    class SearchQuery(StrictQuery):
        q = Text(max_length=8_000, verbatim=True)
        limit = Whole(min_value=1, max_value=100, default=10)

    query = SearchQuery.read_query(request)

An unknown key or parameter is 400, at any depth, before anything else is looked at. A known one of the wrong
type or with a value that will not do is 422 and named by its path, ``sources[0].url``. Nothing is coerced: ``"1"``
is no number, ``1`` is no boolean, an empty or ``null`` parameter never means "everything".

``also`` looks further at the values that can be read where others cannot, and raises ``Invalid``: whoever sent both
faults gets to read of both.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time
from functools import cache
from typing import Any, ClassVar, NoReturn
from urllib.parse import unquote_to_bytes

from rest_framework import serializers
from rest_framework.fields import empty
from rest_framework.request import Request

from apps.core.errors import FieldError, Invalid, Malformed, Refusals, UnknownKeys, UnknownParameters
from apps.core.problems import field_errors
from apps.core.screening.text import check_text

Also = Callable[[dict[str, Any]], object]

_NOT_A_VALUE = ("null", "[]", "{}", "undefined", "None")
_WHOLE = re.compile(r"-?[0-9]{1,18}")
_NUMBER = re.compile(r"-?[0-9]{1,18}(\.[0-9]{1,18})?")
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_LOST_PLUS = re.compile(r"(T[0-9:.,]+) ([0-9]{2}:?[0-9]{2})")


class _Strict:
    """A field that takes one JSON type, and says which when it gets another."""

    json_name: ClassVar[str]
    json_types: ClassVar[tuple[type, ...]]

    def require_type(self, value: Any) -> None:
        # In Python True is an int; in JSON it is not.
        if (isinstance(value, bool) and bool not in self.json_types) or not isinstance(value, self.json_types):
            _refuse(f"This must be {self.json_name}, not {json_type(value)}.")

    def from_parameter(self, text: str) -> Any:
        """The JSON value that ``text`` stands for in a query string."""
        return text

    def validate_empty_values(self, data: Any) -> tuple[bool, Any]:
        if data is None and not getattr(self, "allow_null", False):
            _refuse(f"This must be {self.json_name}, not null. Leave it out where there is nothing to say.")
        try:
            return super().validate_empty_values(data)  # type: ignore[misc]
        except serializers.ValidationError:
            _refuse("This is missing.")


class Text(_Strict, serializers.CharField):
    """Text of ``min_length`` to ``max_length`` characters, kept as it is; blank only with ``allow_blank``.

    As a query parameter, ``verbatim`` text may also be such words as ``null``.
    """

    json_name, json_types = "text", (str,)

    def __init__(
        self, *, max_length: int, min_length: int = 1, multiline: bool = True, verbatim: bool = False, **options: Any
    ) -> None:
        self.multiline, self.verbatim = multiline, verbatim
        self.limits = {"max_length": max_length, "min_length": 0 if options.get("allow_blank") else min_length}
        options["allow_blank"] = True  # what is blank is said by check_text, which knows invisible characters
        # DRF's own validators say the same again and never get to; the schema is written from them.
        super().__init__(
            trim_whitespace=False, max_length=max_length, min_length=self.limits["min_length"] or None, **options
        )

    def run_validation(self, data: Any = empty) -> Any:
        # DRF lets a blank text pass by here.
        return super(serializers.CharField, self).run_validation(data)

    def to_internal_value(self, data: Any) -> str:
        self.require_type(data)
        problems = check_text(data, field="", multiline=self.multiline, **self.limits)
        if problems:
            raise serializers.ValidationError([problem.message for problem in problems])
        return str(data)


class Raw(_Strict, serializers.CharField):
    """Text of any kind: what no column holds is taken out of it later, not refused."""

    json_name, json_types = "text", (str,)

    def __init__(self, *, max_length: int, **options: Any) -> None:
        self.most = max_length
        super().__init__(trim_whitespace=False, allow_blank=True, max_length=max_length, **options)

    def run_validation(self, data: Any = empty) -> Any:
        # DRF's own validators refuse NUL and lone surrogates, and let a blank text pass by.
        is_empty, data = self.validate_empty_values(data)
        return data if is_empty else self.to_internal_value(data)

    def to_internal_value(self, data: Any) -> str:
        self.require_type(data)
        if len(data) > self.most:
            _refuse(f"Send at most {self.most:,} characters; there are {len(data):,}.")
        return str(data)


class Whole(_Strict, serializers.IntegerField):
    json_name, json_types = "a whole number", (int,)

    def __init__(self, *, min_value: int, max_value: int, **options: Any) -> None:
        self.least, self.most = min_value, max_value
        super().__init__(min_value=min_value, max_value=max_value, **options)

    def to_internal_value(self, data: Any) -> int:
        self.require_type(data)
        if not self.least <= data <= self.most:
            _refuse(f"This must be a whole number from {self.least:,} to {self.most:,}.")
        return int(data)

    def from_parameter(self, text: str) -> Any:
        return int(text) if _WHOLE.fullmatch(text) else text


class Share(_Strict, serializers.FloatField):
    """A number from 0 to 1."""

    json_name, json_types = "a number from 0 to 1", (int, float)

    def __init__(self, **options: Any) -> None:
        super().__init__(min_value=0, max_value=1, **options)

    def to_internal_value(self, data: Any) -> float:
        self.require_type(data)
        if not 0 <= data <= 1:
            _refuse("This must be a number from 0 to 1.")
        return float(data)

    def from_parameter(self, text: str) -> Any:
        return float(text) if _NUMBER.fullmatch(text) else text


class Flag(_Strict, serializers.BooleanField):
    json_name, json_types = "true or false", (bool,)

    def to_internal_value(self, data: Any) -> bool:
        self.require_type(data)
        return bool(data)

    def from_parameter(self, text: str) -> Any:
        return {"true": True, "false": False}.get(text, text)


class OneOf(_Strict, serializers.ChoiceField):
    """One of a fixed set of words, spelled exactly."""

    json_name, json_types = "text", (str,)

    def to_internal_value(self, data: Any) -> str:
        self.require_type(data)
        if data not in self.choices:
            _refuse(f"Use one of: {', '.join(map(str, self.choices))}.")
        return str(data)


class Moment(_Strict, serializers.DateTimeField):
    """ISO 8601. Without an offset it is UTC; a date alone is 00:00 UTC."""

    json_name, json_types = "a date or time as text (ISO 8601)", (str,)

    def to_internal_value(self, value: Any) -> datetime:
        self.require_type(value)
        moment = read_moment(value)
        if moment is None:
            _refuse(
                "This is no date or time. Write it as 2025-03-01 or 2025-03-01T09:30:00+01:00 (ISO 8601); "
                "without an offset it is UTC."
            )
        return moment

    def from_parameter(self, text: str) -> Any:
        # An offset's plus sign that was not percent-encoded has become a space on its way.
        return _LOST_PLUS.sub(r"\1+\2", text)


class Identifier(_Strict, serializers.UUIDField):
    json_name, json_types = "an id (UUID) as text", (str,)

    def to_internal_value(self, data: Any) -> uuid.UUID:
        self.require_type(data)
        if not _UUID.fullmatch(data):
            _refuse("This is no id. Ids look like 0190a1b2-7c3d-4e5f-8a9b-0c1d2e3f4a5b.")
        return uuid.UUID(data)


class Many(_Strict, serializers.ListField):
    """A list. As a query parameter it repeats: ``repos=a&repos=b``."""

    json_name, json_types = "a list", (list,)

    def __init__(self, child: serializers.Field[Any, Any, Any, Any], *, max_items: int = 100, **options: Any) -> None:
        self.max_items = max_items
        super().__init__(child=child, max_length=max_items, **options)

    def to_internal_value(self, data: Any) -> list[Any]:
        self.require_type(data)
        if not data and not self.allow_empty:
            _refuse("This list is empty. Name at least one.")
        if len(data) > self.max_items:
            _refuse(f"Name at most {self.max_items:,}; there are {len(data):,}.")
        return self.run_child_validation(data)

    def run_child_validation(self, data: Any) -> list[Any]:
        result: list[Any] = []
        errors: dict[int, Any] = {}
        for position, item in enumerate(data):
            try:
                result.append(self.child.run_validation(item))
            except serializers.ValidationError as error:
                errors[position] = error.detail
        if errors:
            raise serializers.ValidationError(errors)  # type: ignore[arg-type]
        return result


class StrictSerializer(_Strict, serializers.Serializer[Any]):
    """An object with these keys and no others."""

    json_name, json_types = "an object", (dict,)
    # Whether its values can be looked at further, one by one, where some of them will not do.
    is_good_in_parts: ClassVar[bool] = False

    @classmethod
    def read_body(cls, request: Request, *, also: Also | None = None) -> dict[str, Any]:
        """``read`` the body of a request, which must have one: nothing at all is no JSON."""
        data = request.data
        if not data and request.stream is None:
            raise Malformed("The body is empty. Send one JSON object.", code="not_json")
        return cls.read(data, also=also)

    @classmethod
    def read(cls, data: Any, *, also: Also | None = None) -> dict[str, Any]:
        """The validated values, or ``UnknownKeys``, or ``Invalid`` with every fault."""
        serializer = _made(cls)
        if not isinstance(data, dict):
            raise Malformed("The body must be one JSON object.", code="not_an_object")
        unknown = list(_unknown(serializer, data))
        if unknown:
            names = [f"{path}{name}" for path, found, _ in unknown for name in found]
            raise UnknownKeys(names, allowed={f"{path}{name}" for path, _, known in unknown for name in known})
        return _validated(serializer, data, also=also)

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        self.require_type(data)
        values: dict[str, Any] = {}
        errors: dict[str, Any] = {}
        for name, field in self.fields.items():
            try:
                values[name] = field.run_validation(field.get_value(data))
            except serializers.SkipField:
                continue
            except _GoodInParts as error:
                errors[name] = error.detail
                if getattr(field, "is_good_in_parts", False):
                    values[name] = error.good
            except serializers.ValidationError as error:
                errors[name] = error.detail
        if errors:
            raise _GoodInParts(errors, good=values)
        return values


class _GoodInParts(serializers.ValidationError):
    def __init__(self, errors: dict[str, Any], *, good: dict[str, Any]) -> None:
        super().__init__(errors)
        self.good = good


class StrictQuery(StrictSerializer):
    """The query parameters that an address takes."""

    @classmethod
    def read_query(cls, request: Request, *, also: Also | None = None) -> dict[str, Any]:
        """The validated parameters, or ``UnknownKeys``, or ``Invalid`` with every fault."""
        _require_utf8(request)
        serializer = _made(cls)
        parameters = request.query_params
        unknown = set(parameters) - set(serializer.fields)
        if unknown:
            raise UnknownParameters(unknown, allowed=serializer.fields)
        data: dict[str, Any] = {}
        errors: list[FieldError] = []
        for name in parameters:
            field = serializer.fields[name]
            values = parameters.getlist(name)
            if faults := _parameter_errors(name, field, values):
                errors += faults
            else:
                data[name] = _from_parameters(field, values)
        return _validated(serializer, data, errors, also=also)


class NoQuery(StrictQuery):
    """For an address that takes no parameters."""


def json_type(value: Any) -> str:
    """What ``value`` is called in JSON, with its article."""
    if value is None:
        return "null"
    names: list[tuple[type, str]] = [
        (bool, "true or false"),
        (str, "text"),
        (int, "a number"),
        (float, "a number"),
        (list, "a list"),
        (dict, "an object"),
    ]
    return next((name for kind, name in names if isinstance(value, kind)), "something else")


def read_moment(text: str) -> datetime | None:
    """ISO 8601 as an aware moment in UTC; None for anything else. A date alone is its 00:00 UTC."""
    try:
        if len(text) == len("2025-03-01"):
            return datetime.combine(date.fromisoformat(text), time(), tzinfo=UTC)
        moment = datetime.fromisoformat(text)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def utc_note(values: Mapping[str, Any], *names: str) -> str:
    """A sentence where moments came without an offset and so were read as UTC; empty where none did."""
    bare = [name for name in names if isinstance(values.get(name), str) and _has_no_offset(values[name])]
    return f"Read as UTC, because no offset was given: {', '.join(bare)}." if bare else ""


def _has_no_offset(text: str) -> bool:
    try:
        return datetime.fromisoformat(_LOST_PLUS.sub(r"\1+\2", text)).tzinfo is None
    except ValueError:
        return False


@cache
def _made(kind: type[StrictSerializer]) -> StrictSerializer:
    """One of each kind reads everything: it keeps nothing of what it read, and making one copies every field."""
    return kind()


def _validated(
    serializer: StrictSerializer,
    data: Mapping[str, Any],
    known: Sequence[FieldError] = (),
    *,
    also: Also | None,
) -> dict[str, Any]:
    """``known`` are the faults found before; their fields are not in ``data``, and not missing either."""
    errors = list(known)
    named = {error.field for error in known}
    try:
        values: dict[str, Any] = serializer.run_validation(data)
    except _GoodInParts as error:
        values = error.good
        errors += [fault for fault in field_errors(error.detail) if fault.field not in named]
    except serializers.ValidationError as error:
        raise Invalid("The values will not do.", errors=list(field_errors(error.detail))) from None
    if errors:
        _refuse_all(errors, values, also)
    return values


def _refuse_all(errors: Sequence[FieldError], good: dict[str, Any], also: Also | None) -> NoReturn:
    refusals = Refusals()
    refusals.add(errors)
    with refusals.collecting():
        if also is not None:
            also(good)
    refusals.raise_all(_summary(refusals.errors))
    raise AssertionError("There was something to refuse.")


def _summary(errors: Sequence[FieldError]) -> str:
    names = list(dict.fromkeys(error.field for error in errors if error.field))
    return f"{', '.join(names)} will not do." if names else "The values will not do."


def _unknown(
    field: serializers.Field[Any, Any, Any, Any], data: Any, path: str = ""
) -> Iterator[tuple[str, set[str], set[str]]]:
    """Triples of path, the unknown names there, and the known ones."""
    if isinstance(field, serializers.Serializer) and isinstance(data, dict):
        known = {name for name, inner in field.fields.items() if not inner.read_only}
        if set(data) - known:
            yield path, set(data) - known, known
        for name in known & set(data):
            yield from _unknown(field.fields[name], data[name], f"{path}{name}.")
    elif isinstance(field, serializers.ListField) and isinstance(data, list):
        for position, item in enumerate(data):
            yield from _unknown(field.child, item, f"{path.removesuffix('.')}[{position}].")


def _parameter_errors(name: str, field: Any, values: list[str]) -> list[FieldError]:
    if len(values) > 1 and not isinstance(field, Many):
        return [FieldError(name, f"This takes one value; there are {len(values)}.")]
    leaf = field.child if isinstance(field, Many) else field
    verbatim = getattr(leaf, "verbatim", False)
    errors = []
    for value in values:
        if not value.strip():
            errors.append(FieldError(name, "This is empty. Give it a value, or leave the parameter out."))
        elif not verbatim and value.strip() in _NOT_A_VALUE:
            errors.append(FieldError(name, f"{value.strip()} is no value. Leave the parameter out instead."))
    return errors


def _from_parameters(field: Any, values: list[str]) -> Any:
    if isinstance(field, Many):
        return [_from_parameters(field.child, [value]) for value in values]
    return field.from_parameter(values[0]) if isinstance(field, _Strict) else values[0]


def _require_utf8(request: Request) -> None:
    # Django would put a replacement character in the place of each byte it cannot read, and search for that.
    raw: str = request.META.get("QUERY_STRING", "")
    try:
        unquote_to_bytes(raw.encode("latin-1")).decode("utf-8")
    except UnicodeError:
        raise Malformed("The query string is not percent-encoded UTF-8.", code="not_utf8") from None


def _refuse(message: str) -> NoReturn:
    raise serializers.ValidationError([message])
