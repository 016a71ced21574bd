"""What the worker does again and again. Rooms register it in ``ready()``; migrating puts it into the schedule."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import connection, transaction

_LOCK = 827_342


@dataclass(frozen=True, slots=True)
class Repeated:
    """``task`` is the dotted name of a function without arguments, which may run twice without harm."""

    task: str
    minutes: int


_registered: dict[str, Repeated] = {}


def register_schedule(name: str, *, task: str, minutes: int) -> None:
    _registered[name] = Repeated(task, minutes)


def registered() -> dict[str, Repeated]:
    return dict(_registered)


@transaction.atomic
def schedules_ensure() -> None:
    """Have each registered task in the schedule exactly once, as registered; when it runs next stays."""
    from django_q.models import Schedule

    if Schedule._meta.db_table not in connection.introspection.table_names():
        return  # only another app was migrated so far
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT pg_advisory_xact_lock({_LOCK})")
    for name, repeated in _registered.items():
        wanted = {"func": repeated.task, "schedule_type": Schedule.MINUTES, "minutes": repeated.minutes, "repeats": -1}
        if not Schedule.objects.filter(name=name).update(**wanted):
            Schedule.objects.create(name=name, **wanted)
