"""Receiving raw material: masked, kept and answered in one short transaction; the work is done by the worker."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime
from typing import Any, Final
from urllib.parse import unquote

from django.db import transaction
from django.utils.crypto import salted_hmac
from django_q.tasks import async_task

from apps.accounts.principal import Principal
from apps.candidates.proposal import ScopeInput, require_within_limits
from apps.capture.models import MAX_EXTERNAL_ID, MAX_PAYLOAD, CaptureEvent
from apps.capture.splitting import readable
from apps.core.errors import FieldError, Refusals
from apps.core.screening import Finding, find_code, find_personal, find_secrets, mask, masked
from apps.core.screening.text import check_text, clean_text
from apps.scopes.identity import parse_remote
from apps.scopes.scope import Scope
from apps.scopes.selectors import find_repository
from apps.scopes.services import check_scope
from apps.sources.models import SourceKind
from apps.sources.services import SourceInput, check_sources

DRAIN: Final = "apps.capture.tasks.drain"
# A name that is made of the content, where the sender has none: the same material twice is then one event.
OWN_NAME: Final = "sha256:"
_ESCAPED: Final = re.compile(r"\\u00(2[0-9a-f]|3[0-9a-f]|[4-6][0-9a-f]|7[0-9a-e])", re.IGNORECASE)
_AT_ONCE: Final = 200
_NOBODYS: Final = 0  # no row has this id


@dataclass(frozen=True, slots=True)
class RawMaterial:
    """What somebody hands over, as it came."""

    content: str
    kind: str
    scope: ScopeInput
    sources: tuple[SourceInput, ...]
    external_id: str = ""


@dataclass(frozen=True, slots=True)
class Received:
    """``created`` is false where the same material had been received before."""

    event: CaptureEvent
    created: bool
    note: str = ""


def event_receive(*, principal: Principal, material: RawMaterial) -> Received:
    """Keep raw material for the worker. Raises ``Invalid`` naming the fields that will not do."""
    return events_receive(principal=principal, materials=[material], prefixes=[""])[0]


def events_receive(
    *, principal: Principal, materials: Sequence[RawMaterial], prefixes: Sequence[str] | None = None
) -> list[Received]:
    """All of them or none, in their order. ``prefixes`` stand before the names of fields that will not do."""
    principal.require_write()
    named = prefixes if prefixes is not None else [f"[{at}]." for at in range(len(materials))]
    refusals = Refusals()
    for material, prefix in zip(materials, named, strict=True):
        refusals.add(check_material(material, prefix=prefix))
    refusals.raise_all("The material will not do.")
    kept = [_keep(principal, material) for material in materials]
    with transaction.atomic():
        received = _insert(kept)
        if any(one.created for one in received):
            async_task(DRAIN)
    return received


def check_material(material: RawMaterial, *, prefix: str = "") -> list[FieldError]:
    """What is wrong with it. Its content may hold anything that text can: what no column holds is taken out."""
    return check_given({field.name: getattr(material, field.name) for field in fields(material)}, prefix=prefix)


def check_given(values: Mapping[str, Any], *, prefix: str = "") -> list[FieldError]:
    """The same for those values of a piece of material whose others cannot even be read."""
    errors: list[FieldError] = []
    if "content" in values:
        errors += _check_content(values["content"], field=f"{prefix}content")
    if "kind" in values and values["kind"] not in SourceKind.values:
        errors.append(FieldError(f"{prefix}kind", f"Use one of: {', '.join(SourceKind.values)}."))
    if "scope" in values:
        scope: ScopeInput = values["scope"]
        errors += check_scope(firm=scope.firm, domains=scope.domains, repos=scope.repos, field=f"{prefix}scope")
    if "sources" in values:
        errors += check_sources(values["sources"], field=f"{prefix}sources")
    return errors + check_text(
        values.get("external_id", ""),
        field=f"{prefix}external_id",
        max_length=MAX_EXTERNAL_ID,
        min_length=0,
        multiline=False,
    )


def _check_content(content: str, *, field: str) -> list[FieldError]:
    if not clean_text(content)[0].strip():
        return [FieldError(field, "There is no text in it.")]
    if len(content) > MAX_PAYLOAD:
        return [FieldError(field, f"Send at most {MAX_PAYLOAD:,} characters; there are {len(content):,}.")]
    return []


def _keep(principal: Principal, material: RawMaterial) -> CaptureEvent:
    """A row that holds nothing that must not be stored. Slow for large material, and outside of any transaction."""
    _require_within_limits(principal, material.scope)
    payload, notes = storable(material.content, kind=material.kind)
    digest = hashlib.sha256(payload.encode()).hexdigest()
    sources = [_without_secrets(source) for source in material.sources]
    scope = _masked_scope(material.scope)
    return CaptureEvent(
        workspace=principal.workspace,
        kind=material.kind,
        external_id=_name(material.external_id.strip()) or own_name(digest, scope, sources),
        payload=payload,
        content_hash=digest,
        size=len(payload),
        scope=scope,
        sources=[source_as_json(source) for source in sources],
        notes=notes,
        origin_token=principal.token,
        origin_user=principal.user,
        origin_name=principal.name,
    )


def storable(content: str, *, kind: str) -> tuple[str, list[str]]:
    """Raw material without what is never kept, and a sentence for each kind of thing that was taken out.

    An exported session is kept as its turns: within its JSON nobody would recognise the code.
    """
    text, notes = clean_text(content)
    turns = readable(text, kind)
    if turns != text:
        text = turns
        notes.append("Kept as its turns: what tools returned and what was thought is left out.")
    # In an escape nobody would recognise a secret. Not before: a quotation mark within JSON would end its string.
    text = _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)
    findings = [*find_secrets(text), *find_personal(text)]
    text = mask(text, findings)
    notes += _counted(findings)
    blocks = find_code(text)
    if blocks:
        pieces, position = [], 0
        for block in blocks:
            pieces += [text[position : block.start], f"[{block.kind} left out]"]
            position = block.end
        text = "".join(pieces) + text[position:]
        kinds = [block.kind for block in blocks]
        notes += [f"Left out: {kind}, {kinds.count(kind):,} ×." for kind in dict.fromkeys(kinds)]
    return text, notes


def _counted(findings: Sequence[Finding]) -> list[str]:
    kinds = [finding.kind for finding in findings]
    return [f"Masked: {kind}, {kinds.count(kind):,} ×." for kind in dict.fromkeys(kinds)]


def own_name(digest: str, scope: Mapping[str, Any], sources: Sequence[SourceInput]) -> str:
    """The same words about something else, or from somewhere else, are other material."""
    about = repr((digest, sorted(scope.items()), sorted(map(repr, (source.identity for source in sources)))))
    return f"{OWN_NAME}{hashlib.sha256(about.encode()).hexdigest()}"


def _name(external_id: str) -> str:
    """Masked where it must be, and still another one for every other name: what was masked is told apart by a keyed
    hash, from which nobody finds it again."""
    kept = masked(external_id)
    if kept == external_id:
        return kept
    told_apart = salted_hmac("capture external id", external_id, algorithm="sha256").hexdigest()[:20]
    return f"{kept[: MAX_EXTERNAL_ID - 21]}#{told_apart}"


def _masked_scope(scope: ScopeInput) -> dict[str, Any]:
    return {
        "firm": scope.firm,
        "domains": [masked(name) for name in scope.domains],
        "repos": [_repository(name) for name in scope.repos],
    }


def _repository(name: str) -> str:
    """A remote without whoever it is fetched as; pipelines know it with a password in it."""
    remote = parse_remote(name)
    return masked(name if remote is None else f"https://{remote.identity}" if "@" in name and "://" in name else name)


def _without_secrets(source: SourceInput) -> SourceInput:
    return replace(
        source,
        reference=masked(source.reference.strip()),
        title=masked(source.title),
        quote=masked(source.quote),
        # An address with a secret in it leads nowhere once that is masked, and neither does a commit.
        url=source.url if _is_clean(source.url) else "",
        commit=source.commit if _is_clean(source.commit or "") else None,
    )


def _is_clean(text: str) -> bool:
    plain = unquote(text)
    return masked(text) == text and masked(plain) == plain


def source_as_json(source: SourceInput) -> dict[str, Any]:
    values = asdict(source)
    values["occurred_at"] = source.occurred_at.isoformat() if source.occurred_at else None
    return values


def source_from_json(values: Mapping[str, Any]) -> SourceInput:
    occurred_at = values.get("occurred_at")
    return SourceInput(**{**values, "occurred_at": datetime.fromisoformat(occurred_at) if occurred_at else None})


def _require_within_limits(principal: Principal, scope: ScopeInput) -> None:
    """A token limited to repositories hands over what is about those alone."""
    if not principal.repository_limit:
        return
    found = [find_repository(principal.workspace, name.strip()) for name in scope.repos]
    require_within_limits(
        principal,
        Scope(
            firm=scope.firm,
            domain_ids=(_NOBODYS,) if scope.domains else (),
            repo_ids=tuple(row.pk if row else _NOBODYS for row in found),
        ),
    )


def _insert(rows: Sequence[CaptureEvent]) -> list[Received]:
    """The unique index decides which of two of the same name is first; the other is answered with that one.

    In the order of their names, so that of two who send the same at once neither waits for the other for ever.
    """
    ordered = sorted(rows, key=_named)
    CaptureEvent.objects.bulk_create(ordered, ignore_conflicts=True, batch_size=_AT_ONCE)
    there = CaptureEvent.objects.in_bulk([row.pk for row in rows])
    names = [row.external_id for row in rows if row.pk not in there]
    same = CaptureEvent.objects.filter(workspace=rows[0].workspace, external_id__in=names) if names else ()
    earlier = {_named(event): event for event in same}
    return [
        Received(there[row.pk], created=True)
        if row.pk in there
        else Received(earlier[_named(row)], created=False, note=_note_on(earlier[_named(row)], row))
        for row in rows
    ]


def _named(event: CaptureEvent) -> tuple[str, str]:
    return event.kind, event.external_id


def _note_on(earlier: CaptureEvent, event: CaptureEvent) -> str:
    """Why this was not kept. Of another's material no more is told than that it is there."""
    if (earlier.origin_token_id, earlier.origin_user_id) != (event.origin_token_id, event.origin_user_id):
        return "Somebody else handed over material of this kind and name before; this was not kept."
    if earlier.content_hash == event.content_hash:
        return "This material was handed over before; it is not read again."
    return (
        "Other material of this kind and name was handed over before; this was not kept. Give what has changed a name "
        "that changes with it, such as one that ends in the commit."
    )
