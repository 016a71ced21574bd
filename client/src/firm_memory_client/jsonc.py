"""JSON with comments, changed at one place: everything else stays as it was typed, comments and trailing commas too."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

_SPACE: Final = re.compile(r"(?:[ \t\r\n\ufeff]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING: Final = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_ATOM: Final = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|true|false|null")
_MAX_DEPTH: Final = 200


class NotJson(ValueError):
    """The text is no JSON with comments, or holds something else where a member belongs."""


@dataclass(slots=True)
class _Node:
    """``start`` and ``end`` are where it stands. An object has ``members``, an array ``items``."""

    start: int
    end: int
    value: Any
    members: dict[str, _Node] = field(default_factory=dict)
    items: list[_Node] = field(default_factory=list)
    trailing_comma: bool = False


def loads(text: str) -> Any:
    """The value; ``NotJson`` with the line where it ends to be JSON. An empty text is an empty object."""
    return _root(text).value if text.strip("\ufeff \t\r\n") else {}


def with_member(text: str, path: tuple[str, ...], value: Any) -> str:
    """``text`` with ``value`` at ``path``, in the place of what stands there or as the last member of its object.

    Objects on the way are made. ``NotJson`` where something on the way is no object.
    """
    if not text.strip("\ufeff \t\r\n"):
        text = "{}\n"
    node, steps = _root(text), list(path)
    depth = 0
    while True:
        if not isinstance(node.value, dict):
            raise NotJson(f"{'.'.join(path[:depth]) or 'The whole'} is no object. Mend it by hand.")
        if not steps:
            raise NotJson("There is no name to put it under.")
        name = steps.pop(0)
        depth += 1
        if name not in node.members:
            for inner in reversed(steps):
                value = {inner: value}
            return _with_last(text, node, f"{json.dumps(name)}: ", value, depth)
        if not steps:
            old = node.members[name]
            if old.value == value:
                return text
            return f"{text[: old.start]}{_written(value, text, depth)}{text[old.end :]}"
        node = node.members[name]


def with_item(text: str, name: str, item: Any) -> str:
    """``text`` with ``item`` at the end of the list ``name`` at the top, which is made where there is none."""
    if not text.strip("\ufeff \t\r\n"):
        text = "{}\n"
    root = _root(text)
    listed = root.members.get(name) if isinstance(root.value, dict) else None
    if listed is None:
        return with_member(text, (name,), [item])
    if not isinstance(listed.value, list):
        raise NotJson(f"{name} is no list. Mend it by hand.")
    return _with_last(text, listed, "", item, 2)


def _with_last(text: str, node: _Node, label: str, value: Any, depth: int) -> str:
    unit, newline = _indent_of(text), _newline_of(text)
    inner, outer = newline + unit * depth, newline + unit * (depth - 1)
    made = f"{label}{_written(value, text, depth)}"
    children = list(node.members.values()) or node.items
    if not children:
        return f"{text[: node.start + 1]}{inner}{made}{outer}{text[node.end - 1 :]}"
    at = _last_end(text, node, children)
    comma = "" if node.trailing_comma else ","
    closing = "," if node.trailing_comma else ""
    last = max(child.end for child in children)
    end = "" if "\n" in text[at : node.end] else outer
    return f"{text[:last]}{comma}{text[last:at]}{inner}{made}{closing}{end}{text[at:]}"


def _last_end(text: str, node: _Node, children: list[_Node]) -> int:
    """Behind the last child, its comma, and a comment on the same line."""
    at = max(child.end for child in children)
    if node.trailing_comma:
        at = text.index(",", _past_space(text, at)) + 1
    rest = re.compile(r"[ \t]*(?://[^\r\n]*|/\*[^\r\n]*?\*/)?").match(text, at)
    return rest.end() if rest and rest[0].strip() else at


def _written(value: Any, text: str, depth: int) -> str:
    unit, newline = _indent_of(text), _newline_of(text)
    lines = json.dumps(value, indent=unit, ensure_ascii=False).split("\n")
    return f"{newline}{unit * depth}".join(lines)


def _indent_of(text: str) -> str:
    found = re.search(r"^([ \t]+)\S", text, re.MULTILINE)
    return found[1] if found and not found[0].lstrip().startswith("*") else "  "


def _newline_of(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


# --- reading ----------------------------------------------------------------------------------------------
def _root(text: str) -> _Node:
    at = _past_space(text, 0)
    node = _node(text, at, 0)
    end = _past_space(text, node.end)
    if end != len(text):
        raise _fault(text, end)
    return node


def _node(text: str, at: int, depth: int) -> _Node:
    if depth > _MAX_DEPTH:
        raise NotJson("It is nested too deeply.")
    character = text[at : at + 1]
    if character == "{":
        return _object(text, at, depth)
    if character == "[":
        return _array(text, at, depth)
    found = (_STRING if character == '"' else _ATOM).match(text, at)
    if found is None:
        raise _fault(text, at)
    try:
        return _Node(at, found.end(), json.loads(found[0]))
    except ValueError:
        raise _fault(text, at) from None


def _object(text: str, start: int, depth: int) -> _Node:
    node = _Node(start, start, {})
    for at in _children(text, node, "}"):
        key = _STRING.match(text, at)
        if key is None:
            raise _fault(text, at)
        colon = _past_space(text, key.end())
        if text[colon : colon + 1] != ":":
            raise _fault(text, colon)
        child = _node(text, _past_space(text, colon + 1), depth + 1)
        name = json.loads(key[0])
        node.members[name], node.value[name], node.end = child, child.value, child.end
    return node


def _array(text: str, start: int, depth: int) -> _Node:
    node = _Node(start, start, [])
    for at in _children(text, node, "]"):
        child = _node(text, at, depth + 1)
        node.items.append(child)
        node.value.append(child.value)
        node.end = child.end
    return node


def _children(text: str, node: _Node, closing: str) -> Iterator[int]:
    """Where each child begins. Whoever reads one puts its end into ``node.end``, which is the end of all at last."""
    at = _past_space(text, node.start + 1)
    while text[at : at + 1] != closing:
        node.trailing_comma = False
        yield at
        at = _past_space(text, node.end)
        if text[at : at + 1] == ",":
            node.trailing_comma = True
            at = _past_space(text, at + 1)
        elif text[at : at + 1] != closing:
            raise _fault(text, at)
    node.end = at + 1


def _past_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _fault(text: str, at: int) -> NotJson:
    return NotJson(f"It is no JSON at line {text.count(chr(10), 0, at) + 1}.")
