"""People in a text: who is named is found so that the name can be left out, and what is said about one is refused."""

from __future__ import annotations

import re
from typing import Final

_JUDGED: Final = (
    r"(?:(?:is|was|are|seems?|has been|can be|gets) (?:\w+ly )?(?:a |an |the |too |so |very |really |always |often "
    r"|never |usually |just )*(?:late|slow|lazy|weak(?:est)?|careless|unreliable|difficult|bad|good|great|worst|best"
    r"|incompetent|junior|sloppy|brilliant|rude|arrogant|overworked|burnt|burned|sick|ill|pregnant|quitting|leaving"
    r"|smart|stupid|inexperienced|stressed|available|unavailable|away|on (?:\w+ )?(?:leave|vacation|holidays?|pto"
    r"|sick)|out of office|off)\b|(?:always|never|often|usually|keeps|hates|likes|loves|refuses|struggles|panics"
    r"|forgets|complains|prefers|argues|ignores|barely|rarely|cannot|can't|doesn't|does not|should not be|knows"
    r"|lacks)\b)"
)
_PRONOUN_JUDGED: Final = re.compile(
    rf"\b(?:he|she) {_JUDGED}|\b(?:assign|ask|tell|blame|give) (?:him|her)\b", re.IGNORECASE
)
TEAMS: Final = re.compile(
    r"\b(?:team|squad|guild|group|department|chapter|crew|tribe|unit|platform|ops|engineering|office|support|equipo"
    r"|équipe|equipe|abteilung|dienst)\b|チーム|团队|團隊",
    re.IGNORECASE,
)

_GIVEN_NAMES: Final = """
    Aaron Abdul Adam Adrian Agnes Ahmed Aisha Akira Alan Alberto Alejandro Alex Alexander Alexandra Alexei Alice
    Alina Amanda Amelia Amir Amy Ana Anastasia Andrea Andreas Andrei Andrew Andy Angela Anil Anita Anja Anna Anne
    Annika Anton Antonio Arjun Arthur Astrid Barbara Bastian Beatrice Ben Benjamin Bernd Bianca Birgit Bjorn Bob
    Brian Camille Carla Carlos Carmen Carol Caroline Catherine Charlotte Chiara Chloe Chris Christian Christina
    Christine Christoph Claire Clara Claudia Daniel Daniela David Deepak Denis Diana Diego Dieter Dmitri Dominik
    Dorothea Eduardo Elena Elias Elif Elisabeth Elizabeth Ella Emil Emily Emma Erik Erika Esther Eva Fabian Fatima
    Felix Fernando Finn Florian Francesca Francesco Frank Franz Fritz Gabriel Gabriela Georg George Gerhard Giulia
    Greta Guido Gustavo Hanna Hannah Hanne Hans Hassan Heike Heinz Helen Helena Henrik Henry Hiroshi Ian Igor Ilse
    Ines Ingrid Irina Isabel Isabella Ivan Jack Jacob James Jana Jane Javier Jean Jennifer Jens Jessica Joanna Joao
    Johan Johanna Johannes John Jonas Jonathan Jorge Jose Josef Joseph Juan Julia Julian Julie Jürgen Kai Karen
    Karin Karl Karolina Katharina Katja Katrin Keiko Kenji Kevin Klaus Konstantin Lara Lars Laura Lea Lena Leo Leon
    Leonie Lina Linda Lisa Lorenzo Louis Louise Luca Lucas Lucia Luis Luisa Lukas Magdalena Manuel Marc Marcel Marco
    Marcus Maria Marie Marina Mario Markus Marta Martha Martin Martina Mateo Mathias Matthew Matthias Maya Mehmet
    Melanie Michael Michelle Miguel Mike Mila Mira Miriam Mohamed Mohammed Monika Nadia Nadine Natalia Natalie
    Nicolas Nicole Niels Nikita Nils Nina Noah Olga Oliver Olivia Oscar Pablo Paola Patricia Patrick Paul Paula
    Pedro Peter Petra Philip Philipp Pierre Priya Rachel Rafael Rahul Rainer Ralf Raj Ravi Rebecca Renate Ricardo
    Richard Robert Roberto Roman Ronja Ruth Ryan Sabine Sam Samuel Sandra Sanjay Sara Sarah Sebastian Sergei Silke
    Silvia Simon Sofia Sophia Sophie Stefan Stefanie Stephan Stephen Steve Susan Susanne Sven Svenja Takashi Tanja
    Tatiana Thomas Tim Tobias Tom Tomas Tomás Uwe Valentina Veronika Victor Victoria Viktor Vincent Vladimir Walter
    Werner Wolfgang Xavier Yan Yuki Yusuf Yves Zoe
"""
_NAMES: Final = frozenset(_GIVEN_NAMES.split())
_MENTION: Final = re.compile(r"<@[^<>\s]{1,60}>|(?<![\w.+/-])@[\w](?:[\w./-]{0,60}\w)?")
_CAPITALISED: Final = re.compile(r"(?<!\w)[^\W\d_a-z][\w-]{1,30}")
_WORD: Final = re.compile(r"(?<!\w)[^\W\d_][\w-]{1,30}")
# Speakers that are no persons, and names that are common words.
_NOT_NAMES: Final = """
    user assistant summary unreadable interviewer interviewee architect engineer speaker head agent bot moderator
    team lead manager developer customer support reviewer author will may mark max art bill grant chase sue pat
    dean drew rob rose somebody
"""
_ROLES: Final = frozenset(_NOT_NAMES.split())
_SAID: Final = (
    r"(?:decided|chose|agreed|proposed|confirmed|found|found out|suggested|picked|settled|rejected|tried|measured"
    r"|discovered|figured out|wants|wanted|noticed|ruled|insisted|asked|explained|pointed out)"
)
PERSON: Final = "\0"  # stands for a person while the sentence is reworded
_ACTED: Final = re.compile(rf"{PERSON}(?:(?:,| and| und) {PERSON})* (?:and I )?(?:have |has )?(?={_SAID}\b)")
_I_ACTED: Final = re.compile(rf"\bI (?:have |had )?(?={_SAID}\b|benchmarked\b|looked\b|went\b|measured\b)")
_ATTRIBUTED: Final = re.compile(
    rf"[ ,(]{{0,3}}\b(?:as|per|cc|thanks to|thanks|according to|by|with|from|for|like) {PERSON}(?:(?:,"
    rf"| and) {PERSON})*(?: (?:said|says|suggested|noted|wrote|mentioned|pointed out))?[),]?(?=[\s.,;:!]|$)"
)
_ADDRESSED: Final = re.compile(
    rf"^(?:{PERSON}[,:] ?|{PERSON} (?=(?:please|can|could|do not|don't|never|we|the|this|that|it|in|for)\b))+"
    rf"|,? ?@?{PERSON}$"
)


class People:
    """Who is known by name in a text: who speaks, who is mentioned, and common given names."""

    def __init__(self) -> None:
        self._spoke: set[str] = set()
        self._in_lower_case = False

    def hear(self, speaker: str) -> None:
        words = speaker.lstrip("@").split()
        if words and words[0].casefold() not in _ROLES and not TEAMS.search(speaker) and len(self._spoke) < 1000:
            self._spoke.update((words[0], words[0].capitalize(), *words[1:2]))
            self._in_lower_case = self._in_lower_case or words[0].islower()

    def marked(self, text: str) -> str:
        """``text`` with a mark in the place of each person; mentions of teams stay, as their name."""
        if "`" not in text:
            return self._marked(text)
        pieces = text.split("`")
        return "`".join(piece if code % 2 else self._marked(piece) for code, piece in enumerate(pieces))

    def _marked(self, text: str) -> str:
        text = _MENTION.sub(_mention, text)
        return (_WORD if self._in_lower_case else _CAPITALISED).sub(self._name, text)

    def _name(self, found: re.Match[str]) -> str:
        word = found[0]
        known = word in self._spoke or word in _NAMES
        return PERSON if known else word


def _mention(found: re.Match[str]) -> str:
    name = found[0].strip("<@>")
    return name if "/" in name or TEAMS.search(re.sub(r"[-_.]", " ", name)) else PERSON


_MARKS: Final = re.compile(rf"{PERSON}(?: {PERSON})+")
_BY_PERSON: Final = re.compile(
    rf"{PERSON}(?:'s|’s)? (?:\w+ )?(?:owns|maintains|is (?:the )?(?:owner|maintainer|responsible|in charge)"
    rf"|{_JUDGED})|(?:owned|maintained|run) by {PERSON}|belongs to {PERSON}|\b(?:ask|talk to|speak to"
    rf"|ping) {PERSON} (?:about|for|if|when)"
    rf"|\b(?:owner|maintainer|contact|responsible|eigentümer|zuständig|responsable) (?:of|for|von|für|de|du"
    rf"|del) [^.;:!?]{{1,80}}?"
    rf"(?: (?:is|ist|est|es)|:) {PERSON}",
    re.IGNORECASE,
)


def impersonal(marked: str) -> str:
    """The wording of ``marked`` (see ``People.marked``) without the persons in it."""
    text = _MARKS.sub(PERSON, marked)
    text = _ACTED.sub("The team ", text)
    text = _I_ACTED.sub("We ", text)
    text = _ADDRESSED.sub("", _ATTRIBUTED.sub("", text))
    text = text.replace(f"{PERSON}'s", "a colleague's").replace(PERSON, "a colleague")
    return " ".join(text.split()).strip(" ,;")


def is_about_a_person(marked: str) -> bool:
    """Whether it judges a person, says what a person does or where, or makes one the owner of something."""
    if _PRONOUN_JUDGED.search(marked):
        return True
    return bool(_BY_PERSON.search(_MARKS.sub(PERSON, marked))) and not TEAMS.search(marked)
