"""What each tool takes. An unknown argument is refused, and a known one is never bent into another value."""

from __future__ import annotations

from typing import Final

from apps.candidates.models import CorrectionKind
from apps.candidates.proposal import MAX_SUPERSEDES
from apps.capture.models import MAX_PAYLOAD
from apps.core.serializers import Flag, Many, Moment, OneOf, Raw, Share, StrictSerializer, Text, Whole
from apps.memories.models import MAX_CONTENT, MAX_TASK, Tier
from apps.retrieval.context import DEFAULT_TOKENS, LEAST_TOKENS, MAX_NAME, MOST_TOKENS
from apps.retrieval.request import DEFAULT_LIMIT, MAX_LIMIT, MAX_QUESTION
from apps.scopes.services import MAX_NAMES
from apps.sources.api import SourceIn
from apps.sources.models import SourceKind
from apps.sources.services import MAX_SOURCES

MAX_LISTED: Final = 100
_MAX_REFERENCE: Final = 64
_MAX_REPO: Final = 500
_REPO: Final = "A repository, by slug (acme/pay), alias or git remote."
_ID: Final = "The id or the number (M-12) of a memory."
_SOURCES: Final = (
    "Where it comes from, at least one: what a reviewer can open to check it. "
    "`reference` is its name there (acme/pay!128), `quote` the words that say so."
)


class SearchArguments(StrictSerializer):
    query = Text(max_length=MAX_QUESTION, verbatim=True, help_text="The question, in plain words.")
    repo = Text(max_length=_MAX_REPO, multiline=False, required=False, help_text=_REPO)
    domains = Many(
        Text(max_length=200, multiline=False),
        max_items=MAX_LISTED,
        allow_empty=False,
        required=False,
        help_text="Subject areas, such as payments.",
    )
    types = Many(
        Text(max_length=100, multiline=False),
        max_items=MAX_LISTED,
        allow_empty=False,
        required=False,
        help_text="Only memories of these types; the taxonomy resource lists them.",
    )
    limit = Whole(min_value=1, max_value=MAX_LIMIT, default=DEFAULT_LIMIT)
    as_of = Moment(required=False, help_text="What held then: 2025-03-01 or 2025-03-01T09:30:00+01:00.")
    task = Text(
        max_length=MAX_TASK,
        multiline=False,
        required=False,
        help_text="The task you work on, as who keeps notes of it calls it (mr:4821, branch:feature/x): its working "
        "notes, which nobody has reviewed, are then found as well. Not together with as_of.",
    )


class GetArguments(StrictSerializer):
    id = Text(max_length=_MAX_REFERENCE, multiline=False, help_text=_ID)


class ProposeArguments(StrictSerializer):
    content = Text(
        max_length=MAX_CONTENT[Tier.DURABLE],
        help_text="One self-contained statement with its reason. No code, no secrets, nothing about people.",
    )
    type = Text(max_length=100, multiline=False, help_text="The slug of a type; the taxonomy resource lists them.")
    sources = Many(SourceIn(), max_items=MAX_SOURCES, allow_empty=False, help_text=_SOURCES)
    repos = Many(
        Text(max_length=_MAX_REPO, multiline=False),
        max_items=MAX_NAMES,
        required=False,
        help_text="Repositories in which it holds.",
    )
    domains = Many(
        Text(max_length=200, multiline=False),
        max_items=MAX_NAMES,
        required=False,
        help_text="Subject areas in which it holds.",
    )
    firm = Flag(required=False, help_text="It holds for the whole firm.")
    confidence = Share(required=False, help_text="How sure you are that it is true and worth keeping.")
    supersedes = Many(
        Text(max_length=_MAX_REFERENCE, multiline=False),
        max_items=MAX_SUPERSEDES,
        required=False,
        help_text="Ids or numbers of the memories that it would replace.",
    )


class CorrectArguments(StrictSerializer):
    id = Text(max_length=_MAX_REFERENCE, multiline=False, help_text=_ID)
    kind = OneOf(choices=CorrectionKind.values, help_text="stale: it held once. wrong: it never did.")
    reason = Text(max_length=2_000, help_text="What you saw that contradicts it.")
    replacement = Text(
        max_length=MAX_CONTENT[Tier.INDEX], required=False, help_text="The statement that should stand instead."
    )
    sources = Many(SourceIn(), max_items=MAX_SOURCES, allow_empty=False, help_text=_SOURCES)


class IngestArguments(StrictSerializer):
    content = Raw(max_length=MAX_PAYLOAD, help_text="The material as it is; secrets and code are cut out of it.")
    kind = OneOf(choices=SourceKind.values)
    sources = Many(SourceIn(), max_items=MAX_SOURCES, allow_empty=False, help_text=_SOURCES)
    repo = Text(max_length=_MAX_REPO, multiline=False, required=False, help_text=_REPO)


class ContextArguments(StrictSerializer):
    repo = Text(max_length=_MAX_REPO, multiline=False, help_text=_REPO)
    path = Text(
        max_length=MAX_NAME, multiline=False, verbatim=True, required=False, help_text="The file or folder to work on."
    )
    budget_tokens = Whole(
        min_value=LEAST_TOKENS,
        max_value=MOST_TOKENS,
        default=DEFAULT_TOKENS,
        help_text="The most that the text may take; four ASCII characters count as one token.",
    )


class ContextHereArguments(ContextArguments):
    """Of an agent whose checkout is known."""

    repo = Text(
        max_length=_MAX_REPO, multiline=False, required=False, help_text=f"{_REPO} The one checked out here by default."
    )


class DecisionsArguments(StrictSerializer):
    subject = Text(max_length=MAX_QUESTION, verbatim=True, help_text="What was decided about, such as retry policy.")
    repo = Text(max_length=_MAX_REPO, multiline=False, required=False, help_text=_REPO)
