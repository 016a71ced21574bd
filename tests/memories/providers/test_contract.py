"""What every provider promises. Each test runs on each of them."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import numpy as np
import pytest

from apps.memories.providers.base import (
    MemoryRecord,
    NoteQuery,
    NoteRecord,
    Passage,
    PayloadPatch,
    PoolQuery,
    Prepared,
    ProviderError,
)

from .doubles import NOW, RECORDED, a_query, a_record, found, store

VERBATIM = [
    "  leading and trailing blanks \t ",
    "line\r\nbreaks\n\n\nkept\n",
    "支払いサービスは決済サービスと別のものです。",
    "naïve — “quotes” 'single' \"double\" \\backslash\\ \\u0000 is not NUL",
    "100% of {braces} and %s and $1 and ; DROP TABLE fm_pool_g1; --",
    "combining e\u0301, joined 👩‍💻, line\u2028separator, no-break\u00a0space, bell\x07",
    '{"json": ["is", {"text": null}]}',
]


@pytest.mark.parametrize("content", VERBATIM)
def test_the_text_comes_back_exactly_as_it_was_put_in(provider, content):
    record = a_record(content)
    store(provider, record)
    assert provider.get(record.id).content == content


def test_a_record_comes_back_with_everything_it_had(provider):
    plain = a_record("Plain.")
    full = MemoryRecord(
        id=uuid4(),
        workspace=7,
        content="Full.",
        tier="index",
        status="superseded",
        type="bug_fixes",
        firm=False,
        recorded_at=datetime(2025, 5, 1, 1, 2, 3, 456_789, tzinfo=UTC),
        domain_ids=(3, 1),
        repo_ids=(2**40, 5),
        audience_ids=(9,),
        confidence=0.123456789,
        valid_from=datetime(1969, 12, 31, 23, 59, 59, 1, tzinfo=UTC),
        valid_to=datetime(2026, 1, 1, tzinfo=UTC),
        closed_at=datetime(2025, 6, 1, tzinfo=UTC),
        retired_at=datetime(2025, 7, 1, tzinfo=UTC),
        number=1042,
        fingerprint="ab" * 32,
    )
    store(provider, plain, full)
    assert provider.get(plain.id) == plain
    assert provider.get(full.id) == full
    assert provider.get(uuid4()) is None


def test_a_moment_in_another_zone_is_the_same_moment(provider):
    berlin = datetime.fromisoformat("2026-01-01T01:00:00+01:00")
    record = a_record(valid_from=berlin)
    store(provider, record)
    assert provider.get(record.id).valid_from == berlin


def test_inserting_again_changes_nothing(provider):
    first = a_record("The first wording.")
    store(provider, first)
    store(provider, a_record("Another wording altogether.", id=first.id, status="retired"))
    assert provider.get(first.id) == first
    assert provider.describe().memories == 1


def test_one_batch_may_hold_a_record_twice(provider):
    record = a_record()
    store(provider, record, record)
    assert provider.describe().memories == 1


def test_inserting_nothing_is_allowed(provider):
    provider.insert_many([])
    assert provider.prepare_many([]) == []
    assert provider.describe().rows == 0


# --- what a search admits --------------------------------------------------------------------------------


SCOPED = {
    "firm": {"firm": True},
    "firm and repo 1": {"firm": True, "repo_ids": (1,)},
    "repo 1": {"firm": False, "repo_ids": (1,)},
    "repos 1, 2": {"firm": False, "repo_ids": (1, 2)},
    "repo 11": {"firm": False, "repo_ids": (11,)},
    "domain 1": {"firm": False, "domain_ids": (1,)},
    "domain 2, repo 3": {"firm": False, "domain_ids": (2,), "repo_ids": (3,)},
}
FIRM = {"firm", "firm and repo 1"}


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        ({}, FIRM),
        ({"repo_ids": frozenset({1})}, FIRM | {"repo 1", "repos 1, 2"}),
        ({"repo_ids": frozenset({2})}, FIRM | {"repos 1, 2"}),
        ({"repo_ids": frozenset({11})}, FIRM | {"repo 11"}),
        ({"repo_ids": frozenset({4})}, FIRM),
        ({"domain_ids": frozenset({1})}, FIRM | {"domain 1"}),
        ({"domain_ids": frozenset({2}), "repo_ids": frozenset({2})}, FIRM | {"domain 2, repo 3", "repos 1, 2"}),
        ({"everything": True}, set(SCOPED)),
        ({"everything": True, "repo_ids": frozenset({1})}, set(SCOPED)),
    ],
)
def test_scope(provider, scope, expected):
    records = {name: a_record(**attributes) for name, attributes in SCOPED.items()}
    store(provider, *records.values())
    names = {record.id: name for name, record in records.items()}
    assert {names[each] for each in found(provider, **scope)} == expected


def test_a_scope_of_another_workspace_never_matches(provider):
    ours = a_record(firm=False, repo_ids=(1,))
    theirs = a_record(firm=False, repo_ids=(1,), workspace=2)
    their_firm = a_record(workspace=2)
    store(provider, ours, theirs, their_firm)
    assert found(provider, repo_ids=frozenset({1})) == {ours.id}
    assert found(provider, everything=True) == {ours.id}
    assert found(provider, everything=True, workspace=2) == {theirs.id, their_firm.id}
    assert found(provider, everything=True, workspace=3) == set()


@pytest.mark.parametrize(
    ("audiences", "expected"),
    [
        (frozenset(), {"open"}),
        (frozenset({1}), {"open", "1"}),
        (frozenset({2}), {"open"}),
        (frozenset({1, 2}), {"open", "1", "1 and 2"}),
        (frozenset({1, 2, 12}), {"open", "1", "1 and 2", "12"}),
    ],
)
def test_every_audience_of_a_memory_is_needed(provider, audiences, expected):
    records = {
        "open": a_record(),
        "1": a_record(audience_ids=(1,)),
        "1 and 2": a_record(audience_ids=(1, 2)),
        "12": a_record(audience_ids=(12,)),
    }
    store(provider, *records.values())
    names = {record.id: name for name, record in records.items()}
    assert {names[each] for each in found(provider, audiences=audiences)} == expected


def test_tiers_and_types(provider):
    durable = a_record(type="bug_fixes")
    card = a_record(type="ownership", tier="index")
    store(provider, durable, card)
    assert found(provider) == {durable.id, card.id}
    assert found(provider, tiers=frozenset({"index"})) == {card.id}
    assert found(provider, types=frozenset({"bug_fixes"})) == {durable.id}
    assert found(provider, types=frozenset({"bug_fixes", "ownership"})) == {durable.id, card.id}
    assert found(provider, types=frozenset({"bug_fixes"}), tiers=frozenset({"index"})) == set()


@pytest.mark.parametrize("name", ["bug%", "bug_f_xes", "BUG_FIXES", "bug_fixes ", "%", "*", "' OR true --"])
def test_names_are_compared_whole_and_as_values(provider, name):
    store(provider, a_record(type="bug_fixes"))
    assert found(provider, types=frozenset({name})) == set()


def test_only_active_and_disputed_memories_are_served_by_default(provider):
    records = {status: a_record(status=status) for status in ("active", "disputed", "superseded", "retired")}
    store(provider, *records.values())
    assert found(provider) == {records["active"].id, records["disputed"].id}
    assert found(provider, statuses=frozenset({"superseded"})) == {records["superseded"].id}
    assert found(provider, as_of=NOW) == {record.id for record in records.values()}
    assert found(provider, as_of=NOW, statuses=frozenset({"active"})) == {records["active"].id}


# --- the two clocks --------------------------------------------------------------------------------------

DAY = timedelta(days=1)


def day(number: int) -> datetime:
    return datetime(2026, 2, 1, tzinfo=UTC) + number * DAY


@pytest.mark.parametrize(
    ("interval", "asked", "admitted"),
    [
        # When it holds: [from, to), null is always and still.
        ({}, {"as_of": day(-9_999)}, True),
        ({"valid_from": day(5)}, {"as_of": day(5)}, True),
        ({"valid_from": day(5)}, {"as_of": day(5) - timedelta(microseconds=1)}, False),
        ({"valid_to": day(5)}, {"as_of": day(5)}, False),
        ({"valid_to": day(5)}, {"as_of": day(5) - timedelta(microseconds=1)}, True),
        ({"valid_from": day(5), "valid_to": day(5)}, {"as_of": day(5)}, False),
        # An end that became known later than the moment asked about did not count then.
        ({"valid_to": day(5), "closed_at": day(8)}, {"as_of": day(6), "known_at": day(7)}, True),
        ({"valid_to": day(5), "closed_at": day(8)}, {"as_of": day(6), "known_at": day(8)}, False),
        ({"valid_to": day(5), "closed_at": day(8)}, {"as_of": day(4), "known_at": day(9)}, True),
        ({"valid_to": day(5), "closed_at": day(8)}, {"as_of": day(6)}, False),
        ({"valid_to": day(5), "closed_at": None}, {"as_of": day(6), "known_at": day(7)}, False),
        # When it was known: [recorded, retired).
        ({"recorded_at": day(3)}, {"known_at": day(3)}, True),
        ({"recorded_at": day(3)}, {"known_at": day(3) - timedelta(microseconds=1)}, False),
        ({"recorded_at": day(3), "retired_at": day(6)}, {"known_at": day(5)}, True),
        ({"recorded_at": day(3), "retired_at": day(6)}, {"known_at": day(6)}, False),
        # As of a moment, with what is known now: what was retired since is known to be wrong.
        ({"retired_at": day(6)}, {"as_of": day(5)}, False),
        ({"recorded_at": day(6), "valid_from": day(1)}, {"as_of": day(2)}, True),
        # Known at a moment, about now: an end that has come since and was known then counts.
        ({"valid_to": day(20), "closed_at": day(2)}, {"known_at": day(3)}, False),
        ({"valid_to": day(20), "closed_at": day(10)}, {"known_at": day(3)}, True),
        ({"valid_from": day(60)}, {"known_at": day(3)}, False),
        # Now.
        ({"valid_from": NOW}, {}, True),
        ({"valid_from": NOW + DAY}, {}, False),
        ({"valid_to": NOW}, {}, False),
        ({"valid_to": NOW + DAY}, {}, True),
        ({"recorded_at": NOW + DAY}, {}, False),
        ({"retired_at": NOW}, {}, False),
        ({"retired_at": NOW + DAY}, {}, True),
    ],
)
def test_validity_and_knowledge(provider, interval, asked, admitted):
    record = a_record(**interval)
    store(provider, record)
    assert found(provider, **asked) == ({record.id} if admitted else set())


def test_a_superseded_memory_is_found_as_of_its_time_and_its_successor_after(provider):
    old = a_record("Retries: five.", status="superseded", valid_to=day(5), closed_at=day(9))
    new = a_record("Retries: three.", valid_from=day(5), recorded_at=day(9))
    store(provider, old, new)
    assert found(provider) == {new.id}
    assert found(provider, as_of=day(4)) == {old.id}
    assert found(provider, as_of=day(5)) == {new.id}
    assert found(provider, as_of=day(6), known_at=day(6)) == {old.id}
    assert found(provider, known_at=day(6)) == {old.id}
    assert found(provider, known_at=day(10)) == {new.id}


def test_what_was_replaced_is_found_besides_on_request_and_nothing_else_that_ended(provider):
    replaced = a_record("Retries: five.", status="superseded", valid_to=day(5), closed_at=day(5))
    ended = a_record("Retries: four.", valid_to=day(5), closed_at=day(5))
    retired = a_record("Retries: two.", status="retired", retired_at=day(5))
    unheard = a_record("Retries: one.", status="superseded", recorded_at=day(50), valid_to=day(5))
    elsewhere = a_record("Retries: none.", status="superseded", valid_to=day(5), firm=False, repo_ids=(7,))
    new = a_record("Retries: three.", valid_from=day(5))
    store(provider, replaced, ended, retired, unheard, elsewhere, new)
    assert found(provider) == {new.id}
    assert found(provider, with_replaced=True) == {new.id, replaced.id}
    assert found(provider, with_replaced=True, as_of=day(4)) == {replaced.id, ended.id}
    assert found(provider, with_replaced=True, as_of=day(6)) == {new.id, replaced.id}
    assert found(provider, with_replaced=True, known_at=day(4)) == {new.id, replaced.id, ended.id, retired.id}
    assert found(provider, with_replaced=True, statuses=frozenset({"disputed"})) == {replaced.id}


# --- ranking ---------------------------------------------------------------------------------------------


def test_the_nearest_comes_first_with_its_similarity(provider):
    same, near, far = (
        a_record("billing webhook retries with backoff"),
        a_record("billing webhook timeouts"),
        a_record("the kitchen has a new coffee machine"),
    )
    store(provider, far, near, same)
    hits = provider.search(a_query(provider, "billing webhook retries with backoff"))
    assert [hit.memory_id for hit in hits] == [same.id, near.id, far.id]
    assert hits[0].score == pytest.approx(1.0, abs=1e-5)
    assert 1.0 > hits[1].score > hits[2].score >= 0.0


def test_a_score_is_never_negative(provider):
    record = a_record("one")
    store(provider, record)
    opposite = tuple(-number for number in provider.embed_query("one"))
    (hit,) = provider.search(a_query(provider, vector=opposite))
    assert hit.score == 0.0


def test_ties_are_ordered_by_id_and_the_limit_holds(provider):
    ids = store(provider, *(a_record("the same words") for _ in range(12)))
    hits = provider.search(a_query(provider, "the same words", limit=5))
    assert [hit.memory_id for hit in hits] == sorted(ids)[:5]


LONG = " ".join(f"word{number}" for number in range(600))


def test_a_long_memory_is_found_by_any_of_its_passages_and_once(provider):
    long = a_record(f"{LONG} {'the decision is: never cache tokens ' * 20}")
    other = a_record("never trust cookies")
    store(provider, long, other)
    hits = provider.search(a_query(provider, "the decision is: never cache tokens"))
    assert [hit.memory_id for hit in hits] == [long.id, other.id]
    assert hits[0].passage == 5
    beginning = provider.search(a_query(provider, " ".join(LONG.split()[:100])))
    assert (beginning[0].memory_id, beginning[0].passage) == (long.id, 0)
    description = provider.describe()
    assert (description.memories, description.rows) == (2, 7)


def test_passages_do_not_crowd_out_other_memories(provider):
    crowd = [a_record(f"{LONG} number {number}") for number in range(8)]
    store(provider, *crowd)
    hits = provider.search(a_query(provider, "word100 word101 word102", limit=8))
    assert {hit.memory_id for hit in hits} == {record.id for record in crowd}


def brute_force(query: PoolQuery, rows: list[tuple[MemoryRecord, Prepared]]) -> list[UUID]:
    """The contract once more, written apart from the code under test."""
    known, valid = query.known_at or query.now, query.as_of or query.now
    served = {"active", "disputed"}
    if query.statuses is not None:
        served = set(query.statuses)
    elif query.as_of is not None or query.known_at is not None:
        served = {"active", "disputed", "superseded", "retired"}
    if query.with_replaced:
        served.add("superseded")
    best = []
    for record, prepared in rows:
        end = record.valid_to
        if end is not None and record.closed_at is not None and record.closed_at > known:
            end = None
        if query.with_replaced and record.status == "superseded":
            end = None
        if (
            record.workspace == query.workspace
            and record.tier in query.tiers
            and record.status in served
            and (query.types is None or record.type in query.types)
            and (
                query.everything
                or record.firm
                or set(record.domain_ids) & query.domain_ids
                or set(record.repo_ids) & query.repo_ids
            )
            and set(record.audience_ids) <= query.audiences
            and (record.valid_from is None or record.valid_from <= valid)
            and (end is None or valid < end)
            and record.recorded_at <= known
            and (record.retired_at is None or known < record.retired_at)
        ):
            cosine = max(float(np.dot(passage.vector, query.vector)) for passage in prepared.passages)
            best.append((-cosine, record.id))
    return [memory_id for _, memory_id in sorted(best)][: query.limit]


def random_record(chance: random.Random, number: int) -> MemoryRecord:
    def some(options: range, most: int) -> tuple[int, ...]:
        return tuple(chance.sample(options, chance.randint(0, most)))

    def moment() -> datetime | None:
        return chance.choice([None, None, day(chance.randint(-40, 40))])

    words = " ".join(chance.choices(["retry", "billing", "webhook", "token", "ledger", "cache", "queue", "shard"], k=5))
    filler = " ".join(f"w{number}x{each}" for each in range(chance.choice([0, 0, 0, 90])))
    return MemoryRecord(
        id=UUID(int=chance.getrandbits(128)),
        workspace=chance.choice([1, 1, 1, 2]),
        content=f"{words} n{number} {filler}",
        tier=chance.choice(["durable", "durable", "index"]),
        status=chance.choice(["active", "active", "disputed", "superseded", "retired"]),
        type=chance.choice(["bug_fixes", "ownership", "terminology"]),
        firm=chance.random() < 0.1,
        recorded_at=day(chance.randint(-60, 20)),
        domain_ids=some(range(5), 2),
        repo_ids=some(range(6), 2),
        audience_ids=some(range(3), 1),
        valid_from=moment(),
        valid_to=moment(),
        closed_at=moment(),
        retired_at=moment(),
        number=number,
    )


def random_query(chance: random.Random, provider) -> PoolQuery:
    def some(options, least: int = 0) -> frozenset:
        return frozenset(chance.sample(options, chance.randint(least, len(options))))

    words = " ".join(chance.choices(["retry", "billing", "webhook", "token", "ledger", "cache", "queue", "shard"], k=3))
    return a_query(
        provider,
        words,
        workspace=chance.choice([1, 1, 2]),
        everything=chance.random() < 0.3,
        domain_ids=some(range(5)),
        repo_ids=some(range(6)),
        audiences=some(range(3)),
        tiers=some(["durable", "index"], 1),
        statuses=chance.choice([None, None, some(["active", "disputed", "superseded", "retired"], 1)]),
        types=chance.choice([None, some(["bug_fixes", "ownership", "terminology"], 1)]),
        as_of=chance.choice([None, day(chance.randint(-40, 40))]),
        known_at=chance.choice([None, day(chance.randint(-40, 40))]),
        with_replaced=chance.random() < 0.3,
        now=day(30),
        limit=chance.choice([1, 5, 10, 50]),
    )


def test_every_search_agrees_with_reading_everything(provider):
    chance = random.Random(20260301)
    records = [random_record(chance, number) for number in range(400)]
    rows = list(zip(records, provider.prepare_many([each.content for each in records]), strict=True))
    provider.insert_many(rows)
    sizes = []
    for _ in range(120):
        query = random_query(chance, provider)
        hits = provider.search(query)
        expected = brute_force(query, rows)
        assert [hit.memory_id for hit in hits] == expected, query
        sizes.append(len(expected))
    # The questions themselves must be worth asking: some find nothing, many find something.
    assert 0 in sizes
    assert sum(size > 0 for size in sizes) > 60


def test_a_small_repository_is_searched_exactly_beside_a_large_one(provider):
    chance = random.Random(43)
    words = ["retry", "billing", "webhook", "token", "ledger", "cache", "queue", "shard"]
    large = [a_record(" ".join(chance.choices(words, k=6)), firm=False, repo_ids=(1,)) for _ in range(3_000)]
    small = [a_record(" ".join(chance.choices(words, k=6)) + " rare", firm=False, repo_ids=(2,)) for _ in range(30)]
    records = large + small
    rows = list(zip(records, provider.prepare_many([each.content for each in records]), strict=True))
    provider.insert_many(rows)
    query = a_query(provider, "retry billing webhook", repo_ids=frozenset({2}), limit=10)
    hits = provider.search(query)
    assert [hit.memory_id for hit in hits] == brute_force(query, rows[3_000:])
    assert len(hits) == 10


def test_statuses_are_those_of_the_memories_that_are_there(provider):
    active, retired = a_record("active"), a_record(LONG, status="retired")
    store(provider, active, retired)
    provider.update(active.id, PayloadPatch(status="disputed"))
    assert provider.statuses([active.id, retired.id, uuid4()]) == {
        active.id: "disputed",
        retired.id: "retired",
    }
    assert provider.statuses([]) == {}


# --- changes ---------------------------------------------------------------------------------------------


def test_a_patch_changes_what_is_filtered_by_and_nothing_else(provider, embedder):
    record = a_record(f"{LONG} the tail", confidence=0.9, valid_to=day(50))
    store(provider, record)
    embedded = len(embedder.documents)
    provider.update(
        record.id,
        PayloadPatch(status="disputed", confidence=None, valid_to=None, audience_ids=(4, 5)),
    )
    changed = provider.get(record.id)
    assert changed.content == record.content
    assert (changed.status, changed.confidence, changed.valid_to) == ("disputed", None, None)
    assert changed.audience_ids == (4, 5)
    assert (changed.recorded_at, changed.type, changed.number) == (RECORDED, record.type, None)
    assert len(embedder.documents) == embedded
    assert found(provider) == set()
    assert found(provider, "the tail", audiences=frozenset({4, 5})) == {record.id}


def test_a_patch_reaches_every_passage(provider):
    record = a_record(f"{LONG} the tail")
    store(provider, record)
    provider.update(record.id, PayloadPatch(status="retired", retired_at=NOW))
    for words in ("the tail", "word0 word1", "word300"):
        assert found(provider, words) == set()
    assert found(provider, "the tail", known_at=NOW - DAY) == {record.id}


def test_an_empty_patch_changes_nothing(provider):
    record = a_record(closed_at=day(3))
    store(provider, record)
    provider.update(record.id, PayloadPatch())
    assert provider.get(record.id) == record


def test_patching_an_unknown_memory_is_an_error(provider):
    with pytest.raises(ProviderError, match="holds no memory") as caught:
        provider.update(uuid4(), PayloadPatch(status="retired"))
    assert caught.value.permanent


def test_patching_one_memory_leaves_the_others(provider):
    one, other, elsewhere = a_record("one"), a_record("other"), a_record("elsewhere", workspace=2)
    store(provider, one, other, elsewhere)
    provider.update(one.id, PayloadPatch(status="retired"))
    assert provider.get(other.id) == other
    assert provider.get(elsewhere.id) == elsewhere


# --- reading everything ----------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [1, 3, 7, 500])
def test_iterate_gives_every_memory_once_in_the_order_of_ids(provider, batch):
    records = [a_record(f"number {number}", workspace=number % 3) for number in range(7)]
    records.append(a_record(LONG, status="retired"))
    store(provider, *records)
    assert list(provider.iterate(batch=batch)) == sorted(records, key=lambda record: record.id)


def test_iterate_over_an_empty_pool(provider):
    assert list(provider.iterate()) == []


def test_the_description_names_the_embedder(provider, embedder):
    store(provider, a_record())
    description = provider.describe()
    assert (description.embedder, description.dimensions) == (embedder.name, embedder.dimensions)
    assert (description.memories, description.rows) == (1, 1)


# --- refusals --------------------------------------------------------------------------------------------


def test_what_another_embedder_prepared_is_refused(provider):
    record = a_record()
    vector = (1.0,) + (0.0,) * 63
    foreign = Prepared((Passage(record.content, vector),), "another", 64)
    with pytest.raises(ProviderError, match="another"):
        provider.insert(record, foreign)
    assert provider.get(record.id) is None


def test_one_foreign_record_refuses_the_whole_batch(provider):
    good, bad = a_record("good"), a_record("bad")
    foreign = Prepared((Passage("bad", (1.0, 0.0)),), "another", 2)
    with pytest.raises(ProviderError):
        provider.insert_many([(good, provider.prepare("good")), (bad, foreign)])
    assert provider.get(good.id) is None


def test_a_question_of_another_length_is_refused(provider):
    with pytest.raises(ProviderError, match="3 dimensions") as caught:
        provider.search(a_query(provider, vector=(1.0, 0.0, 0.0)))
    assert caught.value.permanent


@pytest.mark.parametrize("text", ["", "   ", "\n\t", "a\x00b", "\ud83d alone", "x" * 20_001])
def test_texts_that_cannot_be_kept_are_refused_before_the_embedder_sees_them(provider, embedder, text):
    with pytest.raises(ValueError, match="text must"):
        provider.embed_query(text)
    with pytest.raises(ValueError, match="text must"):
        provider.prepare(text)
    assert embedder.queries == []
    assert embedder.documents == []


def test_a_question_asked_again_is_embedded_once(provider, embedder):
    assert provider.embed_query("why?") == provider.embed_query("why?")
    assert embedder.queries == ["why?"]


def test_prepared_passages_have_the_embedders_vectors(provider, embedder):
    short, long = provider.prepare_many(["short text", LONG])
    assert [passage.text for passage in short.passages] == ["short text"]
    assert len(long.passages) == 5
    assert len(embedder.documents) == 6
    for passage in (*short.passages, *long.passages):
        assert passage.vector == pytest.approx(embedder._vector(passage.text).tolist())


# --- working notes ---------------------------------------------------------------------------------------

NOTE = "Retries back off exponentially."


def note(provider, text: str = NOTE, *, task: str = "mr:4821", workspace: int = 1) -> UUID:
    record = NoteRecord(id=uuid4(), workspace=workspace, task=task)
    provider.insert_notes([(record, provider.prepare(text))])
    return record.id


def noted(provider, text: str = NOTE, *, task: str = "mr:4821", workspace: int = 1, limit: int = 1_000) -> list[UUID]:
    query = NoteQuery(vector=provider.embed_query(text), workspace=workspace, task=task, limit=limit)
    return [hit.note_id for hit in provider.search_notes(query)]


def test_no_search_of_memories_ever_returns_a_note(provider):
    """Whatever it asks for: with no filter at all, in every tier, in every status, about every moment."""
    memory = a_record(NOTE)
    store(provider, memory)
    for workspace in (1, 2):
        note(provider, workspace=workspace)
    wide = {"everything": True, "with_replaced": True, "audiences": frozenset({1, 2})}
    for asked in (
        {},
        wide,
        wide | {"tiers": frozenset({"durable", "index"})},
        wide | {"tiers": frozenset({"index"})},
        wide | {"statuses": frozenset({"active", "disputed", "superseded", "retired"})},
        wide | {"as_of": NOW + 999 * DAY},
        wide | {"as_of": NOW - 9_999 * DAY},
        wide | {"known_at": NOW + 999 * DAY},
    ):
        assert found(provider, **asked) <= {memory.id}, asked
    assert found(provider, **wide) == {memory.id}
    assert found(provider, **wide, workspace=2) == set()


def test_a_search_of_memories_cannot_even_ask_for_notes(provider):
    for tiers in ({"episodic"}, {"durable", "episodic"}):
        with pytest.raises(ValueError, match="tiers must be among"):
            a_query(provider, tiers=frozenset(tiers))
    with pytest.raises(ValueError, match="tier must be among"):
        a_record(tier="episodic")


def test_a_note_is_no_memory_in_any_other_way(provider):
    memory = a_record()
    store(provider, memory)
    written = note(provider)
    assert provider.get(written) is None
    assert provider.statuses([written, memory.id]) == {memory.id: "active"}
    assert [record.id for record in provider.iterate()] == [memory.id]
    assert (provider.describe().memories, provider.describe().rows) == (1, 1)
    with pytest.raises(ProviderError):
        provider.update(written, PayloadPatch(status="retired"))


def test_notes_are_found_in_exactly_their_task(provider):
    written = {
        task: note(provider, task=task)
        for task in ("mr:4821", "mr:482", "MR:4821", "mr:4821 ", "mr:%", "branch:feature/x", "branch:feature")
    }
    elsewhere = note(provider, workspace=2)
    for task, note_id in written.items():
        assert noted(provider, task=task) == [note_id]
    assert noted(provider, workspace=2) == [elsewhere]
    assert noted(provider, task="mr:*") == []
    assert noted(provider, workspace=3) == []


def test_no_search_of_notes_returns_a_memory(provider):
    store(provider, a_record(NOTE))
    assert noted(provider) == []


def test_notes_come_nearest_first_and_no_more_than_asked_for(provider):
    far = note(provider, "Invoices are numbered without gaps.")
    exact = note(provider)
    near = note(provider, "Retries back off linearly.")
    assert noted(provider) == [exact, near, far]
    assert noted(provider, limit=2) == [exact, near]
    query = NoteQuery(vector=provider.embed_query(NOTE), workspace=1, task="mr:4821")
    assert provider.search_notes(query)[0].score == pytest.approx(1.0, abs=1e-5)


def test_a_long_note_is_found_once_by_its_best_passage(provider):
    padding = " ".join(f"Padding {number} stands here." for number in range(60))
    text = f"{padding} {NOTE} {padding}"
    assert len(provider.prepare(text).passages) > 1
    long = note(provider, text)
    assert noted(provider) == [long]


def test_a_note_that_was_inserted_again_stays_as_it_was(provider):
    record = NoteRecord(id=uuid4(), workspace=1, task="mr:4821")
    provider.insert_notes([(record, provider.prepare(NOTE))])
    provider.insert_notes([(record, provider.prepare("Something else."))])
    query = NoteQuery(vector=provider.embed_query(NOTE), workspace=1, task="mr:4821")
    assert [round(hit.score, 3) for hit in provider.search_notes(query)] == [1.0]


def test_deleted_notes_are_gone_and_deleting_is_idempotent(provider):
    memory = a_record(NOTE)
    store(provider, memory)
    gone, kept = note(provider, NOTE * 20), note(provider)
    provider.delete_notes([gone, uuid4()])
    provider.delete_notes([gone])
    provider.delete_notes([])
    assert noted(provider) == [kept]
    provider.delete_notes([memory.id])
    assert found(provider) == {memory.id}


def test_notes_of_another_embedder_are_refused(provider):
    foreign = Prepared((Passage("x", (1.0, 0.0)),), "another", 2)
    with pytest.raises(ProviderError, match="Prepare it again"):
        provider.insert_notes([(NoteRecord(id=uuid4(), workspace=1, task="mr:1"), foreign)])
    with pytest.raises(ProviderError, match="dimensions"):
        provider.search_notes(NoteQuery(vector=(1.0, 0.0), workspace=1, task="mr:1"))


@pytest.mark.parametrize("task", ["", "  ", "a\x00b", "a\ud83d"])
def test_a_task_is_named(task):
    with pytest.raises(ValueError, match="task"):
        NoteQuery(vector=(1.0,), workspace=1, task=task)
    with pytest.raises(ValueError, match="task"):
        NoteRecord(id=uuid4(), workspace=1, task=task)
