"""The API is what its OpenAPI document says: whatever is sent, the answer is one of those described and no 500."""

from __future__ import annotations

import itertools
import json
import re

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from apps.accounts.api import openapi_document
from tests.capture.doubles import an_event
from tests.ledger import noted, of_person, of_token, propose, reject, remember, report

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("pool", "without_limits", "_one_connection")]

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
EXAMPLES = settings(
    max_examples=10,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],
    database=None,
    derandomize=True,
)
application = get_wsgi_application()


@pytest.fixture
def without_limits(settings):
    settings.FIRM_MEMORY_THROTTLE = False


@pytest.fixture
def rows(robo, alice):
    """Something for every address to act on, over and over."""
    proposer, reviewer = of_token(robo.token), of_person(alice)
    memories = [remember(proposer, reviewer) for _ in range(3)]
    rejected = propose(proposer)
    reject(reviewer, rejected)
    candidates = [propose(proposer), rejected, report(proposer, memories[0]), propose(proposer)]
    return {
        "candidate_id": itertools.cycle([str(row.pk) for row in candidates]),
        "reference": itertools.cycle([str(memories[0].pk), memories[1].label, memories[2].label]),
        "event_id": itertools.cycle([str(an_event(proposer).pk)]),
        "note_id": itertools.cycle([str(noted(proposer, disposition=each).pk) for each in ("", "open", "fixed")]),
        "task": itertools.cycle(["mr:4821"]),
    }


@pytest.fixture
def _one_connection():
    """A server ends its connection with the request; here the request is part of the test's transaction."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


@schemathesis.serializer("application/x-ndjson")
def _lines(context, value):
    return "\n".join(json.dumps(row) for row in (value if isinstance(value, list) else [value])).encode()


api = schemathesis.openapi.from_dict(openapi_document())
api.app = application


@pytest.fixture
def secrets(alice_token, robo, botty):
    """Mostly the one that gets furthest."""
    return itertools.cycle([alice_token.secret, alice_token.secret, robo.secret, botty.secret])


@api.parametrize()
@EXAMPLES
def test_every_answer_is_one_that_is_described(case, rows, secrets):
    # A row that is there gets further than an id that nobody has; version and body stay as they were made up.
    for name, known in rows.items():
        if name in (case.path_parameters or {}):
            case.path_parameters[name] = next(known)

    # Its transport undoes no compression.
    response = case.call(headers={"Authorization": f"Bearer {next(secrets)}", "Accept-Encoding": "identity"})

    case.validate_response(response, checks=CHECKS)


def test_the_document_describes_every_address():
    from tests.invariants.test_walls import REST

    described = {path.removeprefix("/api/v1/") for path in openapi_document()["paths"]}
    there = {re.sub(r"<\w+:(\w+)>", r"{\1}", path.removeprefix("api/v1/")) for path, _ in REST}

    assert described == there - {"schema/"}
