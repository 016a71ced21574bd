"""Facts that are found without a model, and what is refused."""

from __future__ import annotations

import json

import pytest

from apps.capture.extractors.base import Extraction, Fact, Material, TypeChoice, Vocabulary
from apps.capture.extractors.rules import (
    ABOUT_A_PERSON,
    MAX_FACTS,
    NO_TYPE,
    NOT_AMONG_THE_FIRST,
    NOTHING_FOUND,
    POINTS_BACK,
    TRANSIENT,
    RulesExtractor,
)
from apps.capture.splitting import readable
from apps.taxonomy.seed import EXCLUSIONS, TYPES
from tests.capture.labelled.measuring import measure

VOCABULARY = Vocabulary(tuple(TypeChoice(row.name, row.slug, row.description) for row in TYPES), EXCLUSIONS)


def extract(text: str, kind: str = "merge_request", vocabulary: Vocabulary = VOCABULARY, **more: object) -> Extraction:
    return RulesExtractor().extract(Material(text, kind, **more), vocabulary)


def facts(text: str, kind: str = "merge_request", **more: object) -> tuple[Fact, ...]:
    return extract(text, kind, **more).facts


def only_fact(text: str, kind: str = "merge_request", **more: object) -> Fact:
    (fact,) = facts(text, kind, **more)
    return fact


# --- what is found ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "kind", "type_"),
    [
        ("We decided to keep orders and stock in one database.", "chat", "architecture_decisions"),
        ("We chose NATS over Kafka, because three people cannot run Kafka.", "merge_request", "architecture_decisions"),
        ("We stay on Django 4.2 until the payment SDK supports 5.", "issue", "dependency_decisions"),
        (
            "We tried sharding by region and gave up on it, one region holds 80 % of the orders.",
            "chat",
            "anti_patterns",
        ),
        ("Never log the request body, because it holds card numbers.", "chat", "coding_conventions"),
        ("Same remark as last time: never add a column with a default here.", "merge_request", "review_feedback"),
        ("Root cause: the lock was released before the commit.", "issue", "bug_fixes"),
        ("The outage was caused by a full disk on the primary.", "incident", "production_issues"),
        ("Run `make seed` first, otherwise the tests fail because the tenant must exist.", "chat", "tooling_setup"),
        ("Heads up: the exporter silently skips empty tenants.", "chat", "task_learnings"),
        ("The nightly export went from 41 minutes to 3 minutes with COPY.", "merge_request", "performance_findings"),
        (
            "Refunds above 500 EUR must be approved twice, because the acquirer's contract says so.",
            "issue",
            "business_rules",
        ),
        ("The tax engine is owned by team Ledger.", "chat", "ownership"),
        ("PSP stands for payment service provider.", "chat", "terminology"),
        ("Wir haben entschieden, Keycloak statt einer Eigenentwicklung zu nehmen.", "chat", "architecture_decisions"),
        ("Decidimos usar una cola por cliente.", "chat", "architecture_decisions"),
        ("決済の再試行は三回までと決定しました。", "chat", "architecture_decisions"),
    ],
)
def test_a_decisive_sentence_is_found_and_typed(text, kind, type_):
    fact = only_fact(text, kind)

    assert fact.type == type_
    assert fact.quote in text


@pytest.mark.parametrize(
    "text",
    [
        "Good morning, did everybody sleep well after the release party in the big hall?",
        "Should we always use UUIDs instead of integers here?",
        "Maybe we should never have used the queue, not sure.",
        "Could you please always rename the variable to something longer?",
        "This MR adds a new endpoint and renames the old controller.",
        "| never | always |\n|---|---|\n| must | must not |",
        "```\nwe decided = True\nnever = because\n```",
        "- [ ] we must never forget the changelog",
        "> We decided to use Kafka, because everybody does.",
    ],
)
def test_what_decides_nothing_is_no_fact(text):
    assert facts(text) == ()


def test_an_empty_answer_says_why():
    assert extract("Good morning everybody.").note == NOTHING_FOUND


def test_a_teams_own_signals_decide():
    text = "Hyväksytty ratkaisu on jono jokaiselle asiakkaalle."

    assert facts(text) == ()
    assert only_fact(text, hints=("hyväksyt*",)).type == "architecture_decisions"


def test_a_note_that_the_author_sets_off_is_no_quote():
    text = "> [!WARNING]\n> Never run it on the primary, because the lock blocks every order.\n\n> Never ask, said he."

    assert only_fact(text, "document").content == ("Never run it on the primary, because the lock blocks every order.")


@pytest.mark.parametrize("kind", ["merge_request", "chat", "incident", "rules_file", "document"])
def test_no_fact_is_surer_than_half(kind):
    text = "Decision: we decided that we must never, always and only use the outbox instead of Kafka, because it broke."

    assert all(fact.confidence <= 0.5 for fact in facts(text, kind))
    assert facts(text, kind)


# --- structure ----------------------------------------------------------------------------------------------
ADR = """# 21. Use a single region for writes

## Status
Accepted

## Context
Multi-region writes need conflict resolution.

## Decision
All writes go to eu-central-1. Other regions hold read replicas.

## Alternatives considered

CRDT counters: support could not explain the results to customers.
"""


def test_a_decision_record_is_one_fact_with_its_title_and_one_for_each_alternative():
    decision, alternative = facts(ADR, "document")

    assert decision.content == (
        "Use a single region for writes: All writes go to eu-central-1. Other regions hold read replicas."
    )
    assert decision.quote == "All writes go to eu-central-1. Other regions hold read replicas."
    assert decision.type == "architecture_decisions"
    assert alternative.type == "anti_patterns"


@pytest.mark.parametrize("label", ["Decision:", "**Decision:**", "Decision：", "Entscheidung:", "Decisión:"])
def test_a_label_makes_the_sentence_behind_it_a_decision(label):
    fact = only_fact(f"{label} the exporter lives in its own service", "chat")

    assert fact.content == "the exporter lives in its own service"
    assert fact.type == "architecture_decisions"


def test_the_rules_of_a_rules_file_are_facts_one_by_one():
    text = (
        "# Working here\n\n- Always use the factories.\n- Do not edit `gen/`, `make proto` overwrites it.\n"
        "- The code is in `src/`.\n"
    )

    assert [fact.content for fact in facts(text, "rules_file")] == [
        "Always use the factories.",
        "Do not edit `gen/`, `make proto` overwrites it.",
    ]


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("### Never\n\n- Use `require()` in TypeScript.\n", "Never: Use `require()` in TypeScript."),
        ("## Don't\n\n* Commit generated files.\n", "Don't: Commit generated files."),
        (
            "Avoid the following:\n\n- Use of `any` in new modules.\n",
            "Avoid the following: Use of `any` in new modules.",
        ),
        (
            "## Do NOT\n\n- Introduce a framework. Follow the patterns in the file, always.\n",
            "Do not: Introduce a framework. Follow the patterns in the file, always.",
        ),
        ("All handlers must:\n\n- always take a context\n", "All handlers must: always take a context"),
    ],
)
def test_a_list_item_keeps_the_words_above_it_that_turn_its_meaning(text, content):
    assert [fact.content for fact in facts(text, "rules_file")] == [content]


# --- self-contained -----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "content"),
    [
        (
            "The settings are read once. So never change them at run time.",
            "The settings are read once. So never change them at run time.",
        ),
        (
            "The tests share one index. They must not run in parallel because of that.",
            "The tests share one index. They must not run in parallel because of that.",
        ),
        (
            "The owner field is filled by a trigger. Never edit that field by hand.",
            "The owner field is filled by a trigger. Never edit that field by hand.",
        ),
        (
            "> Why not catch Exception here?\n\nBecause the breaker must see the timeout.",
            "Why not catch Exception here? Because the breaker must see the timeout.",
        ),
        (
            "mira: where do sessions live?\nleo: In Redis. That was decided because cookies have a limit.",
            "In Redis. That was decided because cookies have a limit.",
        ),
        (
            "This replaces the signed cookies: sessions live in Redis, because cookies have a limit of 4 KB.",
            "This change replaces the signed cookies: sessions live in Redis, because cookies have a limit of 4 KB.",
        ),
        ("lgtm, but the retry loop must stop because of the flag", "the retry loop must stop because of the flag"),
        ("Thanks! But never call it twice, because it must be idempotent.", None),
    ],
)
def test_a_sentence_that_points_back_takes_along_what_it_points_at_or_is_left_out(text, content):
    found = facts(text, "merge_request")

    assert [fact.content for fact in found] == ([content] if content else [])
    assert all(fact.quote in text for fact in found)


def test_a_sentence_that_points_at_nothing_is_left_out_with_a_reason():
    (refused,) = extract("It was decided because they never answered.", "chat").refused

    assert (refused.outcome, refused.reason) == ("dropped_classifier", POINTS_BACK)


def test_a_long_quote_is_cut_within_the_material():
    text = "We decided " + "to keep the outbox and the table and the worker " * 11 + "because the broker loses events."

    fact = only_fact(text)

    assert len(fact.quote) <= 500
    assert fact.quote in text


# --- people and the moment ----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "text",
    [
        "Anna is slow.",
        "Honestly, Ralf is always late with his reviews and never reads the description.",
        "@ben never answers before noon, so never wait for him.",
        "He panics when he is on call, because he never learned it.",
        "Ines is on parental leave until September, so don't assign her anything.",
        "Anna owns the billing module, because she wrote it.",
        "The billing module is owned by @ben.",
        "leo: fine\nada: @leo is the weakest developer, he should not be on call",
    ],
)
def test_what_is_about_an_individual_is_excluded(text):
    extraction = extract(text, "chat")

    assert extraction.facts == ()
    assert {(one.outcome, one.reason) for one in extraction.refused} == {("excluded", ABOUT_A_PERSON)}


@pytest.mark.parametrize(
    "text",
    [
        "CI is red today.",
        "CI is red today, because the npm registry is down.",
        "I'll look tomorrow.",
        "I'll look at the remaining comments tomorrow, because I must leave early.",
        "Staging is down because someone is reindexing.",
        "We are still investigating the elevated error rates.",
        "Ich schaue mir das morgen früh an, weil ich nie vor zehn da bin.",
    ],
)
def test_what_holds_for_the_moment_is_excluded(text):
    extraction = extract(text, "chat")

    assert extraction.facts == ()
    assert {(one.outcome, one.reason) for one in extraction.refused} == {("excluded", TRANSIENT)}


@pytest.mark.parametrize(
    "text",
    [
        "The tax engine belongs to team Ledger since May.",
        "Yesterday we decided to drop the plugin loader.",
        "The importer is slow when the index is missing, so always create it first.",
    ],
)
def test_teams_and_decisions_of_a_day_are_kept(text):
    assert facts(text, "chat")


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("@ben decided that the outbox stays.", "The team decided that the outbox stays."),
        ("<@U0BMS113R> decided that the outbox stays.", "The team decided that the outbox stays."),
        ("Ben and Anna decided that the outbox stays.", "The team decided that the outbox stays."),
        ("We decided with Anna that the outbox stays.", "We decided that the outbox stays."),
        ("We decided, as @ben said, to keep the outbox.", "We decided to keep the outbox."),
        ("@ben, we decided that the outbox stays.", "we decided that the outbox stays."),
        ("priya: ok\nleo: priya decided that the outbox stays", "The team decided that the outbox stays"),
        ("We decided to use `@requires_role('admin')` in every view.", None),
        ("We decided that @acme/platform-team runs the proxy.", "We decided that acme/platform-team runs the proxy."),
    ],
)
def test_names_of_people_are_not_kept(text, content):
    assert only_fact(text, "chat").content == (content or text)


# --- the vocabulary -----------------------------------------------------------------------------------------
def test_a_type_that_is_not_in_use_gives_way_to_the_nearest():
    types = tuple(choice for choice in VOCABULARY.types if choice.slug != "architecture_decisions")

    (fact,) = extract("We decided to keep orders and stock in one database.", vocabulary=Vocabulary(types)).facts

    assert fact.type == "dependency_decisions"


def test_a_fact_without_any_type_that_fits_is_refused():
    vocabulary = Vocabulary((TypeChoice("TERMINOLOGY", "terminology", "Words."),))

    extraction = extract("We decided to keep orders and stock in one database.", vocabulary=vocabulary)

    assert extraction.facts == ()
    assert [(one.outcome, one.reason) for one in extraction.refused] == [("dropped_classifier", NO_TYPE)]


def test_the_slug_is_the_one_of_the_vocabulary():
    vocabulary = Vocabulary((TypeChoice("architecture_decisions", "adr", "Decisions."),))

    assert extract("We decided to keep the outbox.", vocabulary=vocabulary).facts[0].type == "adr"


# --- many, twice, superseding -------------------------------------------------------------------------------
def test_the_same_fact_in_several_places_is_one():
    text = "\n\n".join(["We decided to keep the outbox.", "filler words that say nothing at all " * 900] * 3)

    assert len(facts(text, "document")) == 1


def test_only_the_most_decisive_are_proposed_and_the_rest_has_a_reason():
    plain = [f"Decision {n} was decided for service {n}." for n in range(30)]
    strongest = "We decided that it must never be Kafka, because the root cause was the broker, instead of NATS."
    text = "\n\n".join([*plain[:15], f"The broker lost events. {strongest}", *plain[15:]])

    extraction = extract(text, "document")

    assert len(extraction.facts) == MAX_FACTS
    assert any(strongest in fact.content for fact in extraction.facts)
    assert extraction.note.startswith("11 further sentences were decisive")
    assert [one.reason for one in extraction.refused] == [NOT_AMONG_THE_FIRST] * 11


def test_a_memory_that_a_sentence_replaces_is_named():
    assert only_fact("We decided to replace M-12 and M-40: sessions live in Redis.", "chat").supersedes == (
        "M-12",
        "M-40",
    )
    assert only_fact("We decided it as in M-12.", "chat").supersedes == ()


# --- sessions, size -----------------------------------------------------------------------------------------
def test_quotes_of_a_session_are_in_what_is_readable_of_it():
    lines = [
        {"type": "user", "message": {"role": "user", "content": 'We decided:\nnever use "utils/dates.py" again.'}},
        {"type": "user", "message": {"role": "user", "content": [{"type": "tool_result", "content": "never"}]}},
    ]
    session = "\n".join(json.dumps(entry) for entry in lines)

    fact = only_fact(session, "transcript")

    assert fact.quote in readable(session, "transcript")
    assert "user:" not in fact.content


def test_the_last_line_of_a_long_transcript_is_read():
    text = "ben: nothing to see in this line of talk\n" * 10_000 + "anna: we decided to keep the outbox"
    beats: list[int] = []

    extraction = RulesExtractor().extract(Material(text, "transcript"), VOCABULARY, heartbeat=lambda: beats.append(1))

    assert [fact.content for fact in extraction.facts] == ["we decided to keep the outbox"]
    assert len(beats) > 10


def test_a_lost_lease_ends_the_work():
    class Lost(Exception):
        pass

    def beat() -> None:
        raise Lost

    with pytest.raises(Lost):
        RulesExtractor().extract(Material("We decided to keep it.", "chat"), VOCABULARY, heartbeat=beat)


@pytest.mark.parametrize(
    "seed",
    [
        *(
            "a",
            " ",
            "\n",
            "`",
            "```\n",
            "> ",
            "- ",
            "- [ ] ",
            "# ",
            "**",
            "_",
            "|",
            "[",
            "[a](",
            "](",
            "@a ",
            "<@a> ",
            ".",
        ),
        *(
            ". ",
            "e.g. ",
            "A. ",
            "never ",
            "because ",
            "it ",
            "So. ",
            "from a ",
            "not a ",
            "決",
            "。",
            "a: b\n",
            "a:",
            ": ",
            "10:42 ",
        ),
        *(
            "Anna ",
            "Anna, ",
            "\0 ",
            "1",
            "1.",
            "1,",
            "12 % ",
            "thanks, ",
            "ok, but ",
            "the x ",
            "lgtm, ",
            "(",
            "i ",
            "M-1 ",
        ),
    ],
)
def test_hostile_text_is_read_without_delay(seed):
    text = f"We decided {seed * (60_000 // len(seed))}"

    for fact in extract(text, "merge_request").facts:
        assert fact.quote in text


# --- decisions of nobody in particular, and owners ----------------------------------------------------------

PASSIVE = [
    "It was decided to keep the monolith until the ledger is split.",
    "It was agreed that all services log in JSON.",
    "It has been decided not to support Internet Explorer.",
    "It was decided in the guild to drop Redis.",
    "After the outage it was decided to pin the base image.",
    "Kafka was chosen over RabbitMQ because of replay.",
    "Postgres was selected as the store for events.",
    "The decision was made to move billing to its own service.",
    "Es wurde beschlossen, die Rechnungen in EUR zu speichern.",
    "Gestern wurde vereinbart, Kafka zu nehmen.",
    "Il a été décidé de garder le monolithe.",
    "Se decidió usar Kafka para los eventos.",
    "Foi decidido usar filas para os e-mails.",
]
OWNED = [
    "Owner of the billing service is team Atlas.",
    "The owner of the gateway is the platform team.",
    "Owner of checkout: team payments",
    "Ownership of the search index lies with the discovery squad.",
    "Ownership of the mobile app moved to the apps guild.",
    "Responsible for the data lake is the analytics group.",
    "The team responsible for invoices is Mercury.",
    "The gateway's owner is the platform team.",
    "Maintainer of the CLI is the developer experience team.",
    "Zuständig für die Abrechnung ist das Team Merkur.",
    "Eigentümer von Checkout ist Team Orion.",
    "Le propriétaire du portail est l'équipe Web.",
    "El responsable de pagos es el equipo Fénix.",
]
ALIKE = [
    "It was late when it failed.",
    "It was decided yesterday.",
    "It was agreed.",
    "It was resolved in 2.3.1.",
    "It was settled quickly, thanks!",
    "It is possible to run the tests in parallel.",
    "The owner of this file is root.",
    "Who is the owner of the gateway?",
    "The column owner is nullable.",
    "The winner was chosen by lot.",
    "A seat was picked for each guest.",
    "The default branch was selected in the dialog.",
    "The option was chosen for you by the wizard.",
    "The responsible team is on call.",
]


@pytest.mark.parametrize("text", PASSIVE)
def test_a_decision_in_the_passive_is_a_decision(text):
    fact = only_fact(text, "chat")
    assert (fact.content, fact.quote) == (text, text)
    assert fact.type in ("architecture_decisions", "dependency_decisions")


@pytest.mark.parametrize("text", OWNED)
def test_a_team_is_found_as_the_owner_in_whatever_order(text):
    fact = only_fact(text, "chat")
    assert (fact.content, fact.type) == (text, "ownership")


@pytest.mark.parametrize("text", ALIKE)
def test_what_only_sounds_like_it_is_no_fact(text):
    assert facts(text, "chat") == ()


@pytest.mark.parametrize("text", ["Owner of the gateway is Anna.", "Responsible for the exports is Ben."])
def test_a_person_is_no_owner(text):
    (refused,) = extract(text, "chat").refused
    assert refused.reason == ABOUT_A_PERSON


def test_on_the_labelled_messages_nearly_all_that_is_found_is_worth_it():
    everything, _, unseen = measure()
    assert everything.precision >= 0.95 and unseen.precision >= 0.95
    assert everything.recall >= 0.7


# --- what was masked ----------------------------------------------------------------------------------------
KAFKA = "We decided to use Kafka, because replays need it."


@pytest.mark.parametrize(
    "text",
    [
        f"[secret: password]\n{KAFKA}",
        f"password: [secret: password]\n{KAFKA}",
        f"Token: [secret: github token]\n{KAFKA}",
        f"ben: [secret: password]\n{KAFKA}",
        f"ana: the password?\nben: [secret: password]\nana: {KAFKA}",
        f"[secret: e-mail address]: {KAFKA}",
        f"> [secret: password]\n\n{KAFKA}",
        f"- [secret: password]\n- {KAFKA}",
        f"`[secret: password]`\n{KAFKA}",
    ],
)
def test_a_mark_is_no_speaker_and_nothing_is_glued_to_it(text):
    assert only_fact(text, "chat").content == KAFKA
