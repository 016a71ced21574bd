"""The words by which people decide, rule, explain and own things, by meaning and language.

A trailing ``*`` stands for any ending. Words of Latin, Cyrillic and Korean script count where they begin a word;
Chinese and Japanese ones count anywhere, since these scripts put no spaces between words. Teams add their own in the
same notation.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable
from enum import StrEnum
from functools import lru_cache
from typing import Final, TypeAlias


class Meaning(StrEnum):
    """What a signal says about its sentence."""

    DECISION = "decision"
    REJECTION = "rejection"
    REPLACEMENT = "replacement"
    RULE = "rule"
    REASON = "reason"
    CAUSE = "cause"
    DISCOVERY = "discovery"
    OWNERSHIP = "ownership"
    TERM = "term"


# One line a language: English, German, French, Spanish, Portuguese, Italian, Dutch, Polish, Swedish, Russian,
# Japanese, Chinese (simplified and traditional), Korean.
_LEXICON: Final[dict[Meaning, str]] = {
    Meaning.DECISION: """
        decided, decision*, we decide, we chose, i chose, chose, chosen, we picked, went with, go with, going with,
        settled, settle on, agreed, agreement, consensus, opted, adopt*, standardise*, standardize*, we will use,
        we'll use, we stay, stay on, we stick, stick with, sticking with, we keep, we switched, switched to, moved to,
        moving to, move to, signed off, trade-off*, adr
        entschied*, entscheid*, beschlossen, beschluss*, einigten, geeinigt, festgelegt, wir nehmen, wir bleiben,
        wir setzen auf, vereinbart
        décidé*, décidons, décision*, choisi*, nous avons opté, avons retenu, adopté*, convenu
        decidimos, decidido, decidió, decisión, decisiones, elegimos, elegido, optamos, acordamos, acordado
        decidiu, decidiram, decisão, decisões, escolhemos, escolhido, ficou definido, combinamos
        deciso, decisione, decidiamo, abbiamo scelto, scelto, concordato
        besloten, beslissing*, gekozen, afgesproken, we kiezen
        zdecydowa*, decyzj*, wybra*, ustalili*
        beslutat, beslut*, bestämt, vi valde, enats
        решили, решено, решение, выбрали, договорились
        決定, 決めた, 決まり, 決めま, 採用, 合意, 方針, にします, にしました, 選択
        决定, 決議, 选择, 選擇, 选用, 選用, 采用, 採用, 定为, 商定, 改用, 方案
        결정, 정했, 채택, 합의, 선택
    """,
    Meaning.REJECTION: """
        rejected, turned down, ruled out, won't fix, wontfix, not worth, we tried, i tried, tried and, tried it,
        abandon*, gave up, discarded, dropped, revert*, bring back, bring it back, decided against, decide against,
        stopped using, stop using, moved away, got rid of, get rid of, considered and, did not work, didn't work,
        does not scale, doesn't scale, does not work, doesn't work, we will not, we won't, will not, not an option,
        on purpose, deliberately, anti-pattern*, antipattern*, mistake*, regret*
        verworfen, abgelehnt, verzichten, nicht mehr verwenden, aufgegeben, ausgeschlossen, absichtlich, bewusst nicht
        rejeté*, écarté*, abandonné*, on n'utilise plus, nous n'utilisons plus, volontairement
        descartamos, descartado, descartada, rechaza*, abandonamos, dejamos de usar, a propósito
        descartamos, descartado, rejeita*, abandonamos, paramos de usar, desistimos, de propósito
        scartato, scartata, respinto, abbandonato, rinunciato
        afgewezen, verworpen, laten vallen, afgezien
        odrzuci*, zrezygnow*, porzuci*
        förkasta*, avfärda*, slopa*
        отклонили, отказались, отвергли
        却下, 不採用, 見送り, 見送る, やめた, やめまし, 断念
        否决, 否決, 放弃, 放棄, 不采用, 不採用, 舍弃
        기각, 포기, 채택하지
    """,
    Meaning.REPLACEMENT: """
        instead of, instead, rather than, replaces, replaced, replace, supersede*, deprecat*, no longer, in favour of,
        in favor of, obsolete, sunset*, retire*, phased out, phase out, successor, migrat*
        statt, anstatt, anstelle, stattdessen, ersetzt, ersetzen, abgelöst, veraltet, nicht mehr
        au lieu de, plutôt que, à la place, remplace*, obsolète*, déprécié*, ne plus, n'est plus
        en lugar de, en vez de, reemplaza*, sustitu*, obsoleto*, obsoleta*, ya no
        em vez de, ao invés de, no lugar de, substitu*, descontinua*, obsoleto*, não mais, já não
        invece di, al posto di, sostitui*, deprecat*, non più
        in plaats van, vervang*, verouderd*, niet meer, niet langer
        zamiast, zastąpi*, przestarzał*, już nie
        i stället för, istället för, ersätt*, föråldra*, inte längre
        вместо, заменили, заменяет, устарел*, больше не
        代わりに, 代えて, ではなく, じゃなく, 廃止, 非推奨, 置き換え, 移行
        代替, 取代, 替换, 替換, 而不是, 而非, 弃用, 棄用, 废弃, 廢棄, 不再, 改为, 改為
        대신, 대체, 폐기, 더 이상, 지원 중단
    """,
    Meaning.RULE: """
        never, always, must, mustn't, shall, do not, don't ever, avoid, prefer*, only, require*, forbid*, forbidden,
        not allowed, disallowed, prohibited, mandatory, has to, needs to, should, shouldn't, cannot, may not, ensure,
        convention*, policy, guideline*, rule, rules, by default, at most, at least, no new, no more, every, is off
        limits, off-limits, source of truth
        niemals, nie, immer, muss, müssen, darf nicht, dürfen nicht, darf, vermeide*, verboten, pflicht, soll, sollen,
        sollte, grundsätzlich, ausschließlich, nur noch, regel, vorgabe*, kein, keine
        jamais, toujours, doit, doivent, il faut, ne pas, éviter, évitez, interdit*, obligatoire*, uniquement,
        seulement, règle*
        nunca, jamás, siempre, debe, deben, hay que, evitar, prohibido*, obligatorio*, únicamente, solo se, regla*
        nunca, jamais, sempre, deve, devem, tem que, evitar, proibido*, obrigatório*, somente, apenas, regra*
        mai più, sempre, deve, devono, bisogna, evitare, vietato, obbligatori*, soltanto, regola
        nooit, altijd, moet, moeten, mag niet, mogen niet, vermijd*, verboden, verplicht*, alleen, regel
        nigdy, zawsze, musi, muszą, nie wolno, unika*, zabronion*, tylko, reguła, zasada
        aldrig, alltid, måste, får inte, undvik*, förbjud*, endast, regel
        никогда, всегда, должен, должна, должны, нельзя, запрещ*, только, обязательно, правило
        必ず, 必須, 絶対, しないこと, すること, してはいけない, てはならない, 禁止, べき, 限り, ルール, 原則, 必要
        必须, 必須, 不要, 不得, 不能, 不可, 绝不, 絕不, 禁止, 务必, 務必, 一律, 只能, 应该, 應該
        总是, 总要, 永远, 规定, 規定, 约定, 约束
        절대, 반드시, 항상, 금지, 해야, 하지 마, 하면 안, 필수, 규칙, 원칙
    """,
    Meaning.REASON: """
        because, since, so that, therefore, due to, reason*, otherwise, that is why, that's why, which is why, hence,
        thus, in order to, why we, thanks to
        weil, denn, deshalb, deswegen, daher, damit, sonst, andernfalls, wegen, grund, aufgrund
        parce que, puisque, afin de, afin que, sinon, c'est pourquoi, raison*, à cause de, en raison
        porque, ya que, debido a, por eso, para que, de lo contrario, motivo*, razón
        porque, pois, já que, por isso, para que, senão, caso contrário, motivo*, razão, devido
        perché, poiché, quindi, affinché, altrimenti, motivo, a causa di
        omdat, daarom, zodat, anders, reden*, vanwege
        ponieważ, dlatego, żeby, inaczej, powód, z powodu
        eftersom, därför, så att, annars, anledning*, på grund av
        потому что, поэтому, чтобы, иначе, причина, из-за
        なぜなら, ため, ので, 理由, さもないと, だから
        因为, 因為, 所以, 由于, 由於, 为了, 為了, 否则, 否則, 理由
        때문, 이유, 위해, 않으면, 그래서
    """,
    Meaning.CAUSE: """
        root cause*, caused by, cause was, the cause, cause is, cause:, culprit, turned out, turns out, was due to,
        leak*, race condition*, deadlock*, regression*, post-mortem*, postmortem*, outage*, incident*, the bug,
        fails with, fails when, fails if, fail with, broke, breaks, broken by, stems from, comes from, came from,
        boils down, underlying, corrupt*, ran out of, overflow*, double-count*, the fault, went down
        ursache*, lag an, lag daran, liegt an, liegt daran, schuld war, verursacht*, ausfall*, defekt*, störung*, leck*
        cause racine, la cause, causé*, provoqué*, provient de, venait de, panne*, fuite*
        causa raíz, la causa, causado*, causada*, provocado*, provocaba, se debía, caída, fuga*
        causa raiz, a causa, causado*, causada*, provocado*, queda, vazamento*
        causa principale, la causa, causato*, provocato*, guasto
        oorzaak, veroorzaakt*, kwam door, storing*, lek
        przyczyn*, spowodowa*, awari*, wyciek*
        orsak*, berodde på, avbrott*, läcka*
        причиной, вызвано, сбой*, утечк*
        原因, 根本, 障害, 起因, 漏れ, リーク
        原因, 根因, 根本, 导致, 導致, 故障, 泄漏, 洩漏, 引起
        원인, 장애, 누수
    """,
    Meaning.DISCOVERY: """
        turned out, turns out, found out, found it, found:, we found, i found, discovered, figured out, learned,
        learnt, lesson*, gotcha*, heads up, heads-up, for the record, note that, beware, caveat*, watch out,
        in hindsight, silently, workaround*, pitfall*, trap, surprising*, fyi, benchmark*, measured, profiling
        herausgestellt, stellte sich heraus, herausgefunden, gelernt, achtung, vorsicht, gemessen, stillschweigend
        découvert*, on a trouvé, s'est avéré, s'avère, attention, leçon*, mesuré*
        descubrimos, encontramos, resultó, resulta que, cuidado, lección, lecciones, medimos
        descobrimos, descobri, encontramos, acontece que, cuidado, lição, lições, medimos
        scoperto, abbiamo trovato, è emerso, attenzione, misurato
        ontdekt, bleek, blijkt, gevonden, let op, gemeten
        okazało się, odkry*, uwaga, zmierzy*
        visade sig, upptäckt*, obs, uppmätt*
        оказалось, обнаружили, выяснили, внимание
        判明, 分かりました, わかりました, 注意, 発見, 計測
        发现, 發現, 原来, 原來, 注意, 实测, 教训, 經驗, 经验
        발견, 밝혀, 주의, 알고 보니, 측정
    """,
    Meaning.OWNERSHIP: """
        owns, owned by, own it, we own, owner, owners, ownership, belongs to, belong to, responsible for,
        responsibility, maintained by, maintains, in charge of, accountable, is run by, took over, taken over,
        takes over, handed over to, hand over to, codeowners, code owners, on call for, steward*
        zuständig*, gehört, gehören, verantwortlich*, verantwortung, betreut, übernommen, übernimmt
        responsable*, appartient, appartiennent, propriétaire*, maintenu par, a repris
        responsable*, pertenece*, propietari*, dueño*, mantenido por, se encarga, a cargo de
        responsável, responsáveis, pertence*, donos, dono, mantido por, cuida
        responsabile, appartiene, proprietari*, gestito da, mantenuto da
        verantwoordelijk*, eigenaar, eigendom, beheerd door, beheert
        odpowiada za, odpowiedzialn*, należy do, właściciel*
        ansvarar, ansvarig*, tillhör, ägs av, äger
        отвечает за, отвечают за, ответственн*, принадлежит, владеет
        担当, 所有, 管轄, 責任, 管理して
        负责, 負責, 归属, 歸屬, 所有, 拥有, 維護, 维护
        담당, 소유, 책임, 관리
    """,
    Meaning.TERM: """
        means, meaning, we mean, mean by, stands for, refers to, short for, defined as, definition*, what we call,
        we call, is called, are called, glossary, not to be confused, don't confuse, don't mix, do not mix, aka,
        synonym*
        bedeutet, bedeuten, heißt bei uns, steht für, gemeint, meinen wir, bezeichnet, begriff*, definition*
        signifie, désigne, on entend par, veut dire, définition*, on appelle
        significa, se refiere, queremos decir, definición, llamamos, entendemos por
        significa, refere-se, queremos dizer, definição, chamamos, entende-se
        significa, si intende, intendiamo, definizione, chiamiamo
        betekent, bedoelen we, staat voor, verwijst naar, definitie
        oznacza, rozumiemy, definicj*
        betyder, avser, menar vi, står för, definition*
        означает, имеем в виду, называем, определение
        とは, 意味, 定義, 指します, 指す, 呼び, 略
        指的是, 是指, 意思是, 定义, 定義, 简称, 簡稱, 称为, 稱為
        의미, 뜻, 정의, 가리킵, 부릅
    """,
}

_SPACELESS: Final = re.compile("[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
_KOREAN: Final = re.compile("[\uac00-\ud7af]")
_TYPOGRAPHIC: Final = str.maketrans({"’": "'", "‘": "'", "ʼ": "'", "‐": "-", "‑": "-"})
_NOTHING: Final = "(?!)"
_END: Final = ""
_Tree: TypeAlias = "dict[str, _Tree]"


def folded(text: str) -> str:
    """``text`` as signals are compared: composed, without case, with plain apostrophes and hyphens."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFKC", text).casefold().translate(_TYPOGRAPHIC)


def has_signal(text: str, extra_signals: Collection[str] = ()) -> bool:
    """Whether a decision signal of any language, or one of a team's own, stands in ``text``."""
    return bool(_any_pattern(tuple(extra_signals)).search(folded(text)))


def meanings_of(text: str, extra_signals: Collection[str] = ()) -> frozenset[Meaning]:
    """What the signals in ``text`` say of it. A team's own signals count as decisions."""
    text = folded(text)
    if not _any_pattern(tuple(extra_signals)).search(text):
        return frozenset()
    found = {meaning for meaning, pattern in _patterns().items() if pattern.search(text)}
    if extra_signals and _compiled(tuple(extra_signals)).search(text):
        found.add(Meaning.DECISION)
    return frozenset(found)


@lru_cache(maxsize=1)
def _patterns() -> dict[Meaning, re.Pattern[str]]:
    return {meaning: re.compile(_alternatives(_phrases(words))) for meaning, words in _LEXICON.items()}


@lru_cache(maxsize=64)
def _compiled(signals: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(_alternatives(signals))


@lru_cache(maxsize=64)
def _any_pattern(extra_signals: tuple[str, ...]) -> re.Pattern[str]:
    known = (phrase for words in _LEXICON.values() for phrase in _phrases(words))
    return re.compile(_alternatives((*known, *extra_signals)))


def _phrases(words: str) -> list[str]:
    return [" ".join(phrase.split()) for line in words.split("\n") for phrase in line.split(",") if phrase.strip()]


def _alternatives(signals: Iterable[str]) -> str:
    """A pattern over folded text: a tree by letters, so that few of some thousand phrases are tried at a place."""
    whole: _Tree = {}
    anywhere: _Tree = {}
    for signal in signals:
        text = folded(" ".join(signal.split()))
        stem = text.rstrip("*")
        if not stem:
            continue
        letters = [r"\s{1,4}" if letter == " " else re.escape(letter) for letter in stem]
        if _SPACELESS.search(stem):
            _grow(anywhere, letters)
        elif text.endswith("*") or _KOREAN.search(stem) or not stem[-1].isalnum():
            _grow(whole, letters)
        else:
            _grow(whole, [*letters, r"(?!\w)"])
    patterns = [rf"(?<!\w){_written(whole)}"] if whole else []
    patterns += [_written(anywhere)] if anywhere else []
    return "|".join(patterns) or _NOTHING


def _grow(tree: _Tree, steps: list[str]) -> None:
    for step in steps:
        tree = tree.setdefault(step, {})
    tree[_END] = {}


def _written(tree: _Tree) -> str:
    if not tree or _END in tree:  # what goes on from here is found already
        return ""
    branches = [step + _written(below) for step, below in sorted(tree.items())]
    return branches[0] if len(branches) == 1 else f"(?:{'|'.join(branches)})"
