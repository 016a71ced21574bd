#!/usr/bin/env python3
"""One review comment, end to end: hand it over, wait until it is read, and say what became of it.

    FIRM_MEMORY_URL=http://127.0.0.1:8100 FIRM_MEMORY_TOKEN=fm_bot_… \\
      review_comment.py --repo acme/pay --reference 'acme/pay!128' 'We never retry without jitter, because …'

Needs Python 3.9 or later, and nothing else.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import urllib.error
import urllib.request
from typing import Any

DONE = ("done", "dead")


def main() -> int:
    reader = argparse.ArgumentParser(description="Hand one review comment over to Firm Memory.")
    reader.add_argument("comment")
    reader.add_argument("--repo", required=True)
    reader.add_argument("--reference", required=True, help="Where it was said, such as acme/pay!128.")
    reader.add_argument("--wait", type=float, default=60.0, help="Seconds to wait for the worker.")
    given = reader.parse_args()
    event = ask(
        "POST",
        "ingest/",
        {
            "content": given.comment,
            "kind": "merge_request",
            "scope": {"repos": [given.repo]},
            "sources": [{"kind": "merge_request", "reference": given.reference, "quote": given.comment[:500]}],
        },
    )["event"]
    print(f"Handed over as event {event}.")
    end = time.monotonic() + given.wait
    while (told := ask("GET", f"ingest/{event}/"))["state"] not in DONE and time.monotonic() < end:
        time.sleep(0.5)
    print(f"{told['outcome'] or told['state']}: {told['reason'] or 'it still waits for a worker.'}")
    for candidate in told["candidates"]:
        found = ask("GET", f"candidates/{candidate}/")
        print(f"  {found['status']}, {found['type']}: {found['content']}")
        print(f"  decided at {os.environ['FIRM_MEMORY_URL'].rstrip('/')}/review/{candidate}/")
    return 0 if told["state"] == "done" else 1


def ask(method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    url = os.environ["FIRM_MEMORY_URL"].rstrip("/")
    headers = {"Authorization": f"Bearer {os.environ['FIRM_MEMORY_TOKEN']}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    try:
        request = urllib.request.Request(f"{url}/api/v1/{path}", data=data, headers=headers, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            found: dict[str, Any] = json.load(answer)
            return found
    except urllib.error.HTTPError as error:
        sys.exit(f"{method} {path} was answered with {error.code}: {error.read(2000).decode('utf-8', 'replace')}")
    except OSError as error:
        sys.exit(f"{url} was not reached: {error}")
    except ValueError:
        sys.exit(f"FIRM_MEMORY_URL is {url}, and no Firm Memory answers there.")


if __name__ == "__main__":
    missing = [name for name in ("FIRM_MEMORY_URL", "FIRM_MEMORY_TOKEN") if not os.environ.get(name)]
    if missing:
        sys.exit(f"{', '.join(missing)} must be set.")
    sys.exit(main())
