"""Filters of the queue that somebody keeps under a name, each for themselves in one workspace."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.http import QueryDict

from apps.accounts.models import Role
from apps.accounts.principal import Principal
from apps.approvals.forms import QueueFilterForm
from apps.approvals.models import MAX_NAME, MAX_QUERY, SavedFilter
from apps.core.errors import Forbidden, Invalid, NotFound
from apps.core.screening import check_text, raise_if_refused
from apps.taxonomy.selectors import find_types, memory_types

MAX_SAVED = 50


def saved_filters(principal: Principal) -> list[SavedFilter]:
    """Those of whoever asks, by name."""
    return list(_own(principal))


@transaction.atomic
def saved_filter_save(*, principal: Principal, name: str, query: str, is_default: bool = False) -> SavedFilter:
    """Keep a filter; a name that is taken gets the new one. Raises ``Invalid`` for what the queue does not know."""
    principal.require_role(Role.REVIEWER, to="keep a filter of the queue")
    name = name.strip()
    kept = checked_query(principal, query)
    if errors := check_text(name, field="name", max_length=MAX_NAME, multiline=False):
        raise Invalid("The name will not do.", errors=errors)
    raise_if_refused({"name": name}, exclusions=())
    rows = _locked(principal)
    row = next((each for each in rows if each.name == name), None)
    if row is None and len(rows) >= MAX_SAVED:
        raise Invalid.field("name", f"You keep {MAX_SAVED} filters already. Remove one first.")
    row = row or SavedFilter(workspace=principal.workspace, user=_person(principal), name=name)
    row.query = kept
    row.save()
    if is_default:
        _make_default(principal, row)
    return row


@transaction.atomic
def saved_filter_open_with(*, principal: Principal, filter_id: int, is_default: bool) -> SavedFilter:
    """Say whether the queue opens with it. Only one does; the one before it no longer does."""
    row = _get(principal, filter_id)
    if is_default:
        _make_default(principal, row)
    else:
        row.is_default = False
        row.save(update_fields=["is_default"])
    return row


@transaction.atomic
def saved_filter_remove(*, principal: Principal, filter_id: int) -> SavedFilter:
    row = _get(principal, filter_id)
    row.delete()
    return row


def checked_query(principal: Principal, query: str) -> str:
    """The filter in a query string, in one spelling and without empty values. Raises ``Invalid``."""
    if len(query) > MAX_QUERY:
        raise Invalid.field("query", f"This filter is too long to be kept: at most {MAX_QUERY:,} characters.")
    types, parameters = memory_types(principal.workspace), QueryDict(query)
    form = QueueFilterForm(parameters, types=types)
    if not form.is_valid():
        raise Invalid("This filter will not do.", errors=form.complaints())
    asked = form.asked()
    if asked.type is not None:
        find_types(principal.workspace, [asked.type], field="type", active_only=False, known=types)
    raise_if_refused(
        {name: value for name, value in form.cleaned_data.items() if isinstance(value, str)}, exclusions=()
    )
    kept = QueueFilterForm.carried(parameters)
    if not kept:
        raise Invalid.field("query", "There is nothing to keep: set a filter first.")
    return kept


def _make_default(principal: Principal, row: SavedFilter) -> None:
    _own(principal).exclude(pk=row.pk).update(is_default=False)
    row.is_default = True
    row.save(update_fields=["is_default"])


def _own(principal: Principal) -> QuerySet[SavedFilter]:
    return SavedFilter.objects.filter(workspace=principal.workspace, user=principal.user)


def _locked(principal: Principal) -> list[SavedFilter]:
    """One change at a time for each person: how many there are and which is the default spans the rows."""
    principal.require_role(Role.REVIEWER, to="change a filter of the queue")
    User.objects.select_for_update(no_key=True).get(pk=_person(principal).pk)
    return list(_own(principal))


def _get(principal: Principal, filter_id: int) -> SavedFilter:
    """Raises ``NotFound`` alike for what does not exist and for what somebody else keeps."""
    row = next((each for each in _locked(principal) if each.pk == filter_id), None)
    if row is None:
        raise NotFound("There is no such filter of yours.")
    return row


def _person(principal: Principal) -> User:
    if principal.user is None:
        raise Forbidden("Only a person keeps filters.")
    return principal.user
