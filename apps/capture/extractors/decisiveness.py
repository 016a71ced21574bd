"""How decisive a sentence is, by what its words mean and how it is built, and whether it holds only for the moment."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from apps.capture.statements import Statement
from apps.core.screening.signals import Meaning, folded, meanings_of

# What a heading or label says of what stands under it, and the type it has then.
HEADINGS: Final[dict[str, tuple[Meaning, str]]] = {
    "decision": (Meaning.DECISION, "architecture_decisions"),
    "decisions": (Meaning.DECISION, "architecture_decisions"),
    "decided": (Meaning.DECISION, "architecture_decisions"),
    "outcome": (Meaning.DECISION, "architecture_decisions"),
    "decision outcome": (Meaning.DECISION, "architecture_decisions"),
    "resolution": (Meaning.DECISION, "architecture_decisions"),
    "entscheidung": (Meaning.DECISION, "architecture_decisions"),
    "beschluss": (Meaning.DECISION, "architecture_decisions"),
    "décision": (Meaning.DECISION, "architecture_decisions"),
    "decisión": (Meaning.DECISION, "architecture_decisions"),
    "decisão": (Meaning.DECISION, "architecture_decisions"),
    "決定": (Meaning.DECISION, "architecture_decisions"),
    "决定": (Meaning.DECISION, "architecture_decisions"),
    "结论": (Meaning.DECISION, "architecture_decisions"),
    "root cause": (Meaning.CAUSE, "bug_fixes"),
    "cause": (Meaning.CAUSE, "bug_fixes"),
    "ursache": (Meaning.CAUSE, "bug_fixes"),
    "原因": (Meaning.CAUSE, "bug_fixes"),
    "what went wrong": (Meaning.CAUSE, "production_issues"),
    "what we changed": (Meaning.CAUSE, "production_issues"),
    "mitigation": (Meaning.CAUSE, "production_issues"),
    "lesson": (Meaning.DISCOVERY, "task_learnings"),
    "lessons": (Meaning.DISCOVERY, "task_learnings"),
    "lessons learned": (Meaning.DISCOVERY, "task_learnings"),
    "rejected": (Meaning.REJECTION, "anti_patterns"),
    "alternatives considered": (Meaning.REJECTION, "anti_patterns"),
    "considered alternatives": (Meaning.REJECTION, "anti_patterns"),
    "rule": (Meaning.RULE, "coding_conventions"),
    "regel": (Meaning.RULE, "coding_conventions"),
    "policy": (Meaning.RULE, "coding_conventions"),
    "owner": (Meaning.OWNERSHIP, "ownership"),
    "owners": (Meaning.OWNERSHIP, "ownership"),
    "glossary": (Meaning.TERM, "terminology"),
    "terminology": (Meaning.TERM, "terminology"),
}
ORIGIN: Final = re.compile(
    r"\b(?:legal|law|contract|regulator|audit\w*|accounting|authority|scheme|policy|code|marketing)\b", re.I
)
THRESHOLD: Final = 3
HEADING_SCORE: Final = 3
_STATED: Final = frozenset({Meaning.DECISION, Meaning.REJECTION, Meaning.OWNERSHIP, Meaning.TERM})
_DECISIVE: Final = frozenset(Meaning) - {Meaning.REASON}
# Signals that many harmless sentences have too: these count one point instead of three.
_WEAK: Final = re.compile(
    r"\b(?:only|every|should(?:n't)?|require[sd]?|requirements?|needs to|since|reasons?|moved? to|moving to"
    r"|migrat\w*|replaced?|the cause|incidents?|means|meaning|instead|measured|fyi|dropped|no more"
    r"|(?<!we )will not|we keep|breaks?|agreements?|adopt\w*|signed off|adr|ownership|responsible for \w+ing"
    r"|you are responsible|responsibilit\w+|broke|decisions?|rules?|at least|at most|by default|we call|is called"
    r"|are called|definitions?|go with|agreed|ensure|shall|cannot|may not|prefer\w*|rather than|learn(?:ed"
    r"|t)|i found|found:|note that|mistakes?|trap|owner|rejected|no longer|on purpose|comes from|chosen|guidelines?"
    r"|policy|switched to|revert\w*|benchmark\w*|profiling|regression\w*|leaks?|overflow\w*|corrupt\w*"
    r"|responsibility|maintains|the bug|settled?|do not|avoid|always|tried and|must)\b",
    re.IGNORECASE,
)
# Of these, two together or one with a reason make a sentence decisive; so does one that gives an order.
ORDER: Final = re.compile(
    r"\b(?:must(?:n't)?|always|never|do not|don't|avoid|prefer|forbidden|not allowed)\b", re.IGNORECASE
)
_SOFT_ORDER: Final = re.compile(r"\b(?:may not|cannot|has to|have to|needs? to|required)\b", re.IGNORECASE)
# "will always be", "were never", "never changes": how something behaves, no order.
_DESCRIBES: Final = re.compile(
    r"\b(?:will|would|was|were|has|have|had|can|could|may|might|almost|often|not) (?:always|never)\b"
    r"|\b(?:always|never) (?!means\b|refers\b|stands\b)[a-z]{2,20}(?:[^s]s|ed)\b",
    re.IGNORECASE,
)
# Who speaks for a team, in prose that mostly describes.
_FOR_A_TEAM: Final = re.compile(
    r"\b(?:we|our|us|team|teams|wir|unser\w*|nous|notre|nos|nosotros|nuestr\w*|nós|noss\w*|noi|nostr\w*|wij|ons)\b"
    r"|我们|私たち|弊社",
    re.IGNORECASE,
)
IMPERATIVE: Final = re.compile(
    r"(?:always|never|do not|don't|avoid|prefer|use|keep|make sure|ensure|run|write|put|add|treat|follow|place"
    r"|update|check|regenerate|preserve|leave|call|pass|name|test|document|limit|wrap|return|validate|verify|include"
    r"|import|define|place|mark|format|commit|start|only|no|all|every|each|immer|nie|niemals|keine?|toujours|jamais"
    r"|siempre|nunca|sempre)\b",
    re.IGNORECASE,
)
_HEDGE: Final = re.compile(
    r"\b(?:maybe|perhaps|might|not sure|i guess|i think|i suppose|probably|possibly|wondering|no idea|could also"
    r"|what if|let's see|would be (?:nice|great|good|cool)|hopefully|i assume|not convinced|unclear|vielleicht|evtl"
    r"|peut-être|quizás|talvez|多分|かもしれ|可能是|也许)\b",
    re.IGNORECASE,
)
_ASKS: Final = re.compile(
    r"\b(?:(?:can|could|would|will) (?:you|we|someone|somebody|anyone)|should (?:we|i)|shall we|how about|what about"
    r"|let me|let's|please (?:review|rebase|rename|have|take|help|add|fix|remove|check|update|merge|move"
    r"|leave a piece|try|use)|i(?:'d| would) (?:like|rather|love|suggest|propose)|do you|does anyone|any(?:one"
    r"|body) know|don't miss|register now|thank you for|thanks for|we are still|i(?:'ll| will| am"
    r"|'m)(?: \w+)? (?:going|look|check|start|read|update|run|now|use|clean|help|create|implement|add|fix|rewrite"
    r"|completely|be)\b|what would you)\b",
    re.IGNORECASE,
)
MEASURE: Final = re.compile(
    r"\b\d{1,12}(?:[.,]\d{1,6}){0,3}(?::\d\d)?\s?(?:%|ms\b|µs\b|s\b|sec\b|seconds?\b|min\b|minutes?\b|hours?\b"
    r"|k?i?B\b|[KMGT]i?B\b"
    r"|rps\b|qps\b|rows/s|x\b|times\b|percent\b|million\b|clients\b)|\bp(?:50|9[059]|999)\b|(?<!\w)%",
    re.IGNORECASE,
)
# "Accounting confirmed: …", "Settled in the guild: …", "Legal came back: …"
_CONFIRMED: Final = re.compile(
    r"(?:\w+ ){0,3}(?:confirmed|settled|agreed|decided|came back|clarified|signed off)(?: (?:in|with|by|at"
    r"|on) (?:\w+ ?){1,4})?: ",
    re.IGNORECASE,
)
# Decisions of nobody in particular: "It was agreed to …", "Kafka was chosen over …", "Es wurde beschlossen, …".
PASSIVE_DECISION: Final = re.compile(
    r"(?:it|there) (?:was|has been|had been) (?:\w+ )?(?:decided|agreed|settled|concluded|resolved|determined) "
    r"(?:to|that|not to|(?:in|by|with|at|on) [^.,;]{1,60} (?:to|that))\b"
    r"|\b(?:was|were|has been|have been) (?:\w+ly )?(?:chosen|selected|picked|preferred|favou?red|adopted"
    r"|agreed(?: up)?on|settled on|decided (?:up)?on|ruled out|turned down) (?:over|instead of|rather than|because"
    r"|since|in favou?r of|against|as (?:the|our) (?:\w+ ){0,2}(?:store|database|broker|framework|library|language"
    r"|platform|tool|queue|format|protocol|standard|solution|vendor|provider|backend|runtime))\b"
    r"|\bthe decision (?:was|has been) (?:made|taken) (?:to|that|not to|against|in favou?r of)\b"
    r"|\b(?:es|so) (?:wurde|ist) (?:\w+ )?(?:beschlossen|entschieden|vereinbart|festgelegt)\b"
    r"|\bwurde (?:\w+ ){0,3}(?:beschlossen|entschieden|vereinbart|festgelegt)\b"
    r"|\bil a été (?:\w+ )?(?:décidé|convenu)\b|\bse (?:ha )?(?:decidi[óo]|decidido|acord[óo]|acordado)\b"
    r"|\b(?:foi|ficou) (?:decidido|acordado|definido)\b|\b(?:è stato|si è) deciso\b|\ber is besloten\b",
    re.IGNORECASE,
)
_A_TEAM: Final = (
    r"(?:the |das |die |der |l'|la |le |el |o |a )?(?:[\w&/-]+ ){0,3}?(?:team|squad|guild|group|department|chapter"
    r"|crew|tribe|unit|platform|ops|office|équipe|equipo|equipe|abteilung|gruppe)\b"
)
# "Owner of X is team Y", "X's owner is the Y squad", "Ownership of X lies with Y": said of a team, whatever the order.
OWNER_OF: Final = re.compile(
    r"\b(?:(?:code )?owners?|maintainers?|steward|contact|eigentümer\w*|verantwortlich|zuständig|propriétaire"
    r"|responsable"
    r"|responsável|propietari[oa]|dueñ[oa]|dono|responsabile) (?:of|for|von|für|de|du|des|del|da|do|di|der"
    r"|des) [^.;:!?]{1,80}?"
    rf"(?: (?:is|are|ist|sind|est|es|é|è|remains?|stays?|becomes?|will be)|:) {_A_TEAM}"
    rf"|['’]s? (?:code )?(?:owners?|maintainers?) (?:is|are) {_A_TEAM}"
    r"|\b(?:ownership|responsibility|maintenance|stewardship) (?:of|for) [^.;:!?]{1,80}? (?:lies with|is with"
    r"|rests with|sits with"
    rf"|belongs to|goes to|moves to|moved to|passed to|was (?:given|handed|transferred) to|stays with) {_A_TEAM}"
    rf"|\bresponsible for [^.;:!?]{{1,80}}? (?:is|are) {_A_TEAM}"
    rf"|\b(?:the )?team (?:responsible for|in charge of|that owns|which owns|owning) [^.;:!?]{{1,80}}? (?:is|are) ",
    re.IGNORECASE,
)
_CONTRASTS: Final = re.compile(
    r"\b(?:and|but|,) not\b|, not\b|\bnot .{1,60} but\b|\bstatt\b|\bno .{1,40} sino\b", re.IGNORECASE
)
COMPARES: Final = re.compile(
    r"\bfrom [^.;]{1,80}? (?:down |up )?to \b|\b(?:faster|slower|smaller|larger|less|fewer|more) than\b|\bdoubled\b"
    r"|\bhalved\b|\b\d{1,12}(?:[.,]\d{1,6}){0,2} ?% (?:of|smaller|faster|slower|less|more)|\brather than \d|\bonly"
    r" got\b|\bbenchmark"
    r"|\bprofil|\b(?:von|de) \S{1,40} (?:auf|à|a) \S",
    re.IGNORECASE,
)

# What stands over a list and turns its items into their opposite.
FORBIDS: Final = re.compile(
    r"(?:never|do not|don't|dont|avoid|forbidden|not allowed|disallowed|prohibited|anti-?patterns?|what not"
    r"|things (?:to avoid|not)|must not|no-?gos?|bad\b|wrong\b|out of scope|ask (?:first|before)|❌|🚫|niemals|nie\b"
    r"|nicht|verboten|vermeide|jamais|ne pas|à éviter|nunca|evitar|禁止|不要)",
    re.IGNORECASE,
)

NOW: Final = re.compile(
    r"\b(?:is|are|looks?|still|seems?) (?:\w+ )?(?:down|red|broken|flaky|failing|offline|degraded|stuck|green"
    r"|slow)\b(?! (?:when|if|unless|whenever|until|by default|for|in|on))|\bi(?:'ll| will|'m going to"
    r"| am going to) (?:\w+ ){0,2}(?:look|check|try|fix|push|do|send|ask|write|finish|take|start|get back|continue"
    r"|rebase|investigate|review|see|have|add|update|be)\b|\bi(?:'m| am) (?:\w+ )?(?:restarting|looking|working"
    r"|going|off|out|on it|back|rebasing|investigating|still)\b|\bstill (?:investigating|waiting|missing|working on"
    r"|in progress|pending|open|running)\b|\b(?:be )?back (?:up |online )?in (?:a|an|half|\d)|\bright now\b"
    r"|\bat the moment\b|\bas we speak\b|\bwe are (?:still |currently )?(?:investigating|looking|working on)\b"
    r"|\bwill (?:post|send|share) (?:the|an) (?:next )?update|\b(?:schaue|kümmere|mache) (?:ich |mir )"
    r"|\bje (?:regarde|m'en occupe)|\blo miro\b|\b(?:vou|posso) (?:ver|olhar)\b",
    re.IGNORECASE,
)
_SOON: Final = re.compile(
    r"\b(?:today|tomorrow|tonight|yesterday|this (?:morning|afternoon|evening|week|sprint)|next (?:week|sprint"
    r"|few minutes|ten minutes)|later today|in half an hour|eod|asap|(?:next|on|until|by) (?:monday|tuesday"
    r"|wednesday|thursday|friday)|heute|morgen früh|gestern|demain|aujourd'hui|hier soir|mañana|hoy|ayer|amanhã|hoje"
    r"|ontem|domani|oggi)\b|今日|明日|昨日|今天|明天|昨天",
    re.IGNORECASE,
)

_OF_ME: Final = re.compile(r"\b(?:i|i'm|i'll|my|ich|mir|mich|je|j'ai|moi|yo|eu|io|ik|jag)\b")


def without_description(text: str) -> str:
    """``text`` without the words that sound like a rule and only say how something behaves."""
    return _DESCRIBES.sub(" ", text)


def strong_meanings_of(text: str, hints: Collection[str] = ()) -> frozenset[Meaning]:
    """The meanings that do not rest on a weak signal alone. ``hints`` are a team's own signals, which are strong."""
    return meanings_of(_WEAK.sub(" ", text), hints)


def score_of(statement: Statement, meanings: frozenset[Meaning], kind: str, hints: Collection[str] = ()) -> int:
    """From 0 on; what reaches ``THRESHOLD`` is worth proposing."""
    text = statement.text
    strong = strong_meanings_of(text, hints) & _DECISIVE
    weak = (meanings & _DECISIVE) - strong
    score = min(6, 3 * len(strong)) + min(2, len(weak)) + (Meaning.REASON in meanings)
    if HEADINGS.get(statement.heading):
        score += HEADING_SCORE
    ordered = bool(ORDER.search(text))
    score += 2 if ordered else bool(_SOFT_ORDER.search(text))
    if kind == "rules_file" and IMPERATIVE.match(text):
        score += 2 if statement.bullet or Meaning.RULE in meanings else 1
    if _CONFIRMED.match(text) or PASSIVE_DECISION.search(text):
        score += 3
    if OWNER_OF.search(text):
        score += 3
    if _CONTRASTS.search(text) and (Meaning.REASON in meanings or ordered or _SOFT_ORDER.search(text)):
        score += 1
    if ORIGIN.search(text) and (Meaning.REASON in meanings or ordered or _SOFT_ORDER.search(text)):
        score += 1
    figures = len(MEASURE.findall(text))
    if figures and COMPARES.search(text):
        score += 3
    elif figures > 1:
        score += 1
    if kind == "incident" and weak | strong:
        score += 1
    if kind == "document" and not strong & _STATED and not _stands_out(statement):
        score -= 2
    score -= 4 * bool(_HEDGE.search(text)) + 3 * bool(_ASKS.search(text))
    return max(score, 0)


def _stands_out(statement: Statement) -> bool:
    """Whether a sentence of a document is more than description: a team speaks, it orders, or it stands apart."""
    text = statement.text
    apart = statement.bullet or statement.heading in HEADINGS
    return apart or bool(_FOR_A_TEAM.search(text) or IMPERATIVE.match(text) or ORIGIN.search(text))


def is_transient(text: str, meanings: frozenset[Meaning], score: int) -> bool:
    """Whether ``text`` says how things are at the moment, or what somebody is about to do."""
    lasting = meanings & {Meaning.DECISION, Meaning.REJECTION, Meaning.OWNERSHIP, Meaning.CAUSE, Meaning.REPLACEMENT}
    of_me = bool(_OF_ME.search(folded(text)))
    if NOW.search(text) and (of_me or not lasting or score < THRESHOLD):
        return True
    return bool(_SOON.search(text)) and (of_me or not lasting)
