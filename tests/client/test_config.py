"""Where address and token come from, and that they go nowhere else."""

from __future__ import annotations

import pytest

from firm_memory_client import Misconfigured
from firm_memory_client.config import config_path, settings, settings_write
from firm_memory_client.plain import barred, one_line, plain

TOKEN = "fm_agent_a-secret-that-nobody-may-see"


def test_what_is_configured_is_kept_for_its_owner_alone(fm, home):
    ended = fm("configure", "--url", "https://memory.example.com", text=f"{TOKEN}\n")
    path = home / ".config" / "firm-memory" / "config.toml"
    assert ended.code == 0
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert TOKEN not in ended.out + ended.err
    kept = settings()
    assert (kept.url, kept.token.reveal(), kept.token_from) == ("https://memory.example.com", TOKEN, str(path))


def test_a_new_token_leaves_the_address_as_it_was(fm, home):
    assert fm("configure", text=f"{TOKEN}\n").code == 0
    assert settings().url == "http://127.0.0.1:8100"
    fm("configure", "--url", "https://memory.example.com", text=f"{TOKEN}\n")
    ended = fm("configure", text="fm_agent_new\n", env={"FIRM_MEMORY_URL": "https://evil.example.net"})
    assert (ended.code, settings().url, settings().token.reveal()) == (0, "https://memory.example.com", "fm_agent_new")


def test_it_is_changed_without_losing_a_comment_or_its_mode(home):
    path = settings_write("https://a.example.com", TOKEN)
    path.write_text(f"# Mine.\n{path.read_text()}")
    settings_write("https://b.example.com/", TOKEN)
    assert path.read_text().startswith("# Mine.\n")
    assert (settings().url, path.stat().st_mode & 0o777) == ("https://b.example.com", 0o600)


def test_the_environment_goes_before_the_file(home):
    settings_write("https://a.example.com", TOKEN)
    both = settings(
        environ={"HOME": str(home), "FIRM_MEMORY_URL": "https://b.example.com", "FIRM_MEMORY_TOKEN": "fm_bot_b"}
    )
    assert (both.url, both.token.reveal()) == ("https://b.example.com", "fm_bot_b")
    assert (
        settings("https://c.example.com", {"FIRM_MEMORY_URL": "https://b.example.com"}).url == "https://c.example.com"
    )


def test_a_kept_token_goes_to_its_own_address_alone(fm, home):
    """Whatever a checkout puts into the environment."""
    settings_write("https://a.example.com", TOKEN)
    assert settings(environ={"FIRM_MEMORY_URL": "https://a.example.com/"}).token.reveal() == TOKEN
    assert settings(environ={"FIRM_MEMORY_URL": "https://evil.example.net"}).token is None
    ended = fm("search", "why?", env={"FIRM_MEMORY_URL": "https://evil.example.net"})
    assert (ended.code, "for another address" in ended.err) == (2, True)


@pytest.mark.parametrize("left", ["${FIRM_MEMORY_TOKEN}", "${env:FIRM_MEMORY_TOKEN}", "{env:X}", "$FIRM_MEMORY_TOKEN"])
def test_a_reference_that_a_client_did_not_replace_is_no_token(left, home):
    """Some pass on the words themselves where there is no such variable; then the kept token is meant."""
    assert settings(environ={"FIRM_MEMORY_TOKEN": left}).token is None
    settings_write("https://a.example.com", TOKEN)
    assert settings(environ={"FIRM_MEMORY_TOKEN": left}).token.reveal() == TOKEN


def test_a_file_that_others_can_read_is_not_used(fm, home):
    path = settings_write("https://a.example.com", TOKEN)
    path.chmod(0o640)
    ended = fm("me")
    assert (ended.code, f"chmod 600 {path}" in ended.err) == (2, True)
    assert TOKEN not in ended.err


@pytest.mark.parametrize("text", ["url =", 'tokn = "x"', "token = 1", "[a]\nb = 1", "\xff"])
def test_a_file_that_says_something_else_is_said(text, home):
    path = config_path()
    path.parent.mkdir(parents=True)
    path.write_bytes(text.encode("latin-1"))
    path.chmod(0o600)
    with pytest.raises(Misconfigured, match="config"):
        settings()


def test_a_relative_folder_of_xdg_counts_nothing(home):
    assert config_path({"XDG_CONFIG_HOME": "evil"}) == home / ".config" / "firm-memory" / "config.toml"
    assert config_path({"XDG_CONFIG_HOME": "/etc/xdg"}).as_posix() == "/etc/xdg/firm-memory/config.toml"


# --- hostile text at a terminal ---------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "hostile",
    [
        "\x1b[2J",
        "\x1b]0;title\x07",
        "\x9b31m",
        "\r",
        "\x08\x08",
        "\u202e",
        "\u2066",
        "\u200b",
        "\x00",
        "\ud800",
        "\x7f",
        "\U000e0041",
    ],
    ids=ascii,
)
def test_what_a_terminal_would_obey_is_spelt_out(hostile):
    shown = plain(f"a{hostile}b")
    assert not set(hostile) & set(shown) - set("[]0;title2J31m")
    assert shown.startswith("a\\")
    assert shown.endswith("b")
    assert not set(hostile) & set(one_line(f"a{hostile}b")) - set("[]0;title2J31m")


def test_text_of_people_stays_as_it_is():
    for text in ("Größe\n\tinnen", "می‌خواهم", "👩‍👩‍👧", "日本語"):
        assert plain(text) == text


def test_no_line_passes_for_one_of_ours():
    assert barred("Yes.\r\nM-2  approved\nrc") == "│ Yes.\n│ M-2  approved\n│ rc"
