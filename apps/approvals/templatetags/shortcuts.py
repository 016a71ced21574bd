"""What templates print of a shortcut; nothing where shortcuts are switched off."""

from __future__ import annotations

from django import template
from django.forms import BoundField
from django.template.context import Context
from django.utils.html import format_html
from django.utils.safestring import SafeString

from apps.approvals.shortcuts import BY_NAME, Shortcut, by_place

register = template.Library()
_NOTHING = SafeString("")


@register.simple_tag(takes_context=True)
def pressed_by(context: Context, name: str) -> SafeString:
    """The attribute by which assistive technology and the script know the key."""
    if not context.get("shortcuts_on"):
        return _NOTHING
    return format_html(' aria-keyshortcuts="{}"', BY_NAME[name].aria)


@register.simple_tag(takes_context=True)
def key(context: Context, name: str) -> SafeString:
    """The key as it is printed on what it presses."""
    if not context.get("shortcuts_on"):
        return _NOTHING
    return format_html('<kbd aria-hidden="true">{}</kbd>', BY_NAME[name].aria)


@register.simple_tag
def shortcuts_by_place() -> list[tuple[str, list[Shortcut]]]:
    return by_place()


@register.simple_tag(takes_context=True)
def field_pressed_by(context: Context, field: BoundField, name: str) -> SafeString:
    """The field itself, reached by a key."""
    attributes: dict[str, str | bool] = {"aria-keyshortcuts": BY_NAME[name].aria} if context.get("shortcuts_on") else {}
    return field.as_widget(attrs=attributes)
