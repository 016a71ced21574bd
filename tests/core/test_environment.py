from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from apps.core.environment import Environment, listening, web_processes

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(("text", "read"), [("", 7), (" ", 7), ("8", 8), (" 9 ", 9), ("1", 1), ("10", 10)])
def test_a_number_is_read_or_its_default_taken(text, read):
    environment = Environment({"A_NUMBER": text})

    assert environment.number("A_NUMBER", 7, least=1, most=10) == read
    environment.refuse()


@pytest.mark.parametrize("text", ["abc", "-1", "0", "11", "1.5", "1_0", "٣", "9" * 5_000])
def test_what_is_no_such_number_is_refused_with_what_to_write(text):
    environment = Environment({"A_NUMBER": text})

    assert environment.number("A_NUMBER", 7, least=1, most=10) == 7
    with pytest.raises(ImproperlyConfigured, match=r"^A_NUMBER is '.{1,60}'. Write a whole number from 1 to 10.$"):
        environment.refuse()


@pytest.mark.parametrize(
    ("text", "read"),
    [("on", True), ("TRUE", True), ("1", True), ("off", False), ("No", False), ("", True), (" ", True)],
)
def test_a_switch(text, read):
    environment = Environment({"A_SWITCH": text})

    assert environment.switch("A_SWITCH", default=True) is read
    environment.refuse()


def test_all_that_will_not_do_is_said_at_once(tmp_path):
    (tmp_path / "file").write_text("")
    environment = Environment(
        {
            "SWITCH": "maybe",
            "CHOICE": "loud",
            "FOLDER": str(tmp_path / "file" / "below"),
            "ORIGINS": "https://good.example, memory.example.com",
            "FIRM_MEMORY_BIND": "127.0.0.1 ::1",
            "FIRM_MEMORY_PORT": "65536",
            "FIRM_MEMORY_WEB_WORKERS": "0",
            "FIRM_MEMORY_WEB_THREADS": "x",
        }
    )
    environment.switch("SWITCH", default=False)
    environment.choice("CHOICE", "info", among=["info", "error"])
    environment.folder("FOLDER", tmp_path)
    environment.origins("ORIGINS", [])
    listening(environment)
    web_processes(environment)

    with pytest.raises(ImproperlyConfigured) as refused:
        environment.refuse()
    assert str(refused.value).splitlines() == [
        "SWITCH is 'maybe'. Write on or off.",
        "CHOICE is 'loud'. Write one of: info, error.",
        f"FOLDER is {str(tmp_path / 'file' / 'below')[:60]!r}. {tmp_path / 'file'} is no folder. Name one that exists, "
        "or that can be made.",
        "ORIGINS is 'https://good.example, memory.example.com'. Write each with its scheme, such as "
        "https://memory.example.com.",
        "FIRM_MEMORY_BIND is '127.0.0.1 ::1'. Write one address, such as 127.0.0.1 or ::1.",
        "FIRM_MEMORY_PORT is '65536'. Write a whole number from 1 to 65,535.",
        "FIRM_MEMORY_WEB_WORKERS is '0'. Write a whole number from 1 to 256.",
        "FIRM_MEMORY_WEB_THREADS is 'x'. Write a whole number from 1 to 1,024.",
    ]


WRONG = {
    "FIRM_MEMORY_PORT": "0",
    "FIRM_MEMORY_BIND": "a b",
    "FIRM_MEMORY_WEB_WORKERS": "0",
    "FIRM_MEMORY_WEB_THREADS": "x",
    "FIRM_MEMORY_WORKERS": "-1",
    "FIRM_MEMORY_LOG_LEVEL": "loud",
    "FIRM_MEMORY_THROTTLE": "maybe",
    "FIRM_MEMORY_DEBUG": "perhaps",
    "FIRM_MEMORY_SSL_REDIRECT": "perhaps",
    "FIRM_MEMORY_BEHIND_PROXY": "2",
    "FIRM_MEMORY_PROXIES": "many",
    "FIRM_MEMORY_HSTS_SECONDS": "1y",
    "FIRM_MEMORY_METRICS_TOKEN": "short",
    "FIRM_MEMORY_PROVIDER": "redis",
    "FIRM_MEMORY_EMBEDDER_DIMENSIONS": "384.0",
    "FIRM_MEMORY_EMBEDDER_THREADS": "all",
    "FIRM_MEMORY_EXTRACTOR": "oracle",
    "FIRM_MEMORY_INTENT": "guess",
    "FIRM_MEMORY_LLM_TIMEOUT": "600",
    "FIRM_MEMORY_LLM_DAILY_TOKENS": "-1",
    "FIRM_MEMORY_PREFILTER_LENGTH": "some",
    "FIRM_MEMORY_READS_PER_MINUTE": "0",
    "FIRM_MEMORY_WRITES_PER_MINUTE": "0",
    "FIRM_MEMORY_SEARCHES_PER_MINUTE": "0",
    "FIRM_MEMORY_ANONYMOUS_PER_MINUTE": "0",
    "FIRM_MEMORY_IDEMPOTENCY_WAIT_MS": "99999999999",
    "FIRM_MEMORY_ENV_FILE": "/nowhere/at/all",
    "CSRF_TRUSTED_ORIGINS": "memory.example.com",
    "GOOGLE_CLIENT_ID": "only-half",
}
PROD_ONLY = {"FIRM_MEMORY_SSL_REDIRECT", "FIRM_MEMORY_BEHIND_PROXY", "FIRM_MEMORY_HSTS_SECONDS", "CSRF_TRUSTED_ORIGINS"}


def start(command: list[str], tmp_path: Path, **changes: str) -> subprocess.CompletedProcess[str]:
    known = {"PATH": os.environ["PATH"], "FIRM_MEMORY_ENV_FILE": "", "FIRM_MEMORY_DATA_DIR": str(tmp_path)}
    return subprocess.run(
        command, env=known | changes, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("settings", ["dev", "prod"])
def test_every_setting_that_will_not_do_stops_the_start_with_a_sentence(settings, tmp_path):
    answer = start(
        [sys.executable, "manage.py", "up"], tmp_path, DJANGO_SETTINGS_MODULE=f"firmmemory.settings.{settings}", **WRONG
    )

    assert answer.returncode == 1
    assert "Traceback" not in answer.stderr
    said = answer.stderr.splitlines()
    base = set(WRONG) - PROD_ONLY - {"FIRM_MEMORY_DEBUG", "GOOGLE_CLIENT_ID"} | {"GOOGLE_CLIENT_SECRET"}
    assert {line.split(" ")[0] for line in said} == base
    assert all(line.endswith(".") for line in said)


@pytest.mark.parametrize(("settings", "names"), [("dev", {"FIRM_MEMORY_DEBUG"}), ("prod", PROD_ONLY | {"Set"})])
def test_those_of_one_way_of_running_too(settings, names, tmp_path):
    wrong = {name: value for name, value in WRONG.items() if name in PROD_ONLY | {"FIRM_MEMORY_DEBUG"}}
    answer = start(
        [sys.executable, "manage.py", "up"], tmp_path, DJANGO_SETTINGS_MODULE=f"firmmemory.settings.{settings}", **wrong
    )

    assert answer.returncode == 1
    assert "Traceback" not in answer.stderr
    assert {line.split(" ")[0] for line in answer.stderr.splitlines()} == names


@pytest.mark.parametrize(
    ("name", "value"),
    [("FIRM_MEMORY_EXTRACTOR", "llm"), ("FIRM_MEMORY_EXTRACTOR", "provider"), ("FIRM_MEMORY_INTENT", "model")],
)
def test_what_asks_a_model_needs_the_name_of_one(name, value, tmp_path):
    command = [sys.executable, "manage.py", "up"]
    (said,) = start(command, tmp_path, **{name: value}).stderr.splitlines()
    assert said.startswith(f"{name} is {value}, ")
    assert "and FIRM_MEMORY_LLM_MODEL names none." in said


def test_gunicorn_started_by_itself_says_the_same(tmp_path):
    command = [sys.executable, "-m", "gunicorn", "--config", "gunicorn.conf.py", "firmmemory.wsgi"]
    answer = start(command, tmp_path, FIRM_MEMORY_WEB_WORKERS="0", FIRM_MEMORY_PORT="http")

    assert answer.returncode == 1
    assert answer.stderr.splitlines() == [
        "FIRM_MEMORY_PORT is 'http'. Write a whole number from 1 to 65,535.",
        "FIRM_MEMORY_WEB_WORKERS is '0'. Write a whole number from 1 to 256.",
    ]
