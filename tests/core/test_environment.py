from __future__ import annotations

import pytest
from django.core.exceptions import ImproperlyConfigured

from apps.core.environment import number


@pytest.mark.parametrize(("text", "read"), [("", 7), (" ", 7), ("8", 8), (" 9 ", 9), ("1", 1), ("10", 10)])
def test_a_number_is_read_or_its_default_taken(text, read, monkeypatch):
    monkeypatch.setenv("A_NUMBER", text)

    assert number("A_NUMBER", 7, least=1, most=10) == read


@pytest.mark.parametrize("text", ["abc", "-1", "0", "11", "1.5", "1_0", "٣"])
def test_what_is_no_such_number_is_refused_with_what_to_write(text, monkeypatch):
    monkeypatch.setenv("A_NUMBER", text)

    with pytest.raises(ImproperlyConfigured, match=r"^A_NUMBER is '.+'. Write a whole number from 1 to 10.$"):
        number("A_NUMBER", 7, least=1, most=10)
