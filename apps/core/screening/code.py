"""Source code bodies, diffs and stack traces: what a memory must not carry, because the repository does.

Inline code, one command, a signature or a configuration key in a sentence are fine; conventions quote these.
Every pattern runs on the first characters of one line, so the work is linear in the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

SOURCE_CODE: Final = "source-code"

# Start and end (exclusive) in lines, and the kind.
Block = tuple[int, int, str]

_WHY: Final = {"source code": "a body of source code", "diff": "a diff", "stack trace": "a stack trace"}
_LINE_LIMIT: Final = 400
_TAKEN: Final = "\0"  # a line that belongs to a block already: no code, and no blank line either


@dataclass(frozen=True, slots=True)
class Exclusion:
    """A half-open interval of whole lines, and the slug of the exclusion that it falls under."""

    slug: str
    start: int
    end: int
    why: str
    kind: str


def find_code(text: str) -> list[Exclusion]:
    """Every body of source code, diff and stack trace, in order and without overlap."""
    lines = text.split("\n")
    heads = [line[:_LINE_LIMIT] for line in lines]
    blocks: list[Block] = []
    for finder in (_diffs, _traces, _fences, _bodies):
        found = list(finder(heads))
        blocks.extend(found)
        for first, last, _ in found:
            heads[first:last] = [_TAKEN] * (last - first)
    if not blocks:
        return []
    starts = list(accumulate((len(line) + 1 for line in lines), initial=0))
    return [
        Exclusion(SOURCE_CODE, starts[first], starts[last] - 1, _WHY[kind], kind)
        for first, last, kind in _disjoint(blocks)
    ]


def _disjoint(blocks: list[Block]) -> list[Block]:
    """Blocks within or across one another joined: a fence may hold a stack trace."""
    joined: list[Block] = []
    for first, last, kind in sorted(blocks):
        if joined and first < joined[-1][1]:
            start, end, outer = joined[-1]
            joined[-1] = (start, max(end, last), outer)
        elif last > first:
            joined.append((first, last, kind))
    return joined


# --- Diffs -------------------------------------------------------------------------------------------------

_QUOTED: Final = re.compile(r"(?:> ?|\| ?|    |\t){0,3}")
_DIFF_START: Final = re.compile(
    r"diff --(?:git|cc|combined) \S|diff -[\w-]+ \S|Index: \S|@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@|@@@ -\d+"
    r"|--- \S|\*\*\* (?:Begin Patch|(?:Update|Add|Delete) File: |\d+,\d+ \*\*\*\*)"
)
_DIFF_LINE: Final = re.compile(
    r"[-+ \\@]|diff |index [0-9a-f]+|(?:new|deleted) file|(?:old|new) mode|similarity |dissimilarity |rename "
    r"|copy |Binary files|GIT binary|Index: |={10,}|\*\*\* |\*{10,}"
)
_CHANGE: Final = re.compile(r"[-+](?![-+]{2} )")


def _diffs(lines: list[str]) -> Iterator[Block]:
    """Hunks with their headers, quoted or not; then bare lines of which some go and some come."""
    position = 0
    while position < len(lines):
        end, is_diff = _hunk(lines, position)
        if not is_diff:
            end, is_diff = _bare_changes(lines, position, end)
        if is_diff:
            yield position, end, "diff"
        position = max(end, position + 1)  # what was looked at once is not looked at again


def _hunk(lines: list[str], start: int) -> tuple[int, bool]:
    """Where the lines that may belong to a hunk end, and whether they are one."""
    quote = _QUOTED.match(lines[start])
    prefix = quote[0] if quote else ""
    first = lines[start][len(prefix) :]
    if not _DIFF_START.match(first):
        return start, False
    if first.startswith("--- ") and not (start + 1 < len(lines) and lines[start + 1].startswith(f"{prefix}+++ ")):
        return start, False
    end, changes = start + 1, first.startswith("diff --git ")
    while end < len(lines) and lines[end].startswith(prefix.rstrip()):
        line = lines[end][len(prefix) :]
        if not _DIFF_LINE.match(line) and not (not line.strip() and _continues(lines, end + 1, prefix)):
            break
        changes = changes or bool(_CHANGE.match(line))
        end += 1
    return end, changes


def _continues(lines: list[str], index: int, prefix: str) -> bool:
    """An empty line inside a hunk is a context line that lost its leading space."""
    if index >= len(lines):
        return False
    line = lines[index][len(prefix) :]
    return bool(re.match(r"[+@\\]|-(?! )|diff |  ", line))


def _bare_changes(lines: list[str], start: int, seen: int) -> tuple[int, bool]:
    if seen > start or not lines[start].startswith(("+", "-")):
        return seen, False
    end = start
    while end < len(lines) and lines[end].startswith(("+", "-")):
        end += 1
    block = lines[start:end]
    contents = [line[1:].strip() for line in block]
    code = sum(1 for content in contents if _points(content) or _ASSIGNMENT.match(content))
    signs = {line[0] for line in block}
    return end, len(signs) == 2 and code * 2 > len(block)


# --- Stack traces ------------------------------------------------------------------------------------------

_FRAME: Final = re.compile(
    r"[\s>|]{0,40}(?:"
    r'File "[^"]{1,300}", line \d+'  # Python
    r"|at [\w.$/<>@-]{1,200}\((?:[\w$-]{1,80}\.\w{1,10}(?::\d+)?|Native Method|Unknown Source)\)"
    r"|at (?:async |new )?(?:[^()]{1,160} )?\(?(?:\w[\w.+-]{0,20}:"
    r"|\.{0,2}/)[^\s()]{0,300}:\d+(?::\d+)?\)?\s*$"
    r"|(?:at|bei|à|en) [\w`<>+]{1,80}[.:][\w.:`<>+\[\],]{1,200}\([^()]{0,200}\)(?: in .{1,200}:\w{1,12} \d+"
    r")?\s*$"
    r"|goroutine \d+ \[[^\]]{1,80}\]:|\S{1,250}\.go:\d+(?: \+0x[0-9a-f]+)\s*$"  # Go
    r"|\d{1,3}: (?:0x[0-9a-f]{4,16} - )?[<\w][^\s]{0,80}::\S"  # Rust
    r"|(?:\d{1,3}: )?(?:from )?\S{1,250}\.(?:rb|rake|erb):\d+:in [`'\"]"  # Ruby
    r"|#\d{1,3} (?:\{main\}|\[internal function\]|\S{1,250}\(\d+\): )"  # PHP
    r"|#\d{1,3}\s{1,4}(?:0x[0-9a-f]{4,16} in )?[^\s]{1,160} .{0,120}(?:at|from|in)? \S{1,200}(?::\d+"
    r"|\.so\S{0,20})\s*$"
    r"|\([\w ]{1,40}[\d.]{0,12}\) \S{1,160}\.exs?:\d+: "  # Elixir
    r")"
)
_TRACE_HEAD: Final = re.compile(
    r"[\s>|]{0,40}(?:Traceback \(most recent call last\)|Exception in thread |Caused by: |panic: "
    r"|Stack trace:"
    r"|stack backtrace:|thread '[^']{0,80}'.{0,20} panicked at|Unhandled [eE]xception|(?:PHP )?Fatal error: "
    r"|\*\* \(\w"
    r"|(?:Uncaught )?[\w.$\\]{0,160}(?:Exception|Error|Throwable)\b(?:: |\s*$| \[))"
)
_TRACE_REST: Final = re.compile(
    r"\s+\S|[\w.]{1,160}(?:Exception|Error|Exit|Interrupt)\b|Caused by: |\.{3} \d+ more|note: run with"
)
_FRAME_GAP: Final = 4
_HEAD_REACH: Final = 3


def _traces(lines: list[str]) -> Iterator[Block]:
    frames = [index for index, line in enumerate(lines) if _FRAME.match(line)]
    position = 0
    while position < len(frames):
        last = position
        while last + 1 < len(frames) and frames[last + 1] - frames[last] <= _FRAME_GAP:
            last += 1
        first, count = frames[position], last - position + 1
        position = last + 1
        reach = range(max(0, first - _HEAD_REACH), first)
        head = next((index for index in reach if _TRACE_HEAD.match(lines[index])), None)
        if count > 1 or head is not None:
            end = frames[last] + 1
            while end < len(lines) and _TRACE_REST.match(lines[end]):
                end += 1
            yield first if head is None else head, end, "stack trace"
    for index, line in enumerate(lines):
        # A trace that went through a log as one line keeps its line breaks as two characters.
        if "\\n" in line and sum(bool(_FRAME.match(part.replace("\\t", " "))) for part in line.split("\\n")) > 1:
            yield index, index + 1, "stack trace"


# --- Fenced blocks -----------------------------------------------------------------------------------------

_FENCE: Final = re.compile(r"(?:[\s>*-]|\d+\.){0,12}(`{3,}|~{3,})[ {.]{0,3}([\w+#.-]{0,30})[^`]*$")
_PLAIN_LANGUAGES: Final = frozenset(
    ("", "text", "txt", "plain", "plaintext", "none", "log", "output", "md", "markdown", "mermaid", "math", "quote")
)
_COMMAND_LANGUAGES: Final = frozenset(
    ("sh", "bash", "zsh", "fish", "shell", "console", "shell-session", "terminal", "powershell", "ps1", "cmd", "bat")
)
_CONFIGURATION_LANGUAGES: Final = frozenset(
    (
        "json",
        "json5",
        "jsonc",
        "yaml",
        "yml",
        "toml",
        "ini",
        "cfg",
        "conf",
        "properties",
        "env",
        "dotenv",
        "csv",
        "http",
    )
)
_MAX_COMMANDS: Final = 8
_MAX_SETTINGS: Final = 4


def _fences(lines: list[str]) -> Iterator[Block]:
    position = 0
    while position < len(lines):
        opening = _FENCE.match(lines[position]) if "```" in lines[position] or "~~~" in lines[position] else None
        if not opening:
            position += 1
            continue
        mark, language = opening[1], opening[2].lower()
        closing = re.compile(rf"[\s>]{{0,12}}{re.escape(mark[0])}{{{len(mark)},}}\s*$")
        end = position + 1
        while end < len(lines) and not closing.match(lines[end]):
            end += 1
        if _is_code(lines[position + 1 : end], language):
            yield position, min(end + 1, len(lines)), "source code"
        position = end + 1


def _is_code(content: list[str], language: str) -> bool:
    filled = [line for line in content if line.strip()]
    if language in _PLAIN_LANGUAGES:
        return any(_bodies(content, needed=3))
    if language in _COMMAND_LANGUAGES:
        return len(filled) > _MAX_COMMANDS or any(_bodies(content))
    if language in _CONFIGURATION_LANGUAGES:
        return len(filled) > _MAX_SETTINGS
    return len(filled) > 1


# --- Bodies of code ----------------------------------------------------------------------------------------

_OPENING: Final = re.compile(  # begins something that has a body, or can stand nowhere but in code
    r"\s{0,80}(?:"
    r"(?:async\s+)?def\s+\w+[\w.?!]*\s*(?:\(|$)"
    r"|class\s+\w+\s*(?:\([^()]{0,120}\))?\s*(?::\s*$|\{|(?:extends|implements)\s)"
    r"|(?:export\s+|default\s+|async\s+|pub(?:\(\w+\))?\s+|unsafe\s+|static\s+|inline\s+){0,3}"
    r"(?:function\*?|fn|func|fun|sub|proc)\s+(?:\([^()]{0,80}\)\s*)?[\w.]+\s*[(<\[]?.{0,250}\{?\s*$"
    r"|(?:public|private|protected|internal|static|final|abstract|override|virtual|sealed|export|pub|extern"
    r"|typedef)\s.{1,250}[({;]\s*$"
    r"|(?:struct|enum|interface|trait|impl|namespace|module|union|record|object"
    r"|type)\s+[\w<>:., ]{1,80}\s*(?:struct\s*)?\{"
    r"|(?:void|int|long|char|bool|boolean|float|double|size_t|auto|unsigned|string"
    r"|String)\s+[\w*&:]{1,80}\s*\([^()]{0,200}\)\s*\{?\s*$"
    r"|import\s+(?:[\w.*]{1,120}(?:\s+as\s+\w+)?|[\w{}*, ]{1,120}\s+from\s+['\"].{1,120}['\"]"
    r"|['\"(].{0,120});?\s*$"
    r"|(?:async\s+)?for\s+\w+(?:,\s*\w+){0,4}\s+in\s+[\w.]+(?:\(.{0,120}\))?:\s*$|while\s+(?:True|not\s\w+"
    r"|\w+\s*[<>=!]).{0,80}:\s*$"
    r"|with\s+[\w.]+\(.{0,120}\)(?:\s+as\s+\w+)?:\s*$|if\s+__name__\s*=="
    r"|if\s+(?:not\s+)?[\w.]+(?:\(.{0,80}\))?(?:\s+(?:is|in|==|!=|[<>]=?)\s.{1,80})?:\s*$"
    r"|from\s+[\w.]{1,120}\s+import\s|#include\s*[<\"]|#!/\S|#(?:define|ifdef|ifndef|endif|pragma)\b|<\?php"
    r"|using\s+(?:static\s+)?[\w.]{1,120};|package\s+[\w.]{1,120};?\s*$|use\s+[\w:{}, ]{1,120};\s*$"
    r"|(?:const|let|var|val)\s+[\w{\[$][^=]{0,80}=[^=]|@(?:Override|Test|staticmethod|classmethod|property"
    r"|dataclass)\b"
    r"|(?:SELECT\s.{1,200}\s?FROM\s|INSERT\s+INTO\s|UPDATE\s+\S+\s+SET\s|DELETE\s+FROM\s|ALTER\s+TABLE\s|WIT"
    r"H\s+\w+\s+AS\s*\("
    r"|CREATE\s+(?:OR\s+REPLACE\s+|UNIQUE\s+|TEMP\s+)?(?:TABLE|INDEX|VIEW|FUNCTION|TRIGGER|PROCEDURE|POLICY"
    r"|TYPE)\s)"
    r")"
)
_KEYWORD: Final = re.compile(
    r"\s{0,80}(?:"
    r"(?:return|throw|raise|yield|await|assert|del|delete|echo|print|defer|go)\b(?:$|;"
    r"|\s*[\w.'\"(\[{!*&$-].{0,200})"
    r"|(?:break|continue|pass|fi|done|esac|end|endif|then|do|begin|try|else|finally|BEGIN|END"
    r"|COMMIT)\s*[;:{]?\s*$"
    r")"
)
_STATEMENT: Final = re.compile(
    r"\s{0,80}(?:"
    r"(?:\}\s*)?(?:if|for|foreach|while|switch|catch|with|elif|elsif|else if|except|match|case|unless|until"
    r"|synchronized)\b"
    r".{0,250}(?:[:{(]|\bthen|\bdo|\))\s*$"
    r"|[})\]]{1,6}\s*(?:else|catch|finally|while)?.{0,40}[;,{]?\s*$|[{(\[]\s*$"
    r"|[\w.$>:\]\[-]{1,120}\(.{0,250}\)?\s*[;,{]?\s*$"
    r"|</?[a-zA-Z][\w.-]{0,40}(?:\s.{0,250})?/?>\s*$"
    r"|.{1,300}[;{]\s*$|\s+.{1,300}[,(\[)\]}]\s*$|\s+[\"'][\w./-]{1,80}[\"']\s*$"
    r")"
)
_CLAUSE: Final = re.compile(
    r"\s{0,80}(?:SELECT|FROM|WHERE|(?:LEFT |INNER |OUTER |CROSS )?JOIN|ORDER BY|GROUP BY|HAVING|VALUES|SET|LIMIT|UNION"
    r"|RETURNING)\b|\s{1,80}\w{1,60}\s(?i:uuid|text|varchar|char|integer|int|bigint|serial|boolean|timestamptz?|date|numeric"
    r"|jsonb?)\b.{0,200}[,)]?$|\s{0,80}[)}\]]{1,3};?\s*$"
)
_ASSIGNMENT: Final = re.compile(
    r"\s{0,80}(?:[\w.$*&@]{1,80}"
    r"|\w{1,40}\[[^\]]{0,80}\])(?:\s*,\s*[\w.$*&]{1,80}){0,5}(?:\s*:\s*[\w.\[\], |]{1,60})?"
    r"\s*(?:[-+*/|&%^]|\|\||\?\?|:|<<|>>)?=\s*(?![=>])\S"
)
_CODE_SIGNS: Final = re.compile(
    r"\w\(|\w\[|[A-Za-z_)\]]\.[A-Za-z_]|->|=>|::|\+\+|&&|\|\||[!=<>+]=|[{}]|\w\s?=\s?[\w\"'\[({]|\$\w|</"
    r"|[\"']\s?:\s|^\s+[\"')\]]|;\s?(?:do|then)\s*$|^\s*(?:done|fi|esac)\b"
)
_IDENTIFIERS: Final = re.compile(r"\s{0,80}[\"'`]?[\w.$/-]+[\"'`]?(?:,\s{0,8}[\"'`]?[\w.$/-]+[\"'`]?)+,?\s*")
_COMMENT: Final = re.compile(r"\s{0,80}(?://|/\*|\*/|\* |# |--\s|<!--|\"\"\"|''')")
_BULLET: Final = re.compile(r"\s{0,20}(?:[-*+•–]|\d{1,3}[.)]|[a-z]\))\s")
_WORD: Final = re.compile(r"(?<![\w.$(\[{\"'`])[A-Za-z]{2,}[,.;:]?(?=\s|$)")
_PROSE_WORDS: Final = 7
_NEEDED: Final = 4
_LONGEST_GAP: Final = 8
_LONGEST_QUOTE: Final = 60
_CALL: Final = re.compile(r"\w\(|\w\s?=\s?\w")
_ONE_LINER: Final = re.compile(r"\b(?:function|return|const|var|let|if|for|while|void|public|def|fn)\b")


def _points(line: str) -> int:
    """2 for a line that opens a body, 1 for a statement, 0 for anything that may be prose or configuration."""
    if not line or line.isspace() or _BULLET.match(line) or _IDENTIFIERS.fullmatch(line):
        return 0
    prose = len(_WORD.findall(line)) >= _PROSE_WORDS
    if _OPENING.match(line):
        return 0 if prose and not line.rstrip().endswith(("{", ":", "(", ";", ")")) else 2
    if prose:
        return 0
    if _CLAUSE.match(line):
        return 1
    if _KEYWORD.match(line):
        return 1 if line[0] in " \t" or _CODE_SIGNS.search(line) else 0
    if _STATEMENT.match(line):
        return 1 if _CODE_SIGNS.search(line) else 0
    return 1 if _ASSIGNMENT.match(line) and _CODE_SIGNS.search(line.partition("=")[2]) else 0


@dataclass(slots=True)
class _Run:
    """Lines that read as code so far."""

    first: int
    last: int = 0  # the last line that has points
    near: int = 0  # the last line that has points or belongs to a documentation string
    score: int = 0
    count: int = 0
    opened: bool = False
    quoted: bool = False

    def add(self, index: int, line: str, points: int) -> None:
        inside = self.opened and (line[0] in " \t}" or bool(_CLAUSE.match(line)))
        self.score += points + (1 if inside and points == 1 else 0)
        self.count += 1
        self.opened = self.opened or points == 2
        self.last = self.near = index

    def quotes(self, index: int, line: str) -> bool:
        """Whether the line belongs to a documentation string, whose prose neither adds to a run nor ends it."""
        before, turns = self.quoted, (line.count('"""') + line.count("'''")) % 2
        self.quoted = before != bool(turns) and index - self.last <= _LONGEST_QUOTE
        if before or self.quoted:
            self.near = index
        return before or self.quoted

    def ends_at(self, index: int, line: str) -> bool:
        distance, has_body = index - self.near, self.opened or self.score > 2
        if not line.strip() or _COMMENT.match(line):
            return distance > (_LONGEST_GAP if has_body else 3)
        return not (has_body and line[:2].isspace() and not _BULLET.match(line) and distance <= _LONGEST_GAP)

    def is_body(self, needed: int) -> bool:
        return self.score >= needed and self.count >= (2 if self.opened else 3)


def _bodies(lines: list[str], needed: int = _NEEDED) -> Iterator[Block]:
    """Runs of lines that read as code. Comments, blank lines and indented continuations do not end a run."""
    run: _Run | None = None
    for index, line in enumerate(lines):
        points = _points(line)
        if run and run.opened and not points and line[:2].isspace() and _ASSIGNMENT.match(line):
            points = 1  # in a body, a plain assignment is code; elsewhere it may be a setting
        if run is None:
            if _is_dense(line):
                yield index, index + 1, "source code"
            elif points:
                run = _Run(index)
                run.add(index, line, points)
        elif run.quotes(index, line):
            continue
        elif points:
            run.add(index, line, points)
        elif run.ends_at(index, line):
            if run.is_body(needed):
                yield run.first, run.last + 1, "source code"
            run = None
    if run and run.is_body(needed):
        yield run.first, run.last + 1, "source code"


def _is_dense(line: str) -> bool:
    """Several statements on one line, as a minified script or a body whose line breaks were lost."""
    if line.count(";") < 2 or line.count(";") + line.count("{") < 4 or len(_WORD.findall(line)) > 2 * _PROSE_WORDS:
        return False
    return bool(_ONE_LINER.search(line) and _CALL.search(line)) and len(_CODE_SIGNS.findall(line)) >= 4
