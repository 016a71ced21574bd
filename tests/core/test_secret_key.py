from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.core.exceptions import ImproperlyConfigured

from apps.core.secret_key import persistent_secret_key


def test_the_key_is_made_once_and_readable_by_its_owner_alone(tmp_path):
    key = persistent_secret_key(tmp_path / "new")

    assert len(key) >= 50
    assert persistent_secret_key(tmp_path / "new") == key
    assert persistent_secret_key(tmp_path / "other") != key
    (made,) = (tmp_path / "new").iterdir()
    assert stat.S_IMODE(made.stat().st_mode) == 0o600


def test_processes_that_start_together_get_one_key(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        keys = set(pool.map(lambda _: persistent_secret_key(tmp_path), range(32)))

    assert len(keys) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["secret_key"]


def test_a_damaged_key_is_not_used(tmp_path):
    (tmp_path / "secret_key").write_text("short")

    with pytest.raises(ImproperlyConfigured, match="secret_key is damaged"):
        persistent_secret_key(tmp_path)
