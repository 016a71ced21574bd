"""What is certainly not worth a model call. Pure: no model, no database, linear in the length of the text.

A false keep costs one cheap call and a false drop loses knowledge for ever, so every rule looks at the whole message
and lets it live when in doubt.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from apps.capture.splitting import SPEAKER, speaker_of
from apps.core.screening.signals import folded, has_signal

BOT_NOISE: Final = "bot_noise"
BARE_LINK: Final = "bare_link"
ACKNOWLEDGEMENT: Final = "acknowledgement"
NOTHING_SAID: Final = "nothing_said"
TOO_SHORT: Final = "too_short"

MIN_LENGTH: Final = 40


@dataclass(frozen=True, slots=True)
class Drop:
    """``rule`` names the rule that dropped a text; ``reason`` is the sentence that reviewers read."""

    rule: str
    reason: str


def prefilter(text: str, *, min_length: int = MIN_LENGTH, extra_signals: Collection[str] = ()) -> Drop | None:
    """Why ``text`` is not worth extracting from, or ``None`` if it is.

    ``min_length`` counts characters without code blocks, quotes, mentions and links; a Chinese or Japanese character
    counts as three. ``extra_signals`` are a team's own decision signals, in the notation of ``signals``: with one of
    them, as with the known ones, a short text is kept.
    """
    if len(text) <= _BOT_LIMIT and (notice := _notice(text)):
        return Drop(BOT_NOISE, f"This is an automatic notice ({notice}), which says nothing that outlives it.")
    prose = _prose(text)
    said = _without_links(prose)
    words = _WORDLESS.sub(" ", _without_code(said)).strip()
    if not words:
        return _without_words(text, prose, said)
    if acknowledges(words):
        return Drop(ACKNOWLEDGEMENT, "The whole message only acknowledges another one.")
    shown = " ".join(said.split())
    length = _length(shown, min_length)
    if length < min_length and not has_signal(shown, extra_signals):
        return Drop(
            TOO_SHORT,
            f"The text has {length} characters beside code, quotes, mentions and links, which is less than"
            f" {min_length}, and no word in it signals a decision.",
        )
    return None


def _without_words(text: str, prose: str, said: str) -> Drop:
    if "![" in text and not said.strip():
        return Drop(BOT_NOISE, "This is an automatic notice (badges), which says nothing that outlives it.")
    if said != prose:
        return Drop(BARE_LINK, "The text is only links, references or mentions.")
    if prose.strip() and "`" not in prose:
        return Drop(ACKNOWLEDGEMENT, "The whole message is a reaction without words.")
    return Drop(NOTHING_SAID, "Nothing is left of the text without code, quotes of others and mentions.")


# --- What the author says ----------------------------------------------------------------------------------

_QUOTE: Final = re.compile(r"^[ \t]{0,3}(?:>|&gt;)(?![ \t]?[\d=])[^\n]*", re.MULTILINE)
# A note set off by its own author, as Markdown writes it: no quote of anybody else.
_CALLOUT: Final = re.compile(r"^[ \t]{0,3}> ?(?:\[![A-Za-z]|\*\*|⚠|ℹ|💡)", re.MULTILINE)
_INLINE_CODE: Final = re.compile(r"`[^`\n]+`")
_MENTION: Final = re.compile(
    r"<[@!#][^<>\s|]{1,40}(?:\|[^<>\n]{0,80})?>|(?<![\w.+/-])@[\w](?:[\w./-]{0,60}\w)?|(?<!\w)~[a-z0-9][\w-]{0,40}"
)
_IMAGE: Final = re.compile(r"(?:\[[ \t]?)?!\[[^\[\]\n]{0,200}\]\([^()\n]{0,1000}\)(?:[ \t]?\]\([^()\n]{0,1000}\))?")
_LINK: Final = re.compile(
    r"<(?:https?|ftp|mailto):[^<>|\s]*(?:\|[^<>\n]{0,200})?>|(?:https?|ftp)://[^\s<>|)\]]+|(?<![\w.])www\.[^\s<>"
    r"|)\]]+|(?<![\w&])[#!]\d{1,9}\b|\b[A-Z][A-Z0-9]{1,9}-\d{1,7}\b|\b(?=[0-9a-f]{0,39}\d)[0-9a-f]{7,40}\b"
)
_EMOJI_CODE: Final = re.compile(r":[a-z0-9_+-]{1,40}:")
_WORDLESS: Final = re.compile(r"[\W_]+")


def _prose(text: str) -> str:
    """``text`` without code blocks, quotes of others, comments, images and mentions."""
    if "```" in text:
        text = _outside(text, "```")
    if "~~~" in text:
        text = _outside(text, "~~~")
    if "<!--" in text:
        text = _without_comments(text)
    if (">" in text or "&gt;" in text) and not _CALLOUT.search(text):
        text = _QUOTE.sub(" ", text)
    if "![" in text:
        text = _IMAGE.sub(" ", text)
    if "@" in text or "<" in text or "~" in text:
        text = _MENTION.sub(" ", text)
    return text


def _outside(text: str, fence: str) -> str:
    """What stands outside of pairs of fences. What follows a fence that is never closed counts as text."""
    pieces = text.split(fence)
    unclosed = [pieces.pop()] if len(pieces) % 2 == 0 else []
    return " ".join(pieces[::2] + unclosed)


def _without_comments(text: str) -> str:
    kept: list[str] = []
    begin = 0
    while (start := text.find("<!--", begin)) >= 0 and (end := text.find("-->", start)) >= 0:
        kept.append(text[begin:start])
        begin = end + 3
    return "".join([*kept, text[begin:]])


def _without_links(text: str) -> str:
    return _LINK.sub(" ", text)


def _without_code(text: str) -> str:
    if "`" in text:
        text = _INLINE_CODE.sub(" ", text)
    return _EMOJI_CODE.sub(" ", text) if ":" in text else text


_WIDE: Final = re.compile("[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
_WIDE_COUNTS: Final = 3


def _length(shown: str, min_length: int) -> int:
    if len(shown) >= min_length or shown.isascii():
        return len(shown)
    return len(shown) + (_WIDE_COUNTS - 1) * len(_WIDE.findall(shown))


# --- Acknowledgements --------------------------------------------------------------------------------------

_ACKNOWLEDGEMENT_LIMIT: Final = 90
_ACKNOWLEDGEMENTS: Final = """
    lgtm, sgtm, wfm, ptal, tyvm, ty, tysm, thx, tnx, thanks, thank you, thanks a lot, thanks a bunch, thanks so much
    ta
    many thanks, thank you very much, thank you so much, thanks everyone, thanks all, thanks again
    thanks for the review
    thanks for the fix, thanks for the quick fix, the quick fix, the fix, the review, the update, for the review
    for the fix, for the quick fix, for the quick review
    for the quick turnaround, for the pr, for the mr, for this, for looking into this, for looking, for catching this
    for the heads up, for the feedback, for the comments, for the explanation, for the update, for letting me know
    cheers, kudos, awesome, great, nice, cool, perfect, excellent, amazing, sweet, neat, wonderful, brilliant
    fantastic
    great work, nice work, good work, great job, nice job, good job, well done, good stuff, nice one, great stuff
    looks good, looks good to me, looks great, looks great to me, looks fine, looks fine to me, fine by me
    fine with me
    good to go, good to merge, ready to merge, works for me, sounds good, sounds good to me, sounds great, all good
    ship it, merge it, go for it, approved, approve, approving, reapproved, re approved, i approve, 1, 100, 1000
    ok, okay, k, kk, yep, yes, yup, yeah, sure, sure thing, of course, absolutely, definitely, exactly, right, correct
    true, indeed, agreed, agree, i agree, totally agree, fully agree, same, same here, me too, same for me, likewise
    makes sense, makes sense to me, that makes sense, fair, fair enough, fair point, good point, got it, gotcha, i see
    understood, roger, copy that, noted, ack, acknowledged, will do, on it, i am on it, im on it, i m on it
    i ll do it
    no problem, no worries, np, nvm, never mind, nevermind, you re welcome, youre welcome, welcome, my pleasure
    anytime
    done, all done, fixed, fixed it, fixed now, resolved, addressed, updated, changed, adjusted, corrected, removed
    added, renamed, rebased, squashed, merged, pushed, reverted, applied, closed, closing, reopened, resolving
    resolving this
    should be fixed, should be fixed now, should be good now, fixed in, resolved in, addressed in, done in, merged in
    fixed in the next push, fixed in the next commit, fixed in next push, fixed in the latest commit, in the next push
    in the next commit, in the latest commit, in the latest push, addressed in the next push, addressed all comments
    done thanks, good catch, nice catch, great catch, good find, good spot, well spotted, my bad, oops, whoops, sorry
    sorry about that, thanks for catching, thanks for spotting, please take another look, another look, take a look
    please review, please take a look, ready for review, ready for another look, bump, ping, gentle ping
    friendly ping
    up, following, subscribing, interested, any update, any updates, any news, wip, tbd, n a, na, nit, typo, lol, haha
    hahaha, hehe, wow, yay, hooray, congrats, congratulations, hi, hello, hey, hi all, hey all, good morning, morning
    good night, bye, see you, brb, afk, back, omw, you re the best, youre the best, you rock, legend, love it
    love this
    no, nope, not yet, maybe, please, now, too, it, this, and, so, for you, to you, here, all, everyone, team, folks
    passt, danke, danke dir, danke schön, dankeschön, danke euch, vielen dank, besten dank, merci, super, prima
    klasse
    alles klar, alles gut, in ordnung, geht klar, sieht gut aus, erledigt, gemacht, mach ich, mache ich, ja, jo, genau
    stimmt, verstanden, gerne, kein problem, guten morgen, moin, schön, gut, behoben, wird gemacht, perfekt
    merci beaucoup, merci bien, d accord, c est fait, c est bon, fait, corrigé, parfait, super merci, oui, ok pour moi
    ça marche, bien vu, très bien, bonjour, entendu, compris
    gracias, muchas gracias, mil gracias, perfecto, hecho, listo, vale, de acuerdo, corregido, arreglado, sí, si
    genial
    bien, muy bien, entendido, buenos días, hola
    obrigado, obrigada, muito obrigado, muito obrigada, valeu, feito, resolvido, corrigido, perfeito, certo, combinado
    beleza, sim, entendi, bom dia, ótimo, show
    grazie, grazie mille, fatto, perfetto, va bene, risolto, sì, certo, capito, ottimo, d accordo
    bedankt, dank je, dank je wel, top, gedaan, prima zo, akkoord, ja hoor, duidelijk, opgelost
    dzięki, dziękuję, zrobione, jasne, gotowe, tak, świetnie, poprawione
    tack, tack så mycket, klart, toppen, fixat, bra, okej
    спасибо, большое спасибо, готово, ок, понял, понятно, исправил, исправлено, хорошо, да, отлично, согласен, принято
    了解, 了解です, 了解しました, 承知しました, 承知です, ありがとう, ありがとうございます, ありがとうございました
    お疲れ様です, お疲れさまです
    修正しました
    対応しました, 確認しました, はい, いいですね, 大丈夫です, よろしくお願いします, 完了, 完了しました, なるほど
    收到, 谢谢, 謝謝, 多谢, 感谢, 好的, 好, 可以, 没问题, 沒問題, 明白, 明白了, 了解了, 已修复, 已修改, 已完成, 完成
    搞定, 赞, 同意, 辛苦了, 是的, 对
    감사합니다, 고맙습니다, 네, 넵, 확인했습니다, 알겠습니다, 완료, 완료했습니다, 수정했습니다, 좋습니다
"""


def _words(text: str) -> tuple[str, ...]:
    return tuple(_WORDLESS.sub(" ", folded(text)).split())


_ACKNOWLEDGING: Final = frozenset(
    _words(phrase) for line in _ACKNOWLEDGEMENTS.split("\n") for phrase in line.split(",") if phrase.strip()
)
_LONGEST: Final = max(map(len, _ACKNOWLEDGING))
# Words that make no acknowledgement by themselves.
_FILLERS: Final = frozenset({("it",), ("this",), ("and",), ("so",), ("for", "you"), ("to", "you"), ("here",), ("now",)})


def acknowledges(text: str) -> bool:
    """Whether all of ``text`` is a row of acknowledgements."""
    if len(text) > _ACKNOWLEDGEMENT_LIMIT:
        return False
    tokens = _words(text)
    reached = {0}
    for end in range(1, len(tokens) + 1):
        starts = (start for start in range(max(0, end - _LONGEST), end) if start in reached)
        if any(tokens[start:end] in _ACKNOWLEDGING for start in starts):
            reached.add(end)
    return len(tokens) in reached and tokens not in _FILLERS


# --- Automatic notices -------------------------------------------------------------------------------------

_BOT_LIMIT: Final = 60_000
_NOTICE_LIMIT: Final = 300
_DECORATION: Final = re.compile(r"(?:[^\w\[(]|\[(?=!)|_)*")

# What only a bot begins a message with, whatever follows.
_OPENINGS: Final = {
    "coverage report": (
        r"\[?codecov\]?(?:\([^()\s]{0,300}\))? report\b",
        r"coverage report(?: for [^\n]{1,60})?\W{0,3}(?:\n|$)",
        r"(?:code )?coverage (?:increased|decreased|remained|changed|dropped)\b[^\n]{0,40}\d%",
        r"(?:patch|project) coverage\b[^\n]{0,40}\d%",
    ),
    "dependency update": (
        r"bumps? (?:the )?\[?[\w@./-]{1,100}\]?(?:\([^()\s]{0,300}\))?(?: and"
        r" \[?[\w@./-]{1,100}\]?(?:\([^()\s]{0,300}\))?)? (?:from \S{1,60} to \S{1,60}|group\b)",
        r"(?:this|the) (?:pr|mr|pull request|merge request) contains the following updates",
        r"ok, i won't notify you",
        r"superseded by [#!]\d+\W{0,3}$",
        r"dependabot (?:will resolve|tried to|can't resolve|couldn't|is rebasing|has stopped)",
        r"renovate (?:will (?:not )?(?:automatically|open|create|rebase)|ignore notification)",
        r"looks like \[?[\w@./-]{1,100}\]?(?:\([^()\s]{0,300}\))? (?:is|are) (?:up-to-date|no longer|updatable)",
        r"edited/blocked notification",
        r"branch automerge failure",
        r"(?:chore|build|fix)\(deps(?:-dev)?\): (?:bump|update)\b[^\n]{0,120}",
        r"snyk has (?:created|found|checked)",
        r"welcome to \[?renovate",
        r"update dependency \S{1,100} to v?\d\S{0,60}",
    ),
    "quality report": (
        r"(?:sonarqube|sonarcloud|sonarqube cloud)\W{0,3}quality gate",
        r"quality gate (?:passed|failed)",
        r"kudos, sonarcloud",
        r"changeset (?:detected|found)",
        r"no changeset(?:s)? found",
        r"size change:",
        r"bundle size report",
        r"size limit report",
        r"lighthouse (?:report|results)",
        r"danger(?:js)? (?:report|results)",
    ),
    "deployment notice": (
        r"deploy preview (?:for|ready)",
        r"(?:the )?latest updates on your projects",
        r"visit the preview url",
        r"deploying \S{1,80} with\W{0,4}(?:nbsp\W{0,4})?(?:cloudflare|netlify|vercel)",
        r"preview (?:is |has been )?(?:ready|deployed|available)",
        r"preview environment (?:is|ready)",
    ),
    "stale notice": (
        r"this (?:issue|pull request|merge request|pr|mr|thread|conversation|discussion) (?:has been|was|will be"
        r"|is) (?:automatically )?(?:marked as stale|automatically closed|automatically locked|locked automatically"
        r"|closed automatically|stale because|closed due to inactivity|being automatically closed)",
        r"this (?:issue|pull request) is stale because",
        r"closing (?:this )?(?:issue|pr)? ?(?:due to|because of) inactivity",
    ),
    "contributor agreement": (
        r"thank you for your submission! we really appreciate it",
        r"cla assistant",
        r"cla check",
        r"all (?:committers|contributors) have signed the cla",
        r"thanks for your pull request! it looks like this may be your first",
    ),
    "merge queue": (
        r"(?:this |the )?(?:pull|merge) request (?:was|has been|is|will be) (?:\w+ ){0,2}(?:to|from|in|by"
        r"|into) (?:the |a )?merge (?:queue|train)",
        r"merge (?:queue|train)\b\W{0,3}(?:position|status|batch|checks|entered|added|removed|started)",
        r"(?:added to|removed from|entered|left|started) (?:the |a )?merge (?:queue|train)",
        r"bors (?:try|r\+)",
        r"build succeeded:?\s*$",
    ),
}
# One line in the words of a machine: counts only if it is all there is and nothing in it signals a decision.
_NOTICES: Final = {
    "deployment notice": (
        r"[\w./-]{1,60} (?:v?\d[\w.+-]{0,40} )?(?:was|has been|is being|is now) (?:deployed|released|rolled out"
        r"|promoted|live|rolled back)(?: (?:to|on|in) [\w-]{1,40})?(?:\W{0,3}(?:took|by|in"
        r"|after)\b[^\n]{0,60})?\W{0,3}$",
        r"(?:deployed|released|published|promoted) [\w./@-]{1,80} (?:v?\d[\w.+-]{0,40} )?to [\w-]{1,40}\W{0,3}$",
    ),
    "alert": (r"\[(?:firing|resolved|alerting|triggered|recovered|no data)(?:[:\s]\d{1,4})?\]",),
    "system note": (
        r"added \d+ (?:new )?commits?\b",
        r"(?:changed|updated) the (?:description|title)\W{0,3}$",
        r"(?:changed|set|removed) (?:the )?(?:milestone|title|target branch|due date|assignee|weight"
        r"|time estimate) (?:to|from)\b",
        r"mentioned in (?:commit|issue|merge request|epic)\b",
        r"(?:assigned|unassigned|reassigned)(?: (?:to|from) @[\w.-]{1,60})?\W{0,3}$",
        r"(?:requested|dismissed|removed) (?:a )?review (?:request )?(?:from|for) @[\w.-]{1,60}",
        r"(?:approved|unapproved|closed|reopened|merged) this (?:merge request|pull request|issue)\W{0,3}$",
        r"marked this (?:merge request|pull request|issue) as \W{0,3}[\w ]{1,30}\W{0,3}$",
        r"(?:enabled|aborted|canceled) (?:the |an )?(?:automatic merge|auto-?merge)\b",
        r"resolved all (?:threads|discussions)\W{0,3}$",
        r"marked the (?:checklist item|task)\b",
        r"(?:added|removed) \W{0,3}[\w:~ -]{1,60} labels?\W{0,3}$",
        r"(?:restored|deleted) (?:the )?source branch\b",
        r"created (?:merge|pull) request [!#]\d",
        r"[\w.'-]{1,40}(?: [\w.'-]{1,40})?(?: has)? (?:joined|left) (?:the (?:channel|conversation|room|workspace"
        r"|meeting|call)|#[\w-]{1,60})\W{0,3}$",
        r"[\w.'-]{1,40}(?: [\w.'-]{1,40})? (?:was (?:added to|removed from) #[\w-]{1,60}|(?:has )?pinned a message"
        r"|(?:has )?uploaded a file)\b",
    ),
    "size label": (r"this (?:pr|mr|pull request|merge request) is size \w{1,4}\b",),
    "reminder": (r"reminder:? [^\n]{1,120} (?:starts|begins|is due|is starting) (?:in \d|at \d|now\W{0,3}$)",),
    "pipeline status": (
        r"(?:the |your )?(?:ci|cd|ci/cd|pipeline|build|job|workflow|run|checks?|tests|test suite|deployment|deploy"
        r"|release|stage|build-and-test|all checks)\b[^\n]{0,80}?\b(?:(?:passed|failed|succeeded|successful"
        r"|completed|canceled|cancelled|skipped)\b|(?:is|are|was|has|has been) (?:finished|started|queued|running"
        r"|green|red|fixed|back to normal)\b)",
    ),
}
# What machines put beside a status.
_MACHINE: Final = (
    r"#\d|\b[0-9a-f]{7,40}\b|https?://|\b(?:in|took|after) \d{1,3} ?[a-z]{1,7}(?: \d{1,2} ?[a-z]{1,7})?\W{0,3}$|·"
)


def _pattern(sorts: dict[str, tuple[str, ...]]) -> re.Pattern[str]:
    groups = (f"(?P<{name.replace(' ', '_')}>{'|'.join(bodies)})" for name, bodies in sorts.items())
    return re.compile("|".join(groups), re.IGNORECASE)


_OPENING: Final = _pattern(_OPENINGS)
_NOTICE: Final = _pattern(_NOTICES)
_MACHINE_WORDS: Final = re.compile(_MACHINE, re.IGNORECASE)
# A person speaks here, even below what a bot begins a message with.
_PERSON: Final = re.compile(
    r"\b(?:we|our team|the team|i) (?:have |had |will )?(?:decided|chose|keep|kept|hold|held|pin|pinned|stay|can't"
    r"|cannot|won't|will not|must|need|agreed|tried|found|do not|don't|should|had to|have to|not)\b|\bdo(?: not"
    r"|n't) merge\b",
    re.IGNORECASE,
)


def _notice(text: str) -> str:
    """What sort of automatic notice ``text`` is, or an empty string."""
    start = _DECORATION.match(text[:_NOTICE_LIMIT]).end()  # type: ignore[union-attr]  # it matches everywhere
    if opening := _OPENING.match(text, start):
        sort = str(opening.lastgroup).replace("_", " ")
        return "" if _has_a_say(sort, text, opening.end()) else sort
    if len(text) - start > _NOTICE_LIMIT and not text.startswith("added", start):
        return ""
    if not (notice := _NOTICE.match(text, start)):
        return ""
    sort = str(notice.lastgroup).replace("_", " ")
    first, _, below = text[notice.end() :].partition("\n")
    if sort == "system note":
        return "" if has_signal(first) or _more_than_commits(below) else sort
    if sort == "pipeline status" and first.strip(" .!") and not _MACHINE_WORDS.search(text):
        return ""
    return "" if below.strip() or has_signal(text) else sort


_WORDED_BY_BOTS: Final = frozenset({"stale notice", "contributor agreement", "merge queue"})
_DEPENDENCY_BOT: Final = re.compile(
    r"dependabot|renovate|release notes|changelog|\]\(https?:|\| Package \|", re.IGNORECASE
)


def _has_a_say(sort: str, text: str, end: int) -> bool:
    """Whether somebody says more in ``text`` than the bot whose words end at ``end``."""
    if _PERSON.search(text, end) or _is_thread(text):
        return True
    if sort in _WORDED_BY_BOTS:
        return False
    if sort == "dependency update":
        return not _DEPENDENCY_BOT.search(text) and has_signal(text[end:])
    return has_signal(text[end:].partition("\n")[0])


def _more_than_commits(below: str) -> bool:
    return any(line.strip() and not _COMMIT_LINE.match(line) for line in below.split("\n"))


_COMMIT_LINE: Final = re.compile(r"\s*(?:[*-] |compare with |[^\w\s])", re.IGNORECASE)


def _is_thread(text: str) -> bool:
    return sum(bool(speaker_of(turn)) for turn in SPEAKER.finditer(text)) >= 2
