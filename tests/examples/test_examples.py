"""The examples as their forges run them: the script of the job, against a forge and a Firm Memory on local ports."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import yaml

from apps.candidates.models import Candidate
from apps.capture.extractors.registry import override
from apps.capture.models import CaptureEvent
from apps.capture.tasks import drain
from tests.capture.doubles import Canned, a_fact
from tests.examples.forge import Forge, serving

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SHA = "4f2a9c1d0e"

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def checkout(tmp_path):
    (tmp_path / "ci").mkdir()
    shutil.copy(EXAMPLES / "discussion.py", tmp_path / "ci")
    return tmp_path


def run(script: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """A line of a job's script, with nothing in its environment but what the forge and the job's settings put there."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.run(
        ["sh", "-euc", script],
        cwd=folder,
        env={"PATH": path, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def gitlab_script() -> str:
    job = yaml.safe_load((EXAMPLES / "gitlab-ci.yml").read_text())["hand-over-discussion"]
    assert job["allow_failure"] is True
    return "\n".join(job["script"])


def github_script() -> tuple[str, dict[str, str]]:
    workflow = yaml.safe_load((EXAMPLES / "github-workflow.yml").read_text())
    (step,) = [step for step in workflow["jobs"]["hand-over"]["steps"] if "run" in step]
    return step["run"], step["env"]


def on_gitlab(project: str = "7") -> Forge:
    api = f"/api/v4/projects/{project}"
    request = {
        "iid": 128,
        "state": "merged",
        "title": "Retry with jitter",
        "description": "Adds jitter to all retries.",
        "web_url": "https://git.example.com/acme/pay/-/merge_requests/128",
        "merged_at": "2026-03-01T09:30:00.000Z",
        "author": {"username": "anna"},
    }
    notes = [
        {"system": False, "author": {"username": "ben"}, "body": "Without jitter the gateway went down."},
        {"system": False, "author": {"username": "anna"}, "body": "Then everywhere, never without."},
        {"system": True, "author": {"username": "bot"}, "body": "changed the milestone"},
    ]
    return Forge(
        {
            f"{api}/repository/commits/{SHA}/merge_requests": [{"iid": 4, "state": "closed"}, request],
            f"{api}/merge_requests/128/discussions": [
                {"notes": notes},
                *({"notes": [{"author": {"username": "cleo"}, "body": f"Remark {at}."}]} for at in range(4)),
            ],
        }
    )


def of_gitlab(forge: Forge, live_server: Any, secret: str, **more: str) -> dict[str, str]:
    return {
        "CI_API_V4_URL": f"{forge.url}/api/v4",
        "CI_PROJECT_ID": "7",
        "CI_PROJECT_PATH": "acme/pay",
        "CI_COMMIT_SHA": SHA,
        "GITLAB_READ_TOKEN": "glpat-reads",
        "FIRM_MEMORY_URL": live_server.url,
        "FIRM_MEMORY_TOKEN": secret,
        **more,
    }


def payload() -> str:
    text: str = CaptureEvent.objects.values_list("payload", flat=True).get()
    return text


def test_a_merged_request_of_gitlab_is_handed_over_once(live_server, botty, checkout):
    with serving(on_gitlab()) as forge:
        first = run(gitlab_script(), checkout, **of_gitlab(forge, live_server, botty.secret))
        again = run(gitlab_script(), checkout, **of_gitlab(forge, live_server, botty.secret))
    assert first.returncode == 0, first.stderr
    assert first.stdout.startswith(f"Handed over as acme/pay!128@{SHA}: event ")
    assert "handed over before" in again.stdout
    event = CaptureEvent.objects.get()
    assert (event.kind, event.external_id, event.scope["repos"]) == (
        "merge_request",
        f"acme/pay!128@{SHA}",
        ["acme/pay"],
    )
    source = event.sources[0]
    assert (source["reference"], source["title"], source["commit"]) == ("acme/pay!128", "Retry with jitter", SHA)
    assert payload().startswith("# Retry with jitter\n\nanna: Adds jitter to all retries.\n\nben: Without jitter")
    assert "changed the milestone" not in payload()
    assert "Remark 3." in payload()  # on the third page
    assert {headers["private-token"] for _, headers in forge.asked} == {"glpat-reads"}


def test_a_commit_without_a_merge_request_hands_nothing_over(live_server, botty, checkout):
    with serving(Forge({f"/api/v4/projects/7/repository/commits/{SHA}/merge_requests": []})) as forge:
        ended = run(gitlab_script(), checkout, **of_gitlab(forge, live_server, botty.secret))
    assert (ended.returncode, ended.stdout.strip()) == (
        0,
        "No merged change belongs to this run. Nothing was handed over.",
    )
    assert not CaptureEvent.objects.exists()


def test_a_forge_that_is_busy_is_asked_again(live_server, botty, checkout):
    forge = on_gitlab()
    forge.failures = [429, 503]
    with serving(forge):
        ended = run(gitlab_script(), checkout, **of_gitlab(forge, live_server, botty.secret))
    assert ended.returncode == 0, ended.stderr
    assert CaptureEvent.objects.count() == 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"FIRM_MEMORY_TOKEN": "fm_bot_nobody-knows"}, "401"),
        ({"GITLAB_READ_TOKEN": ""}, "GITLAB_READ_TOKEN is not set."),
        ({"CI_PROJECT_ID": "8"}, "404"),
        ({"FIRM_MEMORY_URL": "ftp://memory"}, "is no web address"),
    ],
)
def test_what_goes_wrong_is_said_and_fails_the_job_alone(live_server, botty, checkout, change, said):
    with serving(on_gitlab()) as forge:
        ended = run(gitlab_script(), checkout, **of_gitlab(forge, live_server, botty.secret) | change)
    assert ended.returncode == 1
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr
    assert botty.secret not in ended.stderr + ended.stdout


def on_github() -> Forge:
    api = "/repos/acme/pay"
    by = {"user": {"login": "ben"}}
    return Forge(
        {
            f"{api}/issues/12/comments": [{"id": 1, "body": "Why not a queue?", **by}],
            f"{api}/pulls/12/reviews": [{"id": 2, "body": "", **by}, {"id": 3, "body": "Fine with jitter.", **by}],
            f"{api}/pulls/12/comments": [
                {"id": 4, "body": "Is this the cap?", **by},
                {"id": 5, "body": "Another thread.", **by},
                {"id": 6, "in_reply_to_id": 4, "body": "Yes, a minute.", "user": None},
            ],
        },
        links=True,
    )


@pytest.mark.parametrize("merged", [True, False])
def test_a_pull_request_of_github_is_handed_over_when_it_was_merged(live_server, botty, checkout, merged):
    pull = {
        "number": 12,
        "merged": merged,
        "title": "Retry with jitter",
        "body": "Adds jitter.",
        "html_url": "https://github.example.com/acme/pay/pull/12",
        "merged_at": "2026-03-01T09:30:00Z",
        "merge_commit_sha": SHA,
        "user": {"login": "anna"},
    }
    (checkout / "event.json").write_text(json.dumps({"action": "closed", "pull_request": pull}))
    script, given = github_script()
    with serving(on_github()) as forge:
        known = {"FIRM_MEMORY_URL": live_server.url, "FIRM_MEMORY_TOKEN": botty.secret, "GITHUB_TOKEN": "ghs-reads"}
        assert given.keys() == known.keys()
        ended = run(
            script,
            checkout,
            GITHUB_API_URL=forge.url,
            GITHUB_REPOSITORY="acme/pay",
            GITHUB_EVENT_PATH=str(checkout / "event.json"),
            **known,
        )
    assert ended.returncode == 0, ended.stderr
    if not merged:
        assert not CaptureEvent.objects.exists()
        return
    assert CaptureEvent.objects.get().external_id == f"acme/pay#12@{SHA}"
    assert "ben: Is this the cap?\nghost: Yes, a minute." in payload()
    assert "ben: Another thread." in payload()  # on the second page
    assert "ben: Fine with jitter." in payload()


def test_one_comment_end_to_end(live_server, botty, pool, tmp_path):
    """The worker of this test reads it while the script waits."""
    comment = "We never retry without jitter, because that took the partner's gateway down twice."
    command = [
        sys.executable,
        str(EXAMPLES / "review_comment.py"),
        *("--repo", "acme/pay", "--reference", "acme/pay!128", comment),
    ]
    environment = os.environ | {"FIRM_MEMORY_URL": live_server.url, "FIRM_MEMORY_TOKEN": botty.secret}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as waiting:
        assert waiting.stdout is not None
        assert waiting.stdout.readline().startswith("Handed over as event ")
        with override(Canned([a_fact("Nothing is retried without jitter.", quote=comment)])):
            assert drain() == "1 events."
        said = waiting.stdout.read()
        assert waiting.wait(30) == 0
    assert "queued: Queued for review: 1." in said
    assert "pending, tooling_setup: Nothing is retried without jitter." in said
    assert f"{live_server.url}/review/" in said


@pytest.mark.parametrize("url", ["http://127.0.0.1:9", "127.0.0.1:8100", "http://[x", "ftp://127.0.0.1"])
@pytest.mark.parametrize("script", ["review_comment.py", "mcp_round_trip.py"])
def test_an_address_where_nothing_answers_is_said_in_a_sentence(script, url):
    arguments = ["--repo", "acme/pay", "--reference", "acme/pay!128", "We retry."] if "comment" in script else []
    assert url in refused(script, arguments, url, "fm_bot_nobody-knows")


@pytest.mark.parametrize("script", ["review_comment.py", "mcp_round_trip.py"])
def test_a_token_that_nobody_knows_is_said_in_a_sentence(live_server, workspace, script):
    arguments = ["--repo", "acme/pay", "--reference", "acme/pay!128", "We retry."] if "comment" in script else []
    assert "token" in refused(script, arguments, live_server.url, "fm_bot_nobody-knows").lower()


def test_a_service_that_answers_no_json_is_said_in_a_sentence(checkout):
    class Page(BaseHTTPRequestHandler):
        def do_POST(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"<html>")

        do_GET = do_POST

        def log_message(self, *_: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    try:
        said = refused("review_comment.py", ["--repo", "a/b", "--reference", "a/b!1", "We retry."], url, "fm_bot_x")
        assert "no Firm Memory answers there" in said
        here = {"CI_API_V4_URL": url, "CI_PROJECT_ID": "7", "CI_COMMIT_SHA": "a" * 40, "GITLAB_READ_TOKEN": "x"}
        assert "something else than JSON" in refused("discussion.py", ["gitlab"], url, "fm_bot_x", **here)
    finally:
        server.shutdown()
        server.server_close()


def refused(script: str, arguments: list[str], url: str, token: str, **more: str) -> str:
    """What a script that cannot do its work says: one or two sentences, without the token."""
    command = [sys.executable, str(EXAMPLES / script), *arguments]
    environment = os.environ | {"FIRM_MEMORY_URL": url, "FIRM_MEMORY_TOKEN": token} | more
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr and token not in ended.stderr
    return ended.stderr


def test_the_whole_way_of_a_memory_by_mcp(live_server, robo, pool, api, alice):
    """The worker and the person of this test do their parts while the script waits."""
    command = [sys.executable, str(EXAMPLES / "mcp_round_trip.py"), "--wait", "60"]
    environment = os.environ | {"FIRM_MEMORY_URL": live_server.url, "FIRM_MEMORY_TOKEN": robo.secret}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as agent:
        assert agent.stdout is not None
        assert agent.stdout.readline() == "1. The agent asks “why do payment retries back off?” and finds nothing.\n"
        assert agent.stdout.readline().startswith("2. It hands a discussion over")
        drain()
        told = [agent.stdout.readline() for _ in range(3)]
        candidate = Candidate.objects.get()
        assert told[2].strip() == f"{live_server.url}/review/{candidate.pk}/"
        body = {"version": candidate.version}
        assert api(robo).post(f"/api/v1/candidates/{candidate.pk}/approve/", body).status_code == 403
        assert api(alice).post(f"/api/v1/candidates/{candidate.pk}/approve/", body).status_code == 200
        said = agent.stdout.read()
        assert agent.wait(30) == 0
    assert said.startswith("5. It is approved.\n6. The agent asks again and finds M-1 (acme/pay!128): ")
    assert "never retry a payment at once" in said
