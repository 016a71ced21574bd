"""Reading pages as a browser does."""

from __future__ import annotations

import html
import re
from html.parser import HTMLParser
from typing import Any


def text(answer: Any) -> str:
    return answer.content.decode()


def words(answer: Any) -> str:
    """What is to be read on a page, on one line."""
    return html.unescape(
        re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", re.sub(r"(</(?:p|h\d|li|div)>)", r" \1", text(answer))))
    )


class _Forms(HTMLParser):
    """The fields of every form by its action, with the values they are shown with."""

    def __init__(self) -> None:
        super().__init__()
        self.forms: dict[str, dict[str, str]] = {}
        self._fields: dict[str, str] = {}
        self._textarea = self._select = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        name = values.get("name", "")
        if tag == "form":
            self._fields = self.forms.setdefault(values.get("action", ""), {})
        elif tag == "textarea":
            self._textarea = name
            self._fields[name] = ""
        elif tag == "select":
            self._select = name
        elif tag == "option" and (self._select not in self._fields or "selected" in values):
            self._fields[self._select] = values["value"]
        elif tag == "input" and values["type"] in ("checkbox", "radio"):
            self._fields |= {name: values.get("value", "on")} if "checked" in values else {}
        elif tag == "input" and name:
            self._fields[name] = values.get("value", "")

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea":
            # A browser leaves out the first line break and sends every other as two characters.
            value = self._fields[self._textarea].removeprefix("\n")
            self._fields[self._textarea] = value.replace("\r\n", "\n").replace("\n", "\r\n")
            self._textarea = ""
        elif tag == "select":
            self._select = ""

    def handle_data(self, data: str) -> None:
        if self._textarea:
            self._fields[self._textarea] += data


def form(answer: Any, action: str) -> dict[str, str]:
    """What a browser sends when the form with this action is sent as it is shown."""
    parser = _Forms()
    parser.feed(text(answer))
    (fields,) = [fields for path, fields in parser.forms.items() if path.split("?")[0] == action]
    return {name: value for name, value in fields.items() if name != "csrfmiddlewaretoken"}
