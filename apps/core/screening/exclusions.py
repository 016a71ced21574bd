"""What must not be remembered, whoever found it: facts about individual engineers, and how things are at the moment.

In raw material it is refused. A model is told to leave both out and now and then does not. What stands here finds what
is certainly one or the other, and nothing else: a fact that is refused wrongly is lost, one that is let through is seen
by a reviewer. In a proposal it is flagged, since somebody meant it. Who owns what is for teams; what somebody decided
is a decision, whoever it was.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from apps.core.screening.people import PERSON, TEAMS, People, impersonal
from apps.core.screening.signals import Meaning, meanings_of

INDIVIDUALS: Final = "individuals"
TRANSIENT: Final = "transient-state"
EXCLUSIONS: Final = frozenset({INDIVIDUALS, TRANSIENT})
REASONS: Final = {
    INDIVIDUALS: "It is about an individual; only teams and what they own are remembered (individuals).",
    TRANSIENT: "It says how things are at the moment and will not be true next week (transient-state).",
}


def exclusion_of(content: str, people: People, in_force: Collection[str]) -> str | None:
    """The slug of the exclusion that ``content`` falls under, of those in force."""
    if INDIVIDUALS in in_force and is_about_an_individual(content, people):
        return INDIVIDUALS
    if TRANSIENT in in_force and is_of_the_moment(content):
        return TRANSIENT
    return None


SEEMS: Final = {
    INDIVIDUALS: "It seems to be about an individual; only teams and what they own are remembered.",
    TRANSIENT: "It seems to say how things are at the moment, which will not be true next week.",
}


def without_people(content: str, people: People) -> str:
    """Its wording without the persons in it."""
    return impersonal(people.marked(content))


# --- individuals -------------------------------------------------------------------------------------------

_ADVERBS: Final = (
    r"(?:(?:\w+ly|a|an|the|too|so|very|really|quite|rather|always|often|never|usually|just|still|also|not|currently|now"
    r"|a bit|sehr|zu|oft|immer|meist|gerade|noch|nicht|eher|très|trop|souvent|toujours|muy|siempre|muito|sempre) ){0,3}"
)
# What is said of people alone, whatever the name in front of it: no system is on leave or bad at reviews.
_OF_PEOPLE: Final = (
    r"(?:(?:slow|late|bad|good|great|terrible|poor|weak|strong|careless|thorough|reliable|unreliable|fast|quick"
    r"|sloppy|best|worst)"
    r" (?:at|with|in) (?:\w+ ){0,2}?(?:reviews?|reviewing|estimat\w+|deadlines|meetings|people|communicat\w+"
    r"|testing|docs"
    r"|documentation|writing \w+|debugging|code reviews?|refactoring|planning|answering|responding|replying)"
    r"|(?:lazy|careless|incompetent|sloppy|rude|arrogant|overworked|burnt? ?out|burned out|pregnant|inexperienced"
    r"|stressed|sick"
    r"|ill|unmotivated|talented|brilliant|stupid|moody|quitting|underpaid|overpaid|unreliable in reviews)\b"
    r"|(?:on|back from|away on) (?:\w+ )?(?:leave|vacation|holidays?|pto|sabbatical|parental leave|sick leave)\b"
    r"|out of (?:the )?office\b|off (?:sick|today|on (?:mondays?|tuesdays?|wednesdays?|thursdays?|fridays?))"
    r"|leaving (?:the )?(?:company|team|firm)\b|looking for (?:a|another) (?:new )?job\b"
    r"|(?:langsam|schlecht|gut|schludrig|schnell) (?:bei|mit|im) (?:\w+ )?(?:reviews?|code-reviews?|abgaben"
    r"|terminen|schätzungen)"
    r"|(?:faul|schlampig|unzuverlässig|inkompetent|überfordert|schwanger|krank|arrogant|unmotiviert)\b"
    r"|(?:im urlaub|in elternzeit|krankgeschrieben)\b"
    r"|(?:lente?|mauvaise?|bonne?) (?:en|pour les|dans les) (?:revues?|reviews?)|paresseu(?:x|se)\b|en (?:vacances"
    r"|congé)\b"
    r"|(?:lent[oa]|mal[oa]|buen[oa]) (?:en|con) las (?:revisiones|reviews)|perezos[oa]\b|de vacaciones\b|de férias\b)"
)
_IS: Final = (
    r"(?:is|was|has been|seems|gets|are|were|ist|war|wirkt|est|était|semble|es|está|era|é|foi|è|is being|will be"
    r"|keeps being)"
)
_DOES: Final = (
    r"(?:(?:always|never|often|usually|rarely|frequently|regularly|constantly|barely"
    r"|hardly ever) (?:\w+ ){0,2}?(?:forgets?"
    r"|forgot|reviews?|answers?|replies|complains?|argues?|arrives?|responds?|misses|works?|tests?|blocks?|delays"
    r"|approves?"
    r"|breaks the build|leaves|comes|writes? (?:tests|docs|bad|good|sloppy|poor))"
    r"|(?:prefers|likes|loves|hates|dislikes|wants|enjoys|refuses|struggles|panics|forgets|complains|argues"
    r"|procrastinates)"
    r"(?: to\b| with\b| about\b| when\b| that\b|(?= \w+))"
    r"|(?:works|worked) (?:from home|remotely|part[- ]time|on (?:mondays?|fridays?)|slowly|late|too (?:much|slowly))"
    r"|(?:lacks|has (?:no|little|poor|weak|great|strong|excellent)) (?:\w+ )?(?:experience|skills?|motivation"
    r"|discipline|patience)"
    r"|needs? (?:coaching|mentoring|supervision|a raise|to improve|to learn)|(?:deserves|got|asked for) a (?:raise"
    r"|promotion)"
    r"|was (?:fired|laid off|promoted|demoted|hired)|earns\b|quit\b|resigned\b|reviews (?:slowly|late|carelessly|too)"
    r"|knows (?:\w+ ){0,3}best|vergisst|beschwert sich|hasst|bevorzugt|mag keine|préfère|oublie|se plaint|prefiere"
    r"|olvida"
    r"|se queja|prefere|esquece|(?:is|ist) (?:the|der|die) (?:best|worst|slowest|fastest|beste|schlechteste"
    r"|langsamste)\b)"
)
_SOMEBODY: Final = rf"{PERSON}(?:(?:,| and| und| et| y) {PERSON})*(?: [A-Z][\w.'-]{{1,30}})?"
# A person by their work: `the new backend lead`, `our intern`.
_BY_WORK: Final = (
    r"\b(?:the|our|my|that|this|der|die|unser|unsere|le|la|el) (?:[\w-]+ ){0,3}?(?:developers?|engineers?|interns?"
    r"|colleagues?"
    r"|juniors?|seniors?|contractors?|freelancers?|tech lead|team lead|lead|manager|cto|ceo|architect|designer"
    r"|tester|reviewer"
    r"|maintainer|dev|entwickler\w*|kolleg\w+|praktikant\w*|chef\w*|développeu\w+|collègue|desarrollador\w*"
    r"|compañer\w+)"
)
_NAMED: Final = re.compile(rf"{_SOMEBODY} (?:(?:{_IS}) {_ADVERBS}{_OF_PEOPLE}|{_DOES})", re.IGNORECASE)
_NAMED_JUDGED: Final = re.compile(
    rf"{_SOMEBODY} (?:{_IS}) {_ADVERBS}(?:late|slow|lazy|weak|weakest|difficult|bad|worst|incompetent|junior|smart"
    r"|available|unavailable|away|langsam|lent|lente|lento|lenta|off)(?: (?:at|with|in|on|again|today|this week"
    r"|until|bei|mit"
    r"|en|con)\b|[.!,;]|$)",
    re.IGNORECASE,
)
# Of whom this is said is a person, known by name or not; much else may be slow, lazy or good at reviews.
_CALLED: Final = re.compile(
    rf"(?:^|[.!?;:,] |\b(?:that|because|and|but|dass|weil"
    rf"|und) )[A-ZÀ-Ý][\w'’-]{{1,30}}(?: [A-ZÀ-Ý][\w'’-]{{1,30}})? (?:{_IS}) "
    r"(?:currently |now |still |gerade |noch )?(?:(?:on|back from) (?:\w+ )?(?:leave|vacation|holiday|pto"
    r"|sabbatical)\b|pregnant\b"
    r"|off sick\b|burnt? ?out\b|quitting\b|leaving the (?:company|team|firm)\b|im urlaub\b|in elternzeit\b"
    r"|krankgeschrieben\b"
    r"|en congé\b|de vacaciones\b|de férias\b)"
)
_WORKER: Final = re.compile(rf"{_BY_WORK} (?:{_IS}) {_ADVERBS}{_OF_PEOPLE}", re.IGNORECASE)
# In other languages than English these also stand for things.
_PRONOUN: Final = re.compile(
    rf"\b(?:(?:he|she|er|sie|il|elle) (?:{_IS}) {_ADVERBS}{_OF_PEOPLE}|(?:he|she) {_DOES})", re.IGNORECASE
)
_OWNS: Final = re.compile(
    rf"{_SOMEBODY}(?:'s|’s)? (?:(?:alone|personally|solely) )?(?:owns|maintains|is (?:the )?(?:only |sole |current "
    rf"|main )?(?:owner"
    rf"|maintainer|responsible|in charge|contact|point of contact|expert|go-to)|ist (?:der |die )?(?:zuständig"
    rf"|verantwortlich"
    rf"|ansprechpartner\w*|eigentümer\w*)|est (?:le |la )?responsable|es (?:el |la )?responsable)"
    rf"|\b(?:owned|maintained|run) (?:solely |only )?by {_SOMEBODY}(?=[\s.,;:!)]|$)"
    rf"|\bbelongs to {_SOMEBODY}(?=[.,;:!)]|$)"
    rf"|\b(?:owner|maintainer|expert|contact|code owner|verantwortlich|zuständig|responsable|eigentümer) (?:of|for"
    rf"|für|von|de"
    rf"|du|del) [^.;:]{{1,80}} (?:is|ist|est|es|:) {_SOMEBODY}(?=[\s.,;:!)]|$)"
    rf"|\b(?:ask|talk to|speak to|ping|contact|frag|fragt|sprich mit) {_SOMEBODY} (?:about|for|if|when|before|wegen"
    rf"|zu)\b",
    re.IGNORECASE,
)
# A language, a product or a place that is called like a person.
_NOT_A_PERSON: Final = re.compile(
    r"\b(?:Julia|Ada|Max|Oscar|Felix|Charlotte|Alexa|Siri|Victoria|Georgia|Paris|Maya|Eva|Leo|Frank|Will|Mark|Roman"
    r"|Julian|Adrian"
    r"|Ruth|Alan)\b(?= (?:code|arrays?|packages?|compil\w+|kernels?|scripts?|\d|runtime|programs?|theme|service"
    r"|cluster|server|job"
    r"|bot|API|SDK|is (?:a |the |good |fast |slow |used |compiled|too slow)))"
)


def is_about_an_individual(content: str, people: People) -> bool:
    """Whether it judges a person, tells their habits or whereabouts, or makes one the owner of something."""
    marked = people.marked(_NOT_A_PERSON.sub(lambda found: found[0].lower(), content))
    if _WORKER.search(content) or _PRONOUN.search(content):
        return True
    if PERSON in marked and (_NAMED.search(marked) or _NAMED_JUDGED.search(marked)):
        return True
    if PERSON in marked and _OWNS.search(marked) and not TEAMS.search(marked):
        return True
    return bool(_CALLED.search(content)) and not TEAMS.search(content)


# --- the moment --------------------------------------------------------------------------------------------

_LASTING: Final = frozenset(
    {
        *(Meaning.DECISION, Meaning.REJECTION, Meaning.REPLACEMENT, Meaning.OWNERSHIP),
        *(Meaning.CAUSE, Meaning.RULE, Meaning.REASON),
    }
)
_NOW: Final = (
    r"(?:right now|at the moment|at present|as we speak|currently|for now|still|today|tonight|this (?:morning"
    r"|afternoon|evening"
    r"|week)|since (?:this morning|yesterday|\d{1,2}:\d\d)|again|gerade|im moment|momentan|derzeit|aktuell|heute"
    r"|noch|en ce moment"
    r"|actuellement|aujourd'hui|ahora mismo|en este momento|hoy|actualmente|no momento|agora|hoje|oggi|al momento)"
)
_STATE: Final = (
    r"(?:red|green|down|broken|failing|failed|flaky|offline|stuck|degraded|unreachable|unavailable|back up|up again"
    r"|out of disk"
    r"|blocked|frozen|on fire|rot|grün|kaputt|rouge|cassée?|en panne|ca[ií]d[oa]s?|rot[oa]s?|quebrad[oa]|fora do ar"
    r"|giù)"
)
_BE: Final = r"(?:is|are|was|were|looks?|seems?|remains?|stays?|has been|ist|sind|est|sont|está|están|es|é|estão|è)"
_THING: Final = (
    r"(?:ci|cd|ci/cd|(?:the )?(?:[\w-]+ ){0,2}(?:build|builds|pipeline|pipelines|main|master|trunk|staging|prod"
    r"|production|runner"
    r"|runners|deployment|deploys?|tests?|suite|cluster|database|db|server|site|website|api|service|registry|vpn"
    r"|environment|branch"
    r"|release|job|jobs|queue|gateway)|die pipeline|der build|la (?:ci|build|pipeline)|el (?:build|pipeline)|o build)"
)
# The whole statement: nobody says more than how it is.
_ONLY_STATE: Final = re.compile(
    rf"(?:{_NOW},? )?{_THING}(?: (?:on|of|in|for) [\w/.-]{{1,40}})? {_BE} (?:{_NOW} )?{_STATE}(?: (?:{_NOW}"
    rf"|and .{{1,60}}))?"
    rf"(?:,? {_NOW})?[.!]*",
    re.IGNORECASE,
)
# Within more: a state and that it is so now, side by side.
_STATE_NOW: Final = re.compile(
    rf"\b{_BE} (?:{_NOW} )?{_STATE}(?: \w+)? {_NOW}\b|\b{_BE} {_NOW} {_STATE}\b|\b(?:right now|at the moment|today"
    rf"|currently|gerade"
    rf"|momentan),? {_THING} {_BE} {_STATE}\b",
    re.IGNORECASE,
)
_SOON: Final = (
    r"(?:today|tomorrow|tonight|this (?:morning|afternoon|evening|week|sprint)|next (?:week|sprint)|later today"
    r"|by (?:eod|monday"
    r"|tuesday|wednesday|thursday|friday)|(?:on|until) (?:monday|tuesday|wednesday|thursday|friday)|in (?:an?"
    r"|half an|\d{1,2})"
    r" (?:hours?|minutes?)|right now|currently|at the moment|heute|morgen|nächste woche|gerade|demain|aujourd'hui"
    r"|mañana|hoy|amanhã"
    r"|hoje|domani|oggi)"
)
_PROGRESS: Final = (
    r"(?:(?:is|are|am|'m|'re|was) (?:currently |still |now |just )?(?:working on|investigating|looking (?:at|into)"
    r"|rebasing|deploying"
    r"|restarting|waiting (?:for|on)|being (?:investigated|deployed|rolled out|worked on|reviewed|tested)"
    r"|in progress|in review|under way"
    r"|underway)|will (?:be )?(?:look|check|fix|deploy|release|merge|push|send|finish|investigate|continue|review"
    r"|rebase|restart"
    r"|deployed|released|merged|finished|rolled out)\w*|is going to \w+|goes out|arbeitet an|wird \w+ (?:deployt"
    r"|gemergt|ausgerollt)"
    r"|travaille sur|está trabajando en)"
)
_GOING_ON: Final = re.compile(
    rf"\b{_PROGRESS}\b[^.!?]{{0,120}}\b{_SOON}\b|\b{_SOON}\b[^.!?]{{0,80}}\b{_PROGRESS}\b"
    rf"|\b(?:still )?(?:in progress|under way"
    rf"|underway)[.!]*$",
    re.IGNORECASE,
)
_WHATEVER: Final = re.compile(
    r"\b(?:when|whenever|if|unless|until|every|each|wenn|falls|sobald|quand|si|cuando|se)\b", re.I
)


def is_of_the_moment(content: str) -> bool:
    """Whether it only says how things are now, or what is being done about them."""
    text = " ".join(content.split())
    if _ONLY_STATE.fullmatch(text):
        return True
    if _STATE_NOW.search(text):
        text = _UNTIL_IT_IS_OVER.sub(" ", text)
    if _WHATEVER.search(text) or meanings_of(_MEANT_FOR_NOW.sub(" ", text)) & _LASTING:
        return False
    return bool(_STATE_NOW.search(text) or _GOING_ON.search(text))


# Why something is so today, and that one waits for its end: no decision that outlives it.
_UNTIL_IT_IS_OVER: Final = re.compile(
    r"\b(?:because|since|as|due to|weil|da|parce que|porque)\b[^.;!?]{0,120}?\b(?:this"
    r" (?:morning|afternoon|evening|week)|today|tonight|last night|yesterday"
    r"|an hour ago|just now|minutes ago|heute|gestern|ce matin|hoy|hoje)\b"
    r"|\b(?:we|they|the team|wir) (?:have )?(?:decided|agreed|chose|are going|will|want|haben entschieden)(?: to)? "
    r"(?:just )?(?:wait|hold off|hold on|pause|postpone|retry later|try again|look again|watch|monitor"
    r"|restart|see|sit it out)\b(?! for (?:a|an|the|every|each) )[^.;!?]{0,60}",
    re.IGNORECASE,
)
# Words that would be signs of something lasting, were they not of what is going on.
_MEANT_FOR_NOW: Final = re.compile(
    rf"\b(?:{_NOW}|migrations?|outages?|incidents?|regressions?|leaks?|broken|broke)\b", re.IGNORECASE
)
