"""What is about an individual or of the moment is refused whoever found it, and nothing else is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from apps.candidates.models import Candidate
from apps.capture.extractors.registry import override
from apps.capture.models import CaptureEvent, EventOutcome
from apps.capture.speakers import people_in
from apps.capture.tasks import drain
from apps.core.screening.exclusions import INDIVIDUALS, TRANSIENT, exclusion_of
from apps.core.screening.people import People
from apps.taxonomy.models import Exclusion
from tests.capture.doubles import Canned, a_fact, an_event

LABELLED = Path(__file__).parent / "labelled" / "messages.jsonl"
EVERY = frozenset({INDIVIDUALS, TRANSIENT})

ABOUT_AN_INDIVIDUAL = [
    "Anna is slow at reviews.",
    "Ben never answers before noon.",
    "Anna prefers tabs over spaces.",
    "The new backend developer is on parental leave.",
    "Our intern is careless with reviews.",
    "@kim owns the billing service.",
    "The billing service is owned by Anna.",
    "Owner of the gateway is Ben.",
    "Ask Anna about the deploy scripts.",
    "She is bad at estimating.",
    "He always forgets the changelog.",
    "Anna ist langsam bei Reviews.",
    "Ben ist im Urlaub.",
    "Priyanka is on vacation until May.",
    "Ben is the best engineer in the team.",
    "Anna and Ben are on leave.",
    "Anna Schmidt is out of office.",
    "Tom was promoted to staff engineer.",
    "Lena lacks experience with Kubernetes.",
    "Anna works part-time.",
    "Ben hates meetings.",
    "Sofia is responsible for the payments database.",
    "Camille est lente en reviews.",
    "Diego es lento en las revisiones.",
    "Anna is too slow at code reviews and often late.",
    "Paul needs coaching with tests.",
    "Only Ben maintains the release scripts; Ben is the owner.",
]
OF_THE_MOMENT = [
    "CI is red right now.",
    "CI is red.",
    "The build is broken.",
    "Staging is down at the moment.",
    "The pipeline is currently failing.",
    "Main is broken since this morning.",
    "Deploys are frozen today.",
    "The team is working on the migration right now.",
    "Release 2.3 will be released tomorrow.",
    "We are investigating the outage at the moment.",
    "The staging database is still down.",
    "Die Pipeline ist gerade rot.",
    "La CI est en panne en ce moment.",
    "The migration is in progress.",
    "The end-to-end tests are flaky today.",
    "Production is back up.",
    "The MR will be merged on Friday.",
    "The vpn is down again.",
    "Staging is down right now because the certificate expired this morning; we decided to wait.",
    "The build is currently broken on main, since the cache was cleared this morning; we will retry later.",
    "The registry is unreachable at the moment, so we agreed to hold off until noon.",
]
# Teams and roles, systems that are called or judged like people, and what lasts although it sounds like today.
LASTING = [
    "The billing team owns the invoice service.",
    "Team Anna owns the gateway.",
    "Anna's team owns billing.",
    "Owner of the gateway is the platform team.",
    "Anna decided to use Kafka because the partner drops bursts.",
    "Ben found that retries without jitter took the gateway down.",
    "Julia is fast at numerics.",
    "Julia code is compiled on first use.",
    "Hibernate is lazy by default.",
    "Postgres is bad at planning joins over twelve tables.",
    "Gerrit is good at code reviews of stacked changes.",
    "Redis is slow at large keys.",
    "The test suite is slow because every test builds the schema.",
    "The API is down whenever the certificate expires.",
    "The gateway is unavailable for EU tenants, since the contract ended.",
    "Currently we use Kafka for events.",
    "Reads are slow in MongoDB with this schema.",
    "From next week on every MR needs two approvals.",
    "Since yesterday, deploys need two approvals.",
    "CI must be green before a merge.",
    "The pipeline fails if the cache is cold.",
    "If staging is down, deploy from the fallback runner.",
    "The main branch is protected.",
    "Retries are stuck when the broker restarts.",
    "Users prefer the short form.",
    "The reviewer never approves their own merge request.",
    "The maintainer decides within two days.",
    "A reviewer is responsible for the rollout.",
    "The on-call engineer owns the incident until it is closed.",
    "Each developer is responsible for the tests of their change.",
    "The service was broken by a change of the TLS library; we pin OpenSSL 3.0.",
    "The builds are reproducible.",
    "Production is deployed on Tuesdays.",
    "The nightly job is currently the only writer of this table.",
    "Feature flags are still evaluated on the server, because clients cache.",
    "The api is down for maintenance every Sunday at 03:00.",
    "The customer prefers invoices as PDF.",
    "The partner's gateway is slow at night.",
    "Felix is the name of our load balancer.",
    "Max retries is three.",
    "Sam is a tool of AWS for serverless.",
    "Deploys are frozen in December.",
    "Deployments are blocked on Fridays.",
    "The database is back up to three copies.",
    "Staging is down right now because the certificate expired; we decided to renew certificates with cert-manager.",
    "CI is red right now because of the old runner; we decided to replace it with Buildkite.",
    "We decided to wait for the ack of the broker before a job is marked as done.",
    "The queue is stuck if a consumer holds its lease.",
    "The legal team is responsible for retention periods.",
    "Support is available on weekdays.",
    "Ask the platform team about quotas.",
    "The staging cluster is owned by the infra guild.",
    "Mercury is the owner of the ledger tables.",
    "We will use Kafka for billing events.",
    "We decided to deploy on Tuesdays from next week on.",
    "The architect role reviews every ADR.",
    "The release manager merges on Fridays.",
    "Victoria Metrics is fast at ingest.",
    "Paris is the failover region.",
    "Frank is our name for the CI bot.",
]


def excluded(content: str, material: str = "", in_force: frozenset[str] = EVERY) -> str | None:
    return exclusion_of(content, people_in(material), in_force)


@pytest.mark.parametrize("content", ABOUT_AN_INDIVIDUAL)
def test_what_is_about_an_individual_is_refused(content):
    assert excluded(content) == INDIVIDUALS
    assert excluded(content, in_force=frozenset({TRANSIENT})) is None


@pytest.mark.parametrize("content", OF_THE_MOMENT)
def test_what_is_of_the_moment_is_refused(content):
    assert excluded(content) == TRANSIENT
    assert excluded(content, in_force=frozenset({INDIVIDUALS})) is None


@pytest.mark.parametrize("content", LASTING)
def test_nothing_else_is_refused(content):
    assert excluded(content) is None


def test_whoever_speaks_in_the_material_is_known_as_a_person():
    assert excluded("Thandiwe owns the ledger.") is None
    assert excluded("Thandiwe owns the ledger.", "Thandiwe: I own it.\nben: ok") == INDIVIDUALS


def test_no_message_that_was_labelled_as_worth_keeping_is_refused():
    rows = [json.loads(line) for line in LABELLED.read_text(encoding="utf-8").splitlines()]
    refused = [row["text"] for row in rows if row["keep"] and exclusion_of(row["text"], People(), EVERY)]
    assert refused == []


@pytest.mark.django_db
@pytest.mark.usefixtures("pool")
class TestGate:
    @pytest.fixture
    def bot(self, botty, principal):
        return principal(botty)

    @pytest.mark.parametrize("extractor", ["llm", "provider", "rules"])
    def test_every_extractor_is_held_to_it(self, bot, extractor):
        event = an_event(bot)
        facts = [a_fact("Anna is slow at reviews."), a_fact("CI is red right now."), a_fact("The pay team owns it.")]
        with override(Canned(facts, name=extractor)):
            drain()
        event = CaptureEvent.objects.get(pk=event.pk)
        assert Candidate.objects.get().content == "The pay team owns it."
        first, second, third = event.facts
        assert (first["outcome"], second["outcome"], third["outcome"]) == ("excluded", "excluded", "queued")
        assert "(individuals)" in first["reason"] and "(transient-state)" in second["reason"]
        assert first["content"] == "a colleague is slow at reviews."
        assert "Anna" not in json.dumps(event.facts)

    def test_an_event_with_nothing_else_is_excluded_and_says_why(self, bot):
        event = an_event(bot)
        with override(Canned([a_fact("Anna is slow at reviews.")])):
            drain()
        event = CaptureEvent.objects.get(pk=event.pk)
        assert (event.outcome, "(individuals)" in event.reason) == (EventOutcome.EXCLUDED, True)
        assert not Candidate.objects.exists()

    def test_what_a_curator_switched_off_is_let_through(self, bot, workspace):
        Exclusion.objects.filter(workspace=workspace, slug=TRANSIENT).update(is_active=False)
        an_event(bot)
        with override(Canned([a_fact("CI is red right now.")], [a_fact("CI is red right now.")])):
            drain()
        assert Candidate.objects.get().content == "CI is red right now."
