"""Which of the types a decisive sentence is, by rule: what stands over it, what it means and what it speaks of."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from apps.capture.extractors.decisiveness import (
    COMPARES,
    HEADINGS,
    IMPERATIVE,
    MEASURE,
    ORIGIN,
    OWNER_OF,
    PASSIVE_DECISION,
    strong_meanings_of,
)
from apps.capture.statements import Statement
from apps.core.screening.people import TEAMS
from apps.core.screening.signals import Meaning

_WIDE: Final = re.compile("[\u3040-\u30ff\u3400-\u9fff]")


def _words(stems: str) -> re.Pattern[str]:
    spaced: list[str] = []
    wide: list[str] = []
    for stem in stems.split():
        (wide if _WIDE.search(stem) else spaced).append(re.escape(stem).replace("_", " ").replace(r"\*", r"\w*"))
    return re.compile("|".join([rf"\b(?:{'|'.join(spaced)})(?!\w)", *wide]), re.IGNORECASE)


_BUSINESS: Final = _words("""
    invoice* refund* vat tax taxes legal law laws contract* regulat* audit* accounting gdpr
    compliance acquirer chargeback* card_scheme customer* marketing billing commercial_code voucher*
    account_closing retention approval price_list payroll bank banks fiscal igic iva tva mwst
    rechnung* steuer* gesetz* revision kunde* kunden facture* impôt* factura* pedidos
    impuesto* cliente* imposto* banco fattura* factuur* btw belasting* 請求 税 顧客 契約 法 发票 税务 客户 合同
    """)
_DEPENDENCY: Final = _words("""
    library libraries package packages dependency dependencies sdk driver upstream vendor* framework
    frameworks pin pinned pins bundle node glibc libxml* npm pypi maven gradle version versions
    upgrade upgrading fork bibliothek abhängigkeit* bibliothèque dependencia* biblioteca* ライブラリ 依存
    依赖
    """)
_VERSION: Final = re.compile(r"\b\d{1,3}\.(?:\d{1,4}|x)(?:\.(?:\d{1,4}|x))?\b(?! ?(?:%|ms|s|minutes|seconds|kB|MB|GB))")
_TOOLING: Final = _words("""
    ci runner runners pipeline make makefile docker container containers image images vpn proxy
    mirror seed lint linter helm kubectl terraform pnpm yarn ide devcontainer virtualenv laptop
    staging env environment_variable* setting settings config configure configuration set_up setup
    install installed command script scripts job golden_files test_command integration_tests profile
    環境 設定
    """)
_COMMAND: Final = re.compile(
    r"`[a-z][\w./-]* [^`]+`|`(?:make|just|npm|pnpm|yarn|cargo|go|uv|pip|docker|kubectl|terraform)[^`]*`"
)
_OUTAGE: Final = _words("""
    outage* production downtime post-mortem* postmortem* 502 503 500 failover went_down on-call
    paged ausfall störung panne caída queda 障害 故障
    """)
_REVIEWING: Final = re.compile(
    r"\b(?:same (?:remark|comment)|as (?:on|in) the last|again and again|every (?:review|mr|pr)|in reviews?"
    r"|reviewers?|standing one|before merging|keep seeing|once more|nit)\b",
    re.IGNORECASE,
)
_BREAKS: Final = re.compile(
    r"\b(?:fail\w*|broke\w*|breaks?|crash\w*|wrong|fault|bug|duplicate\w*|leak\w*|stall\w*|hangs?|twice)\b", re.I
)
_TRIED: Final = re.compile(
    r"\b(?:tried|rejected|ruled out|turned down|considered|looked (?:at|into)|benchmarked|abandon\w*|not worth"
    r"|bring (?:it )?back|won't fix|wontfix|drop(?:ped)? the|got rid|get rid|revert\w*|we will not|we won't"
    r"|stopped using|decided against|gave up|verworfen|abgelehnt|écarté|rejeté|n'utilise plus|descarta\w*|scartato"
    r"|afgewezen|却下|不採用|否决|放弃)",
    re.IGNORECASE,
)
_PINS: Final = re.compile(
    r"\b(?:pin(?:ned|s)?|keep|stay|hold|upgrade|must be|leave|ignores?|link\w*|no new code|replac\w*|gone)\b", re.I
)
# What comes nearest where a type is not in use.
_NEAREST: Final[dict[str, tuple[str, ...]]] = {
    "architecture_decisions": ("dependency_decisions", "task_learnings"),
    "dependency_decisions": ("architecture_decisions", "tooling_setup"),
    "anti_patterns": ("architecture_decisions", "task_learnings"),
    "coding_conventions": ("review_feedback", "tooling_setup"),
    "review_feedback": ("coding_conventions",),
    "tooling_setup": ("task_learnings", "coding_conventions"),
    "bug_fixes": ("production_issues", "task_learnings"),
    "production_issues": ("bug_fixes", "task_learnings"),
    "performance_findings": ("task_learnings",),
    "task_learnings": ("bug_fixes", "tooling_setup"),
    "business_rules": (),
    "ownership": (),
    "terminology": (),
}


def types_for(statement: Statement, meanings: frozenset[Meaning], kind: str, content: str) -> Iterator[str]:
    """The types that fit, the best first, each followed by what comes nearest to it."""
    for name in dict.fromkeys(_fitting(statement, meanings, kind, content)):
        yield name
        yield from _NEAREST[name]


def _fitting(statement: Statement, meanings: frozenset[Meaning], kind: str, content: str) -> Iterator[str]:
    """One rule after the other, the most telling first."""
    strong = strong_meanings_of(statement.text)
    heading = HEADINGS.get(statement.heading)
    business = bool(_BUSINESS.search(content))
    dependency = bool(_DEPENDENCY.search(content)) or bool(_VERSION.search(content) and _PINS.search(content))
    tooling = bool(_TOOLING.search(content)) or bool(_COMMAND.search(content))
    if OWNER_OF.search(statement.text):
        yield "ownership"
    if Meaning.OWNERSHIP in strong and not (Meaning.DECISION in strong and not TEAMS.search(content)):
        yield "ownership"
    if Meaning.TERM in strong:
        yield "terminology"
    if heading and heading[0] == Meaning.CAUSE:
        yield "production_issues" if kind == "incident" else heading[1]
    elif heading and not (heading[0] == Meaning.DECISION and dependency):
        yield heading[1]
    if kind == "incident":
        yield "production_issues"
    if Meaning.REJECTION in strong and Meaning.DECISION not in strong:
        yield "anti_patterns"
    if MEASURE.search(content) and COMPARES.search(content) and Meaning.DECISION not in strong:
        yield "performance_findings"
    if _TRIED.search(content) and Meaning.DECISION not in strong:
        yield "anti_patterns"
    if {Meaning.DECISION, Meaning.REPLACEMENT} <= strong:
        yield "dependency_decisions" if dependency else "architecture_decisions"
    if business and (ORIGIN.search(content) or meanings & {Meaning.RULE, Meaning.TERM, Meaning.CAUSE, Meaning.REASON}):
        yield "business_rules"
    if dependency and meanings & {Meaning.DECISION, Meaning.RULE, Meaning.REPLACEMENT, Meaning.REJECTION}:
        yield "dependency_decisions"
    if Meaning.DECISION in strong or PASSIVE_DECISION.search(statement.text):
        yield "architecture_decisions"
    if kind == "rules_file" and (Meaning.RULE in meanings or IMPERATIVE.match(content)):
        yield "tooling_setup" if tooling else "coding_conventions"
    if Meaning.DISCOVERY in strong and Meaning.CAUSE not in meanings:
        yield "bug_fixes" if _BREAKS.search(content) else "tooling_setup" if tooling else "task_learnings"
    if Meaning.CAUSE in meanings and (Meaning.CAUSE in strong or _BREAKS.search(content)):
        yield "production_issues" if _OUTAGE.search(content) else "bug_fixes"
    if tooling and meanings & {Meaning.RULE, Meaning.DISCOVERY, Meaning.REASON, Meaning.CAUSE}:
        yield "tooling_setup"
    if Meaning.RULE in meanings or IMPERATIVE.match(content):
        yield (
            "review_feedback" if kind == "merge_request" and _REVIEWING.search(statement.text) else "coding_conventions"
        )
    if Meaning.DISCOVERY in meanings:
        yield "task_learnings"
    if meanings & {Meaning.REPLACEMENT, Meaning.DECISION}:
        yield "architecture_decisions"
    if Meaning.REJECTION in meanings:
        yield "anti_patterns"
    if Meaning.OWNERSHIP in meanings:
        yield "ownership"
    yield "task_learnings"
