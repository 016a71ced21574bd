"""Keys that spare a reviewer the mouse: printed on what they press, listed in the help, and read by the script."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpRequest, HttpResponseBase
from django.utils.html import format_html
from django.utils.safestring import SafeString

COOKIE = "shortcuts"
OFF = "off"
_A_YEAR = 365 * 24 * 3600


@dataclass(frozen=True, slots=True)
class Shortcut:
    """``keys`` are those of ``KeyboardEvent.key``; they are one combination."""

    name: str
    keys: tuple[str, ...]
    does: str
    place: str

    @property
    def aria(self) -> str:
        return "+".join(self.keys)


_QUEUE, _CANDIDATE, _ANYWHERE = "In a list", "On a candidate", "Everywhere"
SHORTCUTS = (
    Shortcut("approve", ("a",), "Approve, and open the next one", _CANDIDATE),
    Shortcut("amend", ("e",), "Amend the statement", _CANDIDATE),
    Shortcut("reject", ("r",), "Write why you reject", _CANDIDATE),
    Shortcut("next", ("j",), "Next candidate", _CANDIDATE),
    Shortcut("previous", ("k",), "Previous candidate", _CANDIDATE),
    Shortcut("down", ("j",), "Next row", _QUEUE),
    Shortcut("up", ("k",), "Previous row", _QUEUE),
    Shortcut("tick", ("x",), "Tick the row", _QUEUE),
    Shortcut("open", ("Enter",), "Open the row", _QUEUE),
    Shortcut("undo", ("u",), "Reopen what you decided last", _ANYWHERE),
    Shortcut("search", ("/",), "Search", _ANYWHERE),
    Shortcut("send", ("Ctrl", "Enter"), "Send the form you type in", _ANYWHERE),
    Shortcut("leave", ("Escape",), "Leave the field", _ANYWHERE),
    Shortcut("help", ("?",), "Show these shortcuts", _ANYWHERE),
)
BY_NAME = {shortcut.name: shortcut for shortcut in SHORTCUTS}


def by_place() -> list[tuple[str, list[Shortcut]]]:
    places = dict.fromkeys(shortcut.place for shortcut in SHORTCUTS)
    return [(place, [shortcut for shortcut in SHORTCUTS if shortcut.place == place]) for place in places]


def shortcuts_on(request: HttpRequest) -> bool:
    return request.COOKIES.get(COOKIE) != OFF


def printed(request: HttpRequest, name: str) -> SafeString:
    """The key as it stands on what it presses; nothing where shortcuts are switched off."""
    if not shortcuts_on(request):
        return SafeString("")
    return format_html('<kbd aria-hidden="true">{}</kbd>', BY_NAME[name].aria)


def shortcuts_switch(response: HttpResponseBase, *, on: bool) -> None:
    if on:
        response.delete_cookie(COOKIE, samesite="Lax")
    else:
        response.set_cookie(COOKIE, OFF, max_age=_A_YEAR, httponly=True, samesite="Lax")
