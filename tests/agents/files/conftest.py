from __future__ import annotations

import pytest

from apps.accounts.models import Role
from apps.accounts.services import workspace_add
from tests.agents.files.exports import exported, forget_everything
from tests.conftest import add_person
from tests.ledger import a_source, remember


@pytest.fixture
def empty(db):
    return workspace_add(slug="elsewhere")


@pytest.fixture
def dora(empty):
    return add_person(empty, "dora", Role.REVIEWER)


@pytest.fixture
def file(workspace, bot, reviewer, dora, tmp_path):
    remember(bot, reviewer, "Use tabs in makefiles.", sources=(a_source("acme/pay!1", quote="tabs"),))
    old = remember(bot, reviewer, "Old.")
    remember(bot, reviewer, "New.", supersedes=[old])
    exported(workspace, tmp_path / "all.jsonl")
    forget_everything()
    return tmp_path / "all.jsonl"
