"""Which repository a remote names."""

from __future__ import annotations

import pytest

from apps.scopes.identity import parse_remote, repository_identity

SAME = [
    "https://github.com/acme/pay",
    "https://github.com/acme/pay.git",
    "https://github.com/acme/pay/",
    "https://GitHub.com/Acme/Pay.git",
    "https://user:token@github.com/acme/pay.git",
    "https://github.com:443/acme/pay.git",
    "http://github.com/acme//pay",
    "ssh://git@github.com/acme/pay.git",
    "ssh://git@github.com:2222/acme/pay",
    "git://github.com/acme/pay.git",
    "git+ssh://git@github.com/acme/pay.git",
    "git@github.com:acme/pay.git",
    "github.com:acme/pay",
    " git@github.com:acme/pay.git ",
]


@pytest.mark.parametrize("remote", SAME)
def test_every_way_to_write_a_remote_names_one_repository(remote):
    assert repository_identity(remote) == "acme/pay"
    assert parse_remote(remote).identity == "github.com/acme/pay"


@pytest.mark.parametrize(
    "name",
    [
        *("acme/pay", "pay", "org/repo.name", "a&b", "50%_off", "支払い", "8b1c2f0e-3a55-4b6e-9a51-7d0c8d1f0a11"),
        *("ftp://example.com/x", "mailto:me@example.com", "C:\\repos\\pay", "host:", "https://", "https:///x"),
    ],
)
def test_a_plain_name_is_itself(name):
    assert parse_remote(name) is None
    assert repository_identity(name) == name.strip()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("https://github.com/acme/pay", "https://github.com/acme/pay2"),
        ("https://github.com/acme/pay", "https://github.com/acme/sub/pay"),
        ("git@github.com:acme/pay.git", "git@github.com:other/pay.git"),
    ],
)
def test_another_path_is_another_repository(one, other):
    assert repository_identity(one) != repository_identity(other)


def test_another_host_is_told_apart_by_its_identity():
    one, other = parse_remote("https://github.com/acme/pay"), parse_remote("https://gitlab.example.com/acme/pay")

    assert one.path == other.path
    assert one.identity != other.identity


def test_deeper_groups_are_kept():
    assert repository_identity("git@gitlab.com:acme/platform/core/pay.git") == "acme/platform/core/pay"
