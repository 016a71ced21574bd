#!/usr/bin/env python3
"""Hand the discussion of a merged change over to Firm Memory. Needs Python 3.9 or later, and nothing else.

    discussion.py gitlab      in a pipeline of the default branch, after a merge
    discussion.py github      in a workflow on pull_request: [closed]

Firm Memory is told by FIRM_MEMORY_URL and FIRM_MEMORY_TOKEN (a bot's token). What was handed over once under the same
change and commit is not read again, so a pipeline may run as often as it likes.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

ATTEMPTS = 5
SECONDS = 30
PAGES = 50
AGAIN = {429, 500, 502, 503, 504}


class Failed(Exception):
    """Something that whoever reads the job's log can act on."""


def main(forge: str) -> None:
    found = {"gitlab": gitlab, "github": github}[forge]()
    if found is None:
        print("No merged change belongs to this run. Nothing was handed over.")
        return
    answer = ask("POST", f"{needed('FIRM_MEMORY_URL').rstrip('/')}/api/v1/ingest/", _ours(), found)[0]
    print(f"Handed over as {found['external_id']}: event {answer['event']}. {answer['note']}".strip())
    for note in answer["notes"]:
        print(f"  {note}")


# --- the forges -----------------------------------------------------------------------------------------------
def gitlab() -> dict[str, Any] | None:
    """The merge request that brought the commit of this pipeline to the default branch."""
    project, sha = needed("CI_PROJECT_ID"), needed("CI_COMMIT_SHA")
    api = f"{needed('CI_API_V4_URL').rstrip('/')}/projects/{urllib.parse.quote(project, safe='')}"
    headers = {"PRIVATE-TOKEN": needed("GITLAB_READ_TOKEN")}
    requests = pages(f"{api}/repository/commits/{sha}/merge_requests", headers)
    merged = next((each for each in requests if each.get("state") == "merged"), None)
    if merged is None:
        return None
    discussions = pages(f"{api}/merge_requests/{merged['iid']}/discussions", headers)
    threads = [
        [(note["author"]["username"], note["body"]) for note in discussion["notes"] if not note.get("system")]
        for discussion in discussions
    ]
    return material(
        repo=needed("CI_PROJECT_PATH"),
        mark="!",
        number=merged["iid"],
        url=merged["web_url"],
        title=merged["title"],
        merged_at=merged.get("merged_at"),
        commit=sha,
        opening=(merged["author"]["username"], merged.get("description") or ""),
        threads=threads,
    )


def github() -> dict[str, Any] | None:
    """The pull request of this event, if it was merged and not just closed."""
    event = json.loads(Path(needed("GITHUB_EVENT_PATH")).read_text(encoding="utf-8"))
    pull = event.get("pull_request") or {}
    if not pull.get("merged"):
        return None
    repo, number = needed("GITHUB_REPOSITORY"), pull["number"]
    api = f"{needed('GITHUB_API_URL').rstrip('/')}/repos/{repo}"
    headers = {"Authorization": f"Bearer {needed('GITHUB_TOKEN')}", "Accept": "application/vnd.github+json"}
    comments = pages(f"{api}/issues/{number}/comments", headers)
    reviews = pages(f"{api}/pulls/{number}/reviews", headers)
    by_thread: dict[int, list[tuple[str, str]]] = {}
    for each in pages(f"{api}/pulls/{number}/comments", headers):
        by_thread.setdefault(each.get("in_reply_to_id") or each["id"], []).append(_said(each))
    threads = [[_said(each)] for each in (*comments, *reviews)] + list(by_thread.values())
    return material(
        repo=repo,
        mark="#",
        number=number,
        url=pull["html_url"],
        title=pull["title"],
        merged_at=pull.get("merged_at"),
        commit=pull.get("merge_commit_sha"),
        opening=(pull["user"]["login"], pull.get("body") or ""),
        threads=threads,
    )


def _said(comment: dict[str, Any]) -> tuple[str, str]:
    return (comment.get("user") or {}).get("login", "ghost"), comment.get("body") or ""


# --- the material ---------------------------------------------------------------------------------------------
def material(
    *,
    repo: str,
    mark: str,
    number: int,
    url: str,
    title: str,
    merged_at: str | None,
    commit: str | None,
    opening: tuple[str, str],
    threads: list[list[tuple[str, str]]],
) -> dict[str, Any]:
    """One event: the whole discussion, thread by thread, each turn under its author."""
    told = [[opening], *threads]
    turns = ["\n".join(f"{who}: {what.strip()}" for who, what in thread if what.strip()) for thread in told]
    reference = f"{repo}{mark}{number}"
    source = {"kind": "merge_request", "reference": reference, "url": url, "title": title[:500]}
    if merged_at:
        source["occurred_at"] = merged_at
    if commit:
        source["commit"] = commit
    return {
        "content": "\n\n".join([f"# {title}", *(turn for turn in turns if turn)]),
        "kind": "merge_request",
        "scope": {"repos": [repo]},
        "sources": [source],
        "external_id": f"{reference}@{commit}" if commit else reference,
    }


# --- the network ----------------------------------------------------------------------------------------------
def needed(name: str) -> str:
    value = os.environ.get(name, "").strip()
    if not value:
        raise Failed(f"{name} is not set.")
    return value


def _ours() -> dict[str, str]:
    return {"Authorization": f"Bearer {needed('FIRM_MEMORY_TOKEN')}", "Content-Type": "application/json"}


def pages(url: str, headers: dict[str, str]) -> list[dict[str, Any]]:
    """All rows of a list that comes in pages, as either forge names the next one."""
    rows: list[dict[str, Any]] = []
    following: str | None = f"{url}?per_page=100"
    for _ in range(PAGES):
        if following is None:
            return rows
        found, answered = ask("GET", following, headers)
        rows += found
        following = _next(answered, url)
    return rows


def _next(headers: Any, url: str) -> str | None:
    if headers.get("X-Next-Page"):
        return f"{url}?per_page=100&page={headers['X-Next-Page']}"
    link = re.search(r'<([^>]+)>;\s*rel="next"', headers.get("Link") or "")
    return link[1] if link else None


def ask(method: str, url: str, headers: dict[str, str], body: dict[str, Any] | None = None) -> tuple[Any, Any]:
    """The JSON that is answered, and its headers; what may go away by itself is tried again."""
    if not url.startswith(("https://", "http://")):
        raise Failed(f"{url} is no web address.")
    data = None if body is None else json.dumps(body).encode()
    for attempt in range(1, ATTEMPTS + 1):
        request = urllib.request.Request(url, data=data, headers=headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=SECONDS) as answer:
                return json.load(answer), answer.headers
        except ValueError:
            raise Failed(f"{method} {url.split('?')[0]} was answered with something else than JSON.") from None
        except urllib.error.HTTPError as error:
            reason = f"{error.code}: {error.read(2000).decode('utf-8', 'replace')}"
            if error.code not in AGAIN or attempt == ATTEMPTS:
                raise Failed(f"{method} {url.split('?')[0]} was answered with {reason}") from None
            wait = error.headers.get("Retry-After") or ""
            time.sleep(min(float(wait) if wait.isdecimal() else 2.0**attempt, 60.0))
        except OSError as error:
            if attempt == ATTEMPTS:
                raise Failed(f"{method} {url.split('?')[0]} was not answered: {error}") from None
            time.sleep(2.0**attempt)
    raise AssertionError("the last attempt answers or fails")


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in ("gitlab", "github"):
        sys.exit("usage: discussion.py gitlab|github")
    try:
        main(sys.argv[1])
    except Failed as failure:
        sys.exit(str(failure))
