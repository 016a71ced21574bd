"""Replies as models write them: what is whole is kept, what is not is refused with a reason, and nothing else is."""

from __future__ import annotations

import json
import time
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.capture.extractors.base import ExtractorError, Refused
from apps.capture.extractors.replies import (
    AFTER_A_BREAK,
    NO_CONFIDENCE,
    UnreadableReply,
    read_facts,
    read_items,
)

A = '{"content":"A","type":"bug_fixes"}'
B = '{"content":"B","type":"ownership"}'
BOTH = [("A", "bug_fixes"), ("B", "ownership")]

# What came, and the content and type of each fact that has to come of it.
READABLE = {
    "plain": (f'{{"facts":[{A},{B}]}}', BOTH),
    "nothing durable": ('{"facts":[]}', []),
    "nothing, said with null": ('{"facts": null}', []),
    "nothing, and the last brace is missing": ('{"facts":[]', []),
    "nothing, as a bare list": ("```json\n[]\n```", []),
    "braces in the prose before": (f'Based on {{x}}, here: {{"facts":[{A}]}}', BOTH[:1]),
    "several braces and brackets before": (
        f'In {{a}} {{{{b}}}}, [1] and {{"c": see below}}:\n{{"facts":[{A}]}}',
        BOTH[:1],
    ),
    "a quoted object before": (f'The file holds {{"retries": 3}}, so {{"facts":[{A}]}}', BOTH[:1]),
    "braces in the prose after": (f'{{"facts":[{A}]}}\nI left out {{x}} and "{{y": it is code.', BOTH[:1]),
    "a fence": (f'```json\n{{"facts":[{A},{B}]}}\n```', BOTH),
    "a fence of tildes and prose": (f'Here you are:\n~~~\n{{"facts":[{A}]}}\n~~~\nDone.', BOTH[:1]),
    "an open fence": (f'```\n{{"facts":[{A}]}}', BOTH[:1]),
    "back-ticks in a fact, in a fence": (
        '```json\n{"facts":[{"content":"Run ```make up``` first, never ```\\nnpm```.","type":"tooling_setup"}]}\n```',
        [("Run ```make up``` first, never ```\nnpm```.", "tooling_setup")],
    ),
    "a whole fence in a fact, with raw line breaks": (
        '```json\n{"facts":[{"content":"Use\n```sh\nmake {x}\n```\nhere","type":"tooling_setup"}]}\n```',
        [("Use\n```sh\nmake {x}\n```\nhere", "tooling_setup")],
    ),
    "raw line breaks and tabs": ('{"facts":[{"content":"one\ntwo\tthree","type":"t"}]}', [("one\ntwo\tthree", "t")]),
    "control characters": ('{"facts":[{"content":"o\x01ne\x00 two\x1b[31m","type":"t"}]}', [("one two", "t")]),
    "control characters between": (f'\ufeff{{"facts":\x01[{A}\x00]}}', BOTH[:1]),
    "trailing commas": (f'{{"facts":[{A[:-1]},}},{B},],}}', BOTH),
    "missing commas": (f'{{"facts":[{A.replace(",", " ")}\n{B}]}}', BOTH),
    "doubled commas": (f'{{"facts":[{A},,{B}]}}', BOTH),
    "comments": (f'{{"facts":[ // the first\n{A}, // and "another"\n{B}]}}', BOTH),
    "a lone surrogate": (
        '{"facts":[{"content":"x \\ud83d y","type":"bug_fixes"},' + B + "]}",
        [("x  y", "bug_fixes"), BOTH[1]],
    ),
    "a lone low surrogate": ('{"facts":[{"content":"x\\udc00","type":"t"},' + B + "]}", [("x", "t"), BOTH[1]]),
    "a lone surrogate in a type": ('{"facts":[{"content":"x","type":"t\\ud83d"}]}', [("x", "t")]),
    "a pair of surrogates": ('{"facts":[{"content":"\\ud83d\\ude00","type":"t"}]}', [("😀", "t")]),
    "surrogates in a broken reply": ('{"facts":[{"content":"\\ud83d\\ude00 \\ud83d","type":"t",},]}', [("😀", "t")]),
    "escapes that JSON does not know": (
        '{"facts":[{"content":"match \\d+ in C:\\work, don\\\'t \\u12 it","type":"t"}]}',
        [("match \\d+ in C:\\work, don't \\u12 it", "t")],
    ),
    "a bare list": (f"[{A},{B}]", BOTH),
    "a bare list in a fence": (f"Facts:\n```\n[{A},\n{B}]\n```", BOTH),
    "a single fact": (A, BOTH[:1]),
    "a single fact in the place of the list": (f'{{"facts":{A}}}', BOTH[:1]),
    "a fact on each line": (f"{A}\n{B}\n", BOTH),
    "a list for each": (f'{{"facts":[{A}]}}\nand\n{{"facts":[{B}]}}', BOTH),
    "a list inside another object": (f'{{"result":{{"facts":[{A}],"count":1}}}}', BOTH[:1]),
    "a list by another name": (f'{{"memories":[{A},{B}]}}', BOTH),
    "a string of JSON": (json.dumps(f'{{"facts":[{A}]}}'), BOTH[:1]),
    "other keys": (f'{{"thought":"{{}} [","facts":[{A[:-1]},"id":7}}],"more":[1,null]}}', BOTH[:1]),
    "single quotes": ("{'facts': [{'content': 'Don't retry', 'type': 'bug_fixes'}]}", [("Don't retry", "bug_fixes")]),
    "names without quotes": ('{facts: [{content: "A", type: "bug_fixes"}]}', BOTH[:1]),
    "typeset quotation marks": ("{“facts”: [{“content”: “A”, “type”: “bug_fixes”}]}", BOTH[:1]),
    "facts by number": (f'{{"facts":{{"1":{A},"2":{B}}}}}', BOTH),
    "no facts by number": ('{"facts":{}}', []),
    "underscores escaped": ('{"facts":[{"content":"A","type":"bug\\_fixes"}]}', BOTH[:1]),
    "thinking before": (f'<think>Perhaps {{"facts":[{B}]}}</think>\n{{"facts":[{A}]}}', BOTH[:1]),
    "quotation marks not escaped": (
        '{"facts":[{"content":"The flag "fast", "safe" or "off"","type":"t"}]}',
        [('The flag "fast", "safe" or "off"', "t")],
    ),
    "quotation marks and braces not escaped": (
        '{"facts":[{"content":"Send {"a"} and {"b": 1}, never both","type":"t"},' + B + "]}",
        [('Send {"a"} and {"b": 1}, never both', "t"), BOTH[1]],
    ),
    "field names in a text, escaped": (
        '{"facts":[{"content":"It sends {\\"type\\": \\"x\\"}","type":"t"}]}',
        [('It sends {"type": "x"}', "t")],
    ),
    "duplicates": (f'{{"facts":[{A},{{"content":" a. ","type":"bug_fixes"}},{B}]}}', BOTH),
    "both spellings of nothing": ('{"facts":[{"content":"A","type":null}]}', [("A", "")]),
}

# What came, and the facts that were whole before it ended.
CUT = {
    "in a text": (f'{{"facts":[{A},{{"content":"B is lo', BOTH[:1]),
    "in a name": (f'{{"facts":[{A},{B},{{"content":"C","ty', BOTH),
    "after a name": (f'{{"facts":[{A},{{"content"', BOTH[:1]),
    "after a colon": (f'{{"facts":[{A},{{"content":', BOTH[:1]),
    "in an escape": (f'{{"facts":[{A},{{"content":"x \\u00', BOTH[:1]),
    "in a list of references": (f'{{"facts":[{A},{{"content":"B","type":"t","supersedes":["M-1', BOTH[:1]),
    "behind a fact": (f'```json\n{{"facts":[{A}', BOTH[:1]),
    "behind a comma": (f'{{"facts":[{A},\n', BOTH[:1]),
    "in a bare list": (f"[{A},{B},{{", BOTH),
    "in a fact on a line": (f"{A}\n{B[:-8]}", BOTH[:1]),
}

UNREADABLE = {
    "empty": "",
    "blank": " \n ",
    "prose": "I could not find anything durable in this conversation.",
    "prose with a bracket": "See [1] and {x}.",
    "an apology in a fence": "```\nSorry.\n```",
    "a number": "42",
    "another object": '{"error":"overloaded"}',
    "an empty object": "{}",
    "a text in the place of the list": '{"facts":"none"}',
    "a number in the place of the list": '{"facts":0}',
    "a list of numbers": "[1,2,3]",
    "cut before the first fact was whole": '{"facts":[{"content":"A lon',
    "cut at once": '{"facts":[',
    "cut in a single fact": '{"content":"A","ty',
    "a list of nonsense": '{"facts":[%%%]}',
    "thinking without an end": f'<think>So {{"facts":[{A}]}} it is',
    "XML": "<facts><fact>A</fact></facts>",
}


def found(reply: str) -> list[tuple[str, str]]:
    return [(fact.content, fact.type) for fact in read_facts(reply).facts]


@pytest.mark.parametrize(("reply", "facts"), READABLE.values(), ids=READABLE)
def test_what_a_reply_means_is_read(reply, facts):
    read = read_facts(reply)
    assert [(fact.content, fact.type) for fact in read.facts] == facts
    assert read.refused == ()
    assert not any(fact.doubt for fact in read.facts)
    assert not any("cut off" in note for note in read.notes)


@pytest.mark.parametrize(("reply", "facts"), CUT.values(), ids=CUT)
def test_of_a_reply_that_was_cut_off_the_whole_facts_stay_and_the_note_says_so(reply, facts):
    read = read_facts(reply)
    assert [(fact.content, fact.type) for fact in read.facts] == facts
    assert f"The model's reply was cut off after {len(facts)} whole fact{'s'[: len(facts) - 1]}." in read.notes
    assert {each.reason for each in read.refused} <= {"The model's reply was cut off inside this fact."}


def test_the_fact_that_was_cut_is_shown_as_refused():
    read = read_facts(f'{{"facts":[{A},{{"content":"B is lo')
    reason = "The model's reply was cut off inside this fact."
    assert read.refused == (Refused("B is lo", "dropped_classifier", reason),)


@pytest.mark.parametrize("reply", UNREADABLE.values(), ids=UNREADABLE)
def test_no_list_of_facts_is_a_failure_and_not_an_empty_success(reply):
    with pytest.raises(UnreadableReply) as caught:
        read_facts(reply)
    assert isinstance(caught.value, ExtractorError)
    assert not caught.value.permanent
    assert caught.value.message.endswith(".")


def test_every_field_is_read():
    fact = {"content": " A ", "type": "bug_fixes", "confidence": 0.8, "supersedes": ["M-1", "M-1"], "quote": " q\n"}
    (read,) = read_facts(json.dumps({"facts": [fact]})).facts
    assert (read.content, read.type, read.confidence, read.supersedes, read.quote, read.doubt) == (
        *("A", "bug_fixes", 0.8, ("M-1",), "q", ""),
    )


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ("1", "It is a number in the model's reply, and not an object"),
        ('"A text"', "It is a text in the model's reply, and not an object"),
        ("null", "It is nothing in the model's reply, and not an object"),
        ("[]", "It is a list in the model's reply, and not an object"),
        ("true", "It is true or false in the model's reply, and not an object"),
        ("{}", "It has no content."),
        ('{"type":"t"}', "It has no content."),
        ('{"content":"","type":"t"}', "It has no content."),
        ('{"content":" \\u0000\\n","type":"t"}', "It has no content."),
        ('{"content":null,"type":"t"}', "Its content is nothing in the model's reply, and not a text."),
        ('{"content":["x"],"type":"t"}', "Its content is a list in the model's reply, and not a text."),
        ('{"content":{"x":1},"type":"t"}', "Its content is an object in the model's reply, and not a text."),
        ('{"content":7,"type":"t"}', "Its content is a number in the model's reply, and not a text."),
        ('{"content":"x","type":["t"]}', "Its type is a list in the model's reply, and not a text."),
        ('{"content":"x","type":3}', "Its type is a number in the model's reply, and not a text."),
        (f'{{"content":"{"x" * 8_001}","type":"t"}}', "Its content has 8,001 characters, and at most 8,000 are kept."),
    ],
)
def test_an_entry_of_the_wrong_kind_is_refused_and_the_others_stay(entry, reason):
    read = read_facts(f'{{"facts":[{A},{entry},{B}]}}')
    assert [(fact.content, fact.type) for fact in read.facts] == BOTH
    (refused,) = read.refused
    assert refused.reason.startswith(reason)
    assert refused.outcome == "dropped_classifier"
    assert len(refused.content) <= 8_000


@pytest.mark.parametrize("confidence", ["0", "1", "0.5", "1.0", '"0.5"', "5e-1", "0.0"])
def test_a_confidence_is_a_number_from_0_to_1(confidence):
    (fact,) = read_facts(f'{{"facts":[{{"content":"A","type":"t","confidence":{confidence}}}]}}').facts
    assert fact.confidence == float(confidence.strip('"'))
    assert fact.doubt == ""


@pytest.mark.parametrize(
    "confidence", ['"high"', "95", "-0.1", "1.01", "true", "[0.5]", "{}", '"nan"', "NaN", "Infinity", '""', "9" * 9_999]
)
def test_any_other_confidence_counts_as_none_and_raises_a_doubt(confidence):
    (fact,) = read_facts(f'{{"facts":[{{"content":"A","type":"t","confidence":{confidence}}}]}}').facts
    assert (fact.confidence, fact.doubt) == (None, NO_CONFIDENCE)


@pytest.mark.parametrize("reply", [f'{{"facts":[{A}]}}', f'{{"facts":[{A[:-1]},"confidence":null}}]}}'])
def test_no_confidence_is_no_doubt(reply):
    (fact,) = read_facts(reply).facts
    assert (fact.confidence, fact.doubt) == (None, "")


@pytest.mark.parametrize(
    ("references", "read", "noted"),
    [
        ('["M-1","M-2"]', ("M-1", "M-2"), False),
        ('"M-1"', ("M-1",), False),
        ('""', (), False),
        ("null", (), False),
        ("[]", (), False),
        ('["M-1",2,null]', ("M-1",), True),
        ('{"id":"M-1"}', (), True),
        ("12", (), True),
        (json.dumps([f"M-{number}" for number in range(30)]), tuple(f"M-{number}" for number in range(20)), True),
        (json.dumps(["x" * 101]), (), True),
    ],
)
def test_what_a_fact_supersedes_is_a_list_of_references(references, read, noted):
    reply = read_facts(f'{{"facts":[{{"content":"A","type":"t","supersedes":{references}}}]}}')
    assert reply.facts[0].supersedes == read
    assert bool(reply.notes) is noted


@pytest.mark.parametrize(("quote", "read"), [('"q"', "q"), ('["q"]', "q"), ('["q","r"]', ""), ("1", ""), ("null", "")])
def test_a_quote_is_one_text(quote, read):
    (fact,) = read_facts(f'{{"facts":[{{"content":"A","type":"t","quote":{quote}}}]}}').facts
    assert fact.quote == read


@pytest.mark.parametrize(
    "broken",
    [
        '{"content":"broken" and more}',
        '{"content":"broken, "type":"t"}',
        '{"content":"broken"; "type":"t"}',
        '{"content":%%%}',
        '{"content":"deep","type":' + "[" * 40 + "]" * 40 + ",}",
        "{content}",
        "...",
    ],
)
def test_an_entry_that_cannot_be_read_costs_no_other_and_those_behind_it_wait_for_a_person(broken):
    read = read_facts(f'{{"facts":[{A},{broken},{B}]}}' if "..." not in broken else f'{{"facts":[{A},{{}}...}},{B}]}}')
    assert [(fact.content, fact.type, fact.doubt) for fact in read.facts] == [
        ("A", "bug_fixes", ""),
        ("B", "ownership", AFTER_A_BREAK),
    ]
    assert [each for each in read.refused if each.reason == "This part of the model's reply could not be read."]


def test_a_list_whose_end_cannot_be_read_keeps_its_beginning():
    read = read_facts(f'{{"facts":[{A}, and so on]}}')
    assert [fact.content for fact in read.facts] == ["A"]
    assert read.refused == (
        Refused("and so on]}", "dropped_classifier", "This part of the model's reply could not be read."),
    )


def test_of_facts_that_say_the_same_the_most_confident_stays():
    facts = [
        {"content": "Same thing.", "type": "a", "confidence": 0.5},
        {"content": "same  thing", "type": "b", "confidence": 0.9},
        {"content": "SAME THING", "type": "c", "confidence": 95},
    ]
    read = read_facts(json.dumps({"facts": facts}))
    assert [(fact.content, fact.type) for fact in read.facts] == [("same  thing", "b")]
    assert read.notes == ("The model repeated 2 facts.",)


def test_a_model_that_has_lost_its_way_leaves_a_bounded_number_of_rows_and_a_note():
    read = read_facts('{"facts":[' + "1," * 9_000 + f"{A}]}}")
    assert (len(read.facts), len(read.refused)) == (0, 500)
    assert read.notes == ("The model's reply is far too long: 8,501 of its entries were left out.",)
    broken = read_facts(f'{{"facts":[{A},' + '{"content":"a" x},' * 9_000 + "]}")
    assert [fact.content for fact in broken.facts] == ["A"]
    assert len(broken.refused) <= 501
    assert "far too long" in broken.notes[0]


def test_what_was_cleaned_is_noted():
    assert read_facts('{"facts":[{"content":"x \\ud83d y","type":"t"}]}').notes == ("Removed 1 lone surrogate.",)


def test_entries_of_another_list_are_read_the_same_way():
    found = read_items('Here: {"memory":[{"id":"0","text":"A"},{"id":"1","te', key="memory", mark="text")
    assert [item.value for item in found.items] == [{"id": "0", "text": "A"}]
    assert found.cut
    assert found.torn == {"id": "1"}


MILLION = 1_000_000
LONG = 200_000
# Far more than it takes on a busy machine, and far less than if time grew with the square.
SECONDS = 20
HOSTILE = {
    "braces": "{",
    "brackets": "[",
    "quotation marks": '"',
    "backslashes": "\\",
    "spaced braces": "{ ",
    "nested objects": '{"a":',
    "nested objects, single quotes": "{'a':'",
    "nested lists": '{"a":[',
    "objects of no use": '{"a":1},',
    "comments": '//\n{"',
    "back-ticks": "```json\n{",
    "thinking": "<think>{",
    "empty lists": "[],",
    "blanks": " ",
    "blanks behind a quotation mark": '"' + " " * 999,
    "line breaks behind commas": '",' + "\n" * 999,
    "comments without a text": "//\n",
    "half escapes": '\\u12"',
}
BEGINNINGS = {
    "": "",
    "in a list of facts": '{"facts":[',
    "behind a fact": f'{{"facts":[{A},',
    "in a text": '{"facts":[{"content":"',
    "in a list": "[",
}


@pytest.mark.parametrize("begins", BEGINNINGS.values(), ids=BEGINNINGS)
@pytest.mark.parametrize("repeated", HOSTILE.values(), ids=HOSTILE)
def test_time_is_linear_and_nesting_bounded_on_a_megabyte_of_anything(begins, repeated):
    reply = begins + repeated * ((LONG if begins else MILLION) // len(repeated))
    started = time.process_time()
    with suppress(UnreadableReply):
        read_facts(reply)
    assert time.process_time() - started < SECONDS


@pytest.mark.parametrize(
    "reply",
    [
        '{"facts":[' + f"{A}," * 10_000 + "]}",
        '{"facts":[{"content":"A","type":"t","confidence":' + "9" * MILLION + "}]}",
        '{"facts":[' + '{"content":"a" },{"content" ' * 10_000,
        '{"facts":[' + '{"content":"a" x},' * 10_000,
        '{"facts":[{"content":"' + '","x" ' * 50_000,
        '{"facts":[{"content":"a"' + " " * MILLION + "x",
        '{"facts":[{"content":"a",' + " " * MILLION + "x",
        '{"facts":[{"content":"a"}' + " " * MILLION + "x",
        '{"facts":[{"content":"a" "b"}' + " " * MILLION + "," + "\n" * MILLION,
        '{"facts":[{content:"a"' + " " * MILLION + "x",
        '{"facts":[{"content":["a"' + " " * MILLION + "x",
        '{"facts":' + "[" * 900 + "]" * 900 + "}",
        '{"facts":[' + '{"a":' * 900 + "1" + "}" * 900 + f",{A}]}}",
    ],
)
def test_long_and_deep_replies_take_linear_time(reply):
    started = time.process_time()
    with suppress(UnreadableReply):
        read_facts(reply)
    assert time.process_time() - started < SECONDS


fields = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=30)


@given(
    st.lists(fields, max_size=4),
    fields.filter(lambda text: "{" not in text and "[" not in text and not text.lstrip().startswith(('"', "<"))),
)
@settings(max_examples=150, deadline=None)
def test_valid_json_is_never_changed_by_a_repair(contents, prose):
    reply = prose + json.dumps({"facts": [{"content": content, "type": "t"} for content in contents]})
    items = read_items(reply, key="facts", mark="content").items
    assert [item.value["content"] for item in items] == contents


@given(st.text(alphabet=list("{}[]\",:\\'abc01 \nfactsonent`/<>\ud83d"), max_size=80))
@settings(max_examples=400, deadline=None)
def test_nothing_but_the_failure_it_promises_is_raised(text):
    for reply in (text, f'{{"facts":[{text}', f'{{"facts":[{{"content":"{text}'):
        try:
            read = read_facts(reply)
        except UnreadableReply:
            continue
        for fact in read.facts:
            fact.content.encode()
        for refused in read.refused:
            refused.content.encode()


@given(st.integers(min_value=1, max_value=400))
@settings(max_examples=100, deadline=None)
def test_wherever_a_reply_is_cut_no_fact_is_made_up(length):
    whole = json.dumps({"facts": [{"content": f"Fact {n}", "type": "t", "quote": 'a "b" {c}'} for n in range(6)]})
    try:
        read = read_facts(whole[:length])
    except UnreadableReply:
        return
    assert [fact.content for fact in read.facts] == [f"Fact {n}" for n in range(len(read.facts))]
    assert all(fact.quote == 'a "b" {c}' for fact in read.facts)
