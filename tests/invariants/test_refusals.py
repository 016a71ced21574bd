"""What PostgreSQL refuses reaches people as a sentence, not as the name of a constraint."""

from __future__ import annotations

import re

import pytest
from django.apps import apps
from django.db.models import UniqueConstraint

from apps.core.problems import CONSTRAINT_ERRORS

ROOMS = ("taxonomy", "scopes", "sources", "memories", "candidates")
MODELS = [model for model in apps.get_models() if model._meta.app_label in ROOMS]


def raised_by_triggers() -> set[str]:
    functions = [
        str(getattr(trigger, "func", "")) for model in MODELS for trigger in getattr(model._meta, "triggers", [])
    ]
    return {name for function in functions for name in re.findall(r"CONSTRAINT = '(\w+)'", function)}


def unique() -> set[str]:
    """Those that two requests can run into at the same moment; the others are held by get-or-create."""
    found = {
        constraint.name
        for model in MODELS
        for constraint in model._meta.constraints
        if isinstance(constraint, UniqueConstraint)
    }
    return found & {"candidate_once_while_open", "memory_number_once", "supersession_once_while_live"}


@pytest.mark.parametrize("name", sorted(raised_by_triggers() | unique()))
def test_every_constraint_has_a_sentence(name):
    error = CONSTRAINT_ERRORS[name]()

    assert error.status in (403, 404, 409, 422)
    assert error.detail.endswith(".")
    assert name not in error.detail
    assert len(error.detail) > 15


def test_there_are_many():
    assert len(raised_by_triggers()) >= 25
