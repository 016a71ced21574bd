"""What counts as saying the same: measured on pairs of statements, one half to choose by and one to report."""

from __future__ import annotations

import pytest

from apps.retrieval.contents import Contents, clauses_of, contents_of, denials_apart, likeness
from apps.retrieval.likeness import ALIKE, say_the_same

SAME = [
    ("Payment retries stop after five attempts.", "Retries of payments stop after five attempts."),
    (
        "Invoices are numbered without gaps, as the tax law asks.",
        "Invoices are numbered without gaps, because the tax law asks for it.",
    ),
    ("We use PostgreSQL for the queue.", "PostgreSQL is used for the queue."),
    ("Team Settlement owns the ledger service.", "The ledger service is owned by team Settlement."),
    (
        "Feature flags are removed within 30 days of the roll-out.",
        "Within 30 days of the roll-out feature flags are removed.",
    ),
    ("Never log the body of a payment request.", "The body of a payment request is never logged."),
    (
        "Migrations must be backwards compatible with the previous release.",
        "A migration must be backwards compatible with the previous release.",
    ),
    (
        "Webhooks are retried with jitter, since the gateway drops bursts.",
        "Webhooks are retried with jitter because the gateway drops bursts!",
    ),
    ("The build takes nine minutes on the shared runners.", "On shared runners, the build takes nine minutes."),
    ("Money is kept in the smallest unit of its currency.", "Money is kept in the smallest currency unit."),
    ("Caches expire after 15 minutes in acme/web.", "In acme/web caches expire after 15 minutes."),
    ("Backups are encrypted before they leave the machine.", "Backups are encrypted before leaving the machine."),
    (
        "Rückzahlungen gehen in der Währung der Rechnung hinaus.",
        "Rückzahlungen gehen hinaus in der Währung der Rechnung.",
    ),
    ("支払いは三回まで再試行する。", "支払いは三回まで再試行する"),
    ("Les factures sont numérotées sans trous.", "Les factures sont numerotées sans trous."),
    ("OMS means order management system here.", "Here OMS means “order management system”."),
    ("Use `pathlib` instead of `os.path` in new code.", "In new code use `pathlib` instead of `os.path`."),
    ("Dependencies are pinned with hashes.", "Dependencies are pinned, with hashes."),
    ("The gateway times out after 30 seconds.", "The gateway has a time-out of 30 seconds."),
    ("Sessions expire after one hour without activity.", "Without activity sessions expire after one hour."),
    (
        "Exports run at midnight UTC so that they do not block writers.",
        "Exports run at midnight UTC, so they do not block writers.",
    ),
    (
        "Errors of the bank are shown to the customer in plain words.",
        "Errors from the bank are shown in plain words to the customer.",
    ),
    (
        "Deploys to production need an approval of two reviewers.",
        "Deploying to production needs the approval of two reviewers.",
    ),
    (
        "Personal data is deleted 90 days after an account was closed.",
        "Personal data is deleted 90 days after closing an account.",
    ),
]
OTHER = [
    ("Payment retries stop after five attempts.", "Payment retries stop after three attempts."),
    ("Invoices are numbered without gaps.", "Invoices are numbered with gaps."),
    ("We use PostgreSQL for the queue.", "We use RabbitMQ for the queue."),
    ("Team Settlement owns the ledger service.", "Team Settlement owns the invoice service."),
    ("Feature flags are removed within 30 days.", "Feature flags are removed within 60 days."),
    ("Never log the body of a payment request.", "Log the body of a payment request."),
    ("Passwords expire after a year.", "Passwords never expire."),
    ("Webhooks are retried with jitter.", "Webhooks are signed with HMAC."),
    ("The build takes nine minutes on the shared runners.", "The tests take nine minutes on the shared runners."),
    ("Money is kept in the smallest unit of its currency.", "Prices are shown in the currency of the customer."),
    ("Caches expire after 15 minutes in acme/web.", "Caches expire after 15 minutes in acme/pay."),
    ("Backups are encrypted before they leave the machine.", "Backups are kept for ninety days."),
    (
        "Rückzahlungen gehen in der Währung der Rechnung hinaus.",
        "Rückzahlungen gehen nicht in der Währung der Rechnung hinaus.",
    ),
    ("支払いは三回まで再試行する。", "返金は請求書の通貨で行う。"),
    ("Les factures sont numérotées sans trous.", "Les factures sont envoyées par courriel."),
    ("OMS means order management system here.", "OMS is owned by team Fulfilment."),
    ("Use `pathlib` in new code.", "Use `httpx` in new code."),
    ("Dependencies are pinned with hashes.", "Dependencies are updated on Mondays."),
    ("Python 3.10 is the oldest version that is supported.", "Python 3.11 is the oldest version that is supported."),
    ("The gateway times out after 30 seconds.", "The gateway is called through the proxy."),
    ("Sessions expire after one hour.", "Sessions are kept in Redis."),
    ("Exports run at midnight UTC.", "Exports are written as CSV."),
    ("Refunds are booked on the day the bank confirms them.", "Refunds are booked on the day they are asked for."),
    ("Deploys to production need two reviewers.", "Deploys to staging need no reviewer."),
    ("Orders are sent by carrier pigeon.", "Orders are sent by parcel drone."),
    ("Timestamps are stored in UTC.", "Timestamps are shown in local time."),
    ("Search uses BM25 for words.", "Search uses cosine similarity for meaning."),
    ("The API answers errors as problem+json.", "The API answers lists with cursors."),
    ("Retry with exponential back-off.", "Retry at a fixed interval."),
    ("Use feature flags for risky changes.", "Use feature branches for risky changes."),
    ("The ledger is append-only.", "The ledger is exported every night."),
    ("Chargebacks are handled by team Risk.", "Chargebacks are handled by team Support."),
    ("Batch size is 500 for imports.", "Batch size is 50 for imports."),
    ("Kafka topics are named by domain.", "Kafka topics are kept for a week."),
    ("Customer names are masked in logs.", "Customer names are shown in invoices."),
    ("Use the staging gateway for tests.", "Use a fake gateway for tests."),
]


def share_alike(pairs: list[tuple[str, str]], *, half: int) -> float:
    told = [say_the_same(contents_of(one), contents_of(other)) for one, other in pairs[half::2]]
    return sum(told) / len(told)


@pytest.mark.parametrize("half", [0, 1])
def test_most_of_what_says_the_same_is_recognised_and_nothing_else(half: int) -> None:
    assert share_alike(SAME, half=half) >= 0.8
    assert share_alike(OTHER, half=half) == 0.0


def test_what_says_nothing_is_like_nothing() -> None:
    empty = contents_of("")
    assert likeness(empty, empty) == 0.0
    assert not say_the_same(empty, contents_of("It is."))
    assert 0 < ALIKE < 1


def test_contents_are_stems_numbers_names_and_whether_something_is_denied() -> None:
    assert contents_of("We don't retry payments 1,000 times in acme/pay; Redis 3.10.") == Contents(
        words=frozenset({"retri", "pay", "tim", "acm", "redi"}),
        numbers=frozenset({"1000", "3.10"}),
        names=frozenset({"redi"}),
        identifiers=frozenset({"acme/pay"}),
        denies=True,
    )


def test_a_clause_is_where_a_negation_reaches() -> None:
    assert [
        contents_of(each).denies for each in clauses_of("Payments are not retried, because the bank books both.")
    ] == [
        True,
        False,
    ]


@pytest.mark.parametrize(
    "text",
    [
        "a/b" * 3_000,
        "A" * 9_000,
        "Aa " * 3_000,
        "支" * 9_000,
        "1,000" * 2_000,
        "un–" * 3_000,
        " " * 20_000,
        "a_" * 5_000,
    ],
)
def test_any_text_is_read_in_linear_time(text: str) -> None:
    import time

    started = time.process_time()
    contents_of(text)
    denials_apart(text)
    assert time.process_time() - started < 1.0
