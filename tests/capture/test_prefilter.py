"""What is dropped before any model is asked, and what must live."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from apps.capture.prefilter import ACKNOWLEDGEMENT, BARE_LINK, BOT_NOISE, NOTHING_SAID, TOO_SHORT, prefilter
from apps.core.screening.signals import Meaning, has_signal, meanings_of

LABELLED = Path(__file__).parent / "labelled" / "messages.jsonl"


def rule(text: str, **options: object) -> str | None:
    drop = prefilter(text, **options)
    return drop.rule if drop else None


# --- acknowledgements ---------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "text",
    [
        "lgtm",
        "LGTM!!! 🚀🚀",
        "thanks!",
        "Thanks @priya 🙏",
        "+1",
        "👍",
        "👍🏽 🎉",
        ":shipit:",
        ":+1: lgtm",
        "done",
        "**Done.**",
        "fixed in the next push",
        "Fixed in 4be81d90aa",
        "resolved in !482",
        "same here",
        "Looks good to me, thank you for the quick fix and the update!",
        "> can you rename this?\n\nDone, thanks!",
        "Danke, passt!",
        "Vielen Dank",
        "merci beaucoup !",
        "¡Muchas gracias!",
        "Valeu, obrigado!",
        "了解です、ありがとうございます!",
        "收到，谢谢",
        "감사합니다!",
        "ＬＧＴＭ",
    ],
)
def test_a_message_that_only_acknowledges_is_dropped(text):
    assert rule(text) == ACKNOWLEDGEMENT


@pytest.mark.parametrize(
    "text",
    [
        "lgtm, but the retry loop still double-counts",
        "done, but never call it outside of a transaction",
        "thanks! we own that service though",
        "+1, because the index is not used otherwise",
        "fixed in the next push: the cause was a stale lock",
        "ok, wir nehmen Kafka statt RabbitMQ",
        "了解です。再試行は禁止です",
        "no, deprecated",
    ],
)
def test_an_acknowledgement_that_goes_on_lives(text):
    assert prefilter(text) is None


# --- links and what is left of a text ------------------------------------------------------------------------
@pytest.mark.parametrize(
    "text",
    [
        "https://example.com/a?b=c#d",
        "@ben https://example.com, http://example.org/x!",
        "<https://example.com/browse/PAY-1|PAY-1>",
        "#12, !34 and",
        "www.example.com",
        "- https://example.com/1\n- https://example.com/2\n",
        "see: PAY-1182",
    ],
)
def test_bare_links_and_references_are_dropped(text):
    assert rule(text) in {BARE_LINK, TOO_SHORT}


def test_a_bare_link_is_called_one():
    assert prefilter("@ben https://example.com/x").reason == "The text is only links, references or mentions."


def test_a_link_with_a_statement_lives():
    assert prefilter("never again: https://example.com/postmortem") is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n\t ",
        "```\nreturn 1\n```",
        "```python\nwe decided = True\n```\n@ben",
        "```we decided```",
        "~~~\nnever\n~~~",
        "@ben `make test`",
        "<@U0BMS113R>",
        "> we decided to use Kafka\n> and never look back",
        "&gt; quoted by the chat",
        "<!-- never remove this comment -->",
    ],
)
def test_what_is_empty_without_code_quotes_and_mentions_is_dropped(text):
    assert rule(text) in {NOTHING_SAID, BARE_LINK}


@pytest.mark.parametrize(
    "text",
    [
        "> why not Redis?\n\nBecause it lost locks during failover.",
        "```\nx = 1\n```\nNever write it like this.",
        "an open fence ``` must not hide: we chose nightly exports",
        "> 500 EUR only with a second approval",
        ">= 3.12 only, because of the parser",
        "<!-- a comment that is never closed, we decided",
        "> [!WARNING]\n> Never run it on the primary.",
        "> **Superseded.** Checks are described in the registry.",
    ],
)
def test_what_is_said_beside_code_and_quotes_lives(text):
    assert prefilter(text) is None


# --- length and signals -------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "text", ["lunch at 12?", "typo", "这里有个错别字", "wo ist der Link?", "https://a.example nice one here"]
)
def test_a_short_text_without_a_signal_is_dropped(text):
    assert rule(text) in {TOO_SHORT, ACKNOWLEDGEMENT}


def test_the_reason_of_a_short_text_says_how_short():
    drop = prefilter("lunch at 12?")

    assert drop.reason == (
        "The text has 12 characters beside code, quotes, mentions and links, which is less than 40, and no word in it"
        " signals a decision."
    )


def test_the_length_that_counts_can_be_set():
    assert rule("x" * 60, min_length=61) == TOO_SHORT
    assert rule("x" * 60, min_length=60) is None
    assert rule("lunch at 12?", min_length=0) is None


def test_spaces_do_not_make_a_text_long():
    assert rule("lunch" + " " * 1000 + "at 12?") == TOO_SHORT


@pytest.mark.parametrize(
    "text",
    [
        "we decided: UUIDv7",
        "JWT instead of sessions",
        "because of the VAT id",
        "never on Fridays",
        "must not be cached",
        "deprecate v1",
        "team Ledger owns it",
        "we chose NATS",
        "turned out to be DNS",
        "root cause: clock drift",
        "Money is never a float",
        "don’t retry: not allowed",
        "Niemals auf main pushen",
        "Zuständig: Team Versand",
        "Wir nehmen Kafka statt Pulsar",
        "ne jamais arrondir",
        "Redis plutôt que Memcached",
        "nunca en viernes",
        "decidimos usar colas",
        "em vez de polling",
        "proibido no plantão",
        "必ず移行スクリプトで",
        "廃止予定",
        "禁止直接改库",
        "决定用 NATS",
        "절대 재시도 금지",
        "никогда не кэшировать",
        "nooit op vrijdag",
        "mai più così",
        "nigdy w piątek",
        "aldrig på fredag",
    ],
)
def test_a_decision_signal_rescues_a_short_text(text):
    assert len(text) < 40
    assert prefilter(text) is None


def test_a_team_adds_signals_of_its_own():
    assert rule("hyväksytty: jonot", extra_signals=("hyväksyt*",)) is None
    assert rule("hyväksytty: jonot", extra_signals=["hyväksyt"]) == TOO_SHORT
    assert rule("ตัดสินใจแล้ว: ใช้คิว", extra_signals={"ตัดสินใจ*"}) is None


@pytest.mark.parametrize("text", ["undecidedly", "showns", "meansx"])
def test_a_signal_counts_as_a_word_only(text):
    assert not has_signal(text)


def test_signals_say_what_they_mean():
    assert meanings_of("We chose NATS because Kafka was too much to run") == {Meaning.DECISION, Meaning.REASON}
    assert meanings_of("Team Ledger owns the tax engine") == {Meaning.OWNERSHIP}
    assert meanings_of("Good morning") == frozenset()


# --- automatic notices --------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "text",
    [
        "Pipeline #48213 passed in 12 minutes 4 seconds",
        "Pipeline passed",
        "❌ Build #1182 of storefront failed. Log: https://ci.example.com/1182/console",
        "All checks have passed",
        "## [Codecov](https://example.com) Report\nAttention: 3 lines are missing coverage.\n\nMore below.",
        "Coverage increased (+0.02%) to 92.1% when pulling 5d0e4aa on x into 1f7c2b9 on main.",
        "Bumps [requests](https://example.com/requests) from 2.31.0 to 2.32.0.\n\n- Release notes\n- Changelog"
        "\n\nYou should never see this rebased by hand because Dependabot does it.",
        "chore(deps): bump vite from 5.2.8 to 5.2.11",
        "This PR contains the following updates:\n\n| Package | Change |\n|---|---|\n| vite | 5.2.8 -> 5.2.11 |",
        "Superseded by #812.",
        "OK, I won't notify you again about this release, but will get in touch when a new version is available.",
        "This pull request was removed from the merge queue because the head branch was updated.",
        "Merge train: position 3 of 5",
        "[![CI](https://ci.example.com/b.svg)](https://ci.example.com) ![l](https://img.example.com/l.svg)",
        "This issue has been automatically marked as stale because it has not had recent activity.",
        "added 3 commits\n\n* 1c9e0d2 - Address review\n* 88ab1f0 - Fix lint\n\nCompare with previous version",
        "changed target branch from `develop` to `main`",
        "requested review from @leo",
        "mentioned in commit 4be81d90aa2c7b5ef01d2c3b4a5f60718293a4b5",
        "nina has joined the channel",
        "🚀 payments-api v2.114.0 was deployed to production by deploy-bot (took 3m 12s)",
        "[FIRING:1] HighErrorRate payments-api prod (severity: page), value 7.2%",
        "Deploy Preview for shop-docs ready!\n\n| Name | Link |\n|---|---|",
    ],
)
def test_automatic_notices_are_dropped(text):
    assert rule(text) == BOT_NOISE


@pytest.mark.parametrize(
    "text",
    [
        "Pipeline passed only after I pinned setuptools below 70, because distutils is gone",
        "The build failed on arm since libfoo 3 is not packaged there; we build it from source now.",
        "Build fails without the mirror: pip gives up after the proxy cuts the connection at 100 MB.",
        "Coverage of the importer is misleading, the fixtures call every branch without asserting anything.",
        "Bumps lodash from 4.17.20 to 4.17.21.\n\nWe hold this back: the patch breaks the partner portal.",
        "Codecov report\n\nanna: why did this drop?\nben: the generated client is counted, exclude gen/ in future",
        "Merge queue was a mistake for us: with a suite of 40 minutes it doubled the time to main.",
        "[RESOLVED] root cause was an expired certificate of the auth proxy",
        "added 3 commits\n\nThe second one moves the price rules behind the API, the storefront only renders.",
        "Deployed by hand because the pipeline cannot reach the appliance network",
        "@renovate-bot please leave this one alone: node 22 needs glibc 2.28 and the appliances run CentOS 7.",
        "Renovate is configured to group the AWS packages, since single updates broke the lock file twice.",
        "Coverage report is misleading because gen/ is counted",
        "Codecov: ignore gen/ in the settings, the generated client is counted otherwise.",
        "Bump pydantic from 1.10 to 2.6: the old validators silently drop unknown fields",
        "Jobs queued twice when the worker restarts within 30 s keep both leases until the sweep.",
        "A worker that left the group keeps its lease for 30 s, so draining takes longer than it looks.",
        "Kiosk-client 3.2 was rolled back on Friday, old scanners reject its barcodes",
        "[WARNING] the seed script wipes the shared bucket when the profile is unset",
        "Updated the description with the new limits: 500 requests per minute and tenant",
        "Reminder: every release starts at the tag, not on main",
        "Closed this issue because Oracle is not supported",
        "Deploying the docs with a dirty cache publishes pages of deleted branches.",
    ],
)
def test_what_only_begins_like_a_notice_lives(text):
    assert prefilter(text) is None


def test_a_thread_with_one_notice_in_it_lives():
    text = "Codecov report: 84.2%\n\nMira: storefront or pricing API?\nJonas: behind the API then"

    assert prefilter(text) is None


# --- the labelled set ---------------------------------------------------------------------------------------
def test_at_most_two_in_a_hundred_of_what_a_reviewer_would_keep_are_dropped():
    rows = [json.loads(line) for line in LABELLED.read_text(encoding="utf-8").splitlines()]
    wanted = [row["text"] for row in rows if row["keep"]]
    dropped = [text for text in wanted if prefilter(text)]

    assert len(rows) >= 160
    assert len(wanted) >= 70
    assert len(rows) - len(wanted) >= 70
    assert len(dropped) <= 0.02 * len(wanted), dropped


# --- hostile input ------------------------------------------------------------------------------------------
SIZE = 1_000_000


@pytest.mark.parametrize(
    "seed",
    [
        *(
            "a",
            " ",
            "\n",
            "`",
            "```",
            "~~~",
            "> ",
            ">",
            "<",
            "@",
            "@a",
            "<@",
            "<!--",
            "<!-- ",
            "![",
            "![](",
            "[![",
            "![a](b",
        ),
        *("http://", "<http:", "<http:x|", "www.", "#1", "A1-", "f1", ":a", ":a:", "👍", "ok ", "ok", "thanks ", "+1 "),
        *(
            "bumps ",
            "bumps [a](",
            "pipeline ",
            "added 1 commit\n",
            "\n* a",
            "a:b\n",
            "a: b\n",
            "[RESOLVED] ",
            "coverage ",
        ),
        *(
            "we ",
            "never",
            "决",
            "は",
            "е",
            "\u0301",
            "\u200b",
            "\x00",
            "\ud800",
            "*",
            "_",
            "&gt;",
            "~a",
            "a.",
            "1:1 ",
            "[",
            "((",
        ),
        *("from a to ", "merge request ", "reminder: ", "because", "a" * 50 + " ", "-" * 39 + "a"),
    ],
)
def test_hostile_text_of_a_megabyte_is_answered_without_delay(seed):
    text = seed * (SIZE // len(seed))

    prefilter(f"{text}!")
    for opening in ("", "bumps ", "pipeline ", "added 1 commit", "coverage increased "):
        prefilter(f"{opening}{text[:50_000]}")


def test_a_long_text_is_not_taken_for_a_short_one():
    assert prefilter("`x` " * 10_000 + "we chose the outbox over the queue for all of this work") is None
