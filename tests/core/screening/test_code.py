from __future__ import annotations

import pytest

from apps.core.screening.code import SOURCE_CODE, find_code

BODIES = {
    "python function": "def add(a, b):\n    return a + b",
    "python class": "class Retry(Base):\n    limit = 3\n\n    def run(self):\n        return self.once()",
    "python with a docstring": 'def add(a, b):\n    """Add two numbers.\n\n    Or fewer.\n    """\n    return a',
    "python constructor": "def __init__(self, limit):\n    self.limit = limit\n    self.count = 0",
    "python loop": "for row in rows:\n    print(row)",
    "python statements": "import os\nimport sys\n\npath = os.path.join(sys.prefix, name)\nprint(path)",
    "javascript": "function add(a, b) {\n  return a + b;\n}",
    "arrow functions": "const add = (a, b) => {\n  return a + b;\n};",
    "react": 'export default function App() {\n  return (\n    <div id="x">\n      <Queue />\n    </div>\n  );\n}',
    "typescript": "export interface Hit {\n  id: string;\n  score: number;\n}",
    "java": "public class Foo {\n    private int x;\n    public int getX() {\n        return x;\n    }\n}",
    "go": 'func Add(a int, b int) int {\n\tif a < 0 {\n\t\tpanic("no")\n\t}\n\treturn a + b\n}',
    "rust": "pub fn add(a: i32, b: i32) -> i32 {\n    a.checked_add(b).unwrap()\n}\nlet x = add(1, 2);",
    "c": '#include <stdio.h>\n\nint main(void) {\n  printf("hi");\n  return 0;\n}',
    "c#": "namespace Acme {\n    public sealed class Foo {\n        public int Bar { get; set; }\n    }\n}",
    "ruby": "class Foo\n  def bar(x)\n    return x.baz(1)\n  end\nend",
    "php": '<?php\n$x = foo($y);\nif ($x) {\n    echo "no";\n}',
    "sql": "SELECT id, name FROM users\nWHERE id = 3\nORDER BY name;",
    "schema": "CREATE TABLE memory (\n    id uuid PRIMARY KEY,\n    content text NOT NULL\n);",
    "shell": '#!/bin/sh\nfor f in *.sql; do\n  psql -f "$f"\ndone',
    "one line": "function a(x){if(x){return b(1);}return 2;} var c=a(3); while(c.d){e.f();}",
    "fenced python": "```python\nx = foo()\nprint(x)\n```",
    "fenced with tildes": "~~~js\nlet x = 1\nalert(x)\n~~~",
    "fenced without a language": "```\ndef add(a, b):\n    return a + b\n```",
    "fenced in a list": "- so:\n  ```go\n  x := foo()\n  bar(x)\n  ```",
    "fenced and not closed": "```python\nx = foo()\nprint(x)",
    "fenced configuration": "```yaml\na: 1\nb: 2\nc: 3\nd: 4\ne: 5\n```",
}
DIFFS = {
    "git": "diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@\n-a\n+b\n c",
    "unified": "--- old.txt\n+++ new.txt\n@@ -1 +1 @@\n-foo\n+bar",
    "hunk": "@@ -10,3 +10,4 @@ def foo\n context\n-old\n+new\n context",
    "quoted": "> @@ -1,2 +1,2 @@\n> -foo\n> +bar",
    "indented": "    @@ -1,2 +1,2 @@\n    -foo\n    +bar",
    "bare": "-    retries = 3\n+    retries = 5",
    "patch": "*** Begin Patch\n*** Update File: a.py\n-foo\n+bar\n*** End Patch",
    "fenced": "```diff\n- foo\n+ bar\n```",
}
TRACES = {
    "python": 'Traceback (most recent call last):\n  File "x.py", line 3, in <module>\n    foo()\nValueError: bad',
    "python frames": '  File "x.py", line 3, in a\n    b()\n  File "y.py", line 9, in b\n    c()',
    "java": 'Exception in thread "main" java.lang.NullPointerException\n\tat com.acme.Foo.bar(Foo.java:12)',
    "java cause": "Caused by: java.io.IOException: no\n\tat a.A.b(A.java:1)\n\tat c.C.d(C.java:2)\n\t... 12 more",
    "javascript": "TypeError: x is no function\n    at Object.<anonymous> (/a/b.js:3:5)\n    at node:internal/m:1:2",
    "browser": "Error: no\n    at https://acme.example/app.js:10:20\n    at async load (https://acme.example/app.js:30:4)",
    "go": "panic: index out of range\n\ngoroutine 1 [running]:\nmain.main()\n\t/tmp/x.go:5 +0x1d\nexit status 2",
    "rust": "stack backtrace:\n   0: rust_begin_unwind\n   1: core::panicking::panic_fmt\n        at ./src/main.rs:4:5",
    ".net": "System.InvalidOperationException: no\n   at Acme.Foo.Bar(String x) in C:\\Foo.cs:line 12\n   at P.Main()",
    "ruby": "app.rb:3:in `foo': no (NoMethodError)\n\tfrom app.rb:7:in `<main>'",
    "php": "PHP Fatal error:  Uncaught Exception: x in /a.php:3\nStack trace:\n#0 /a.php(7): foo()\n#1 {main}",
    "elixir": "** (RuntimeError) no\n    (app 0.1.0) lib/app.ex:12: A.run/1\n    (elixir 1.15) lib/e.ex:9: E.map/2",
    "flattened": 'Traceback:\\n  File "x.py", line 3, in a\\n    foo()\\n  File "y.py", line 3, in b\\nValueError',
}
CASES = [
    pytest.param(text, kind, id=f"{kind}: {name}")
    for kind, texts in (("source code", BODIES), ("diff", DIFFS), ("stack trace", TRACES))
    for name, text in texts.items()
]


@pytest.mark.parametrize(("text", "kind"), CASES)
def test_found_alone_and_between_paragraphs(text: str, kind: str) -> None:
    before, after = "The worker does this because the queue is slow.\n\n", "\n\nWe decided it in March."
    for whole in (text, before + text + after):
        first, *_ = find_code(whole)
        assert first.slug == SOURCE_CODE
        assert first.kind == kind or "```diff" in text
        assert whole[first.start : first.end].split("\n")[0] in text.split("\n")


def test_position_covers_the_whole_block_and_nothing_else() -> None:
    (found,) = find_code("Because:\n\ndef add(a, b):\n    return a + b\n\nSo it adds.")
    assert (found.start, found.end) == (10, 41)
    assert found.why == "a body of source code"


def test_several_blocks_come_in_order() -> None:
    text = f"{TRACES['python']}\n\nfixed by\n\n{DIFFS['git']}\n\nwhich is\n\n{BODIES['javascript']}"
    assert [found.kind for found in find_code(text)] == ["stack trace", "diff", "source code"]


@pytest.mark.parametrize(
    "text",
    [
        "Call `retry(3)` before `commit()`; never `rollback()`.",
        "Start it:\nmake up\nmake test",
        "```\nmake up\n```",
        "```bash\npip install firm-memory\nmake up\n```",
        '```json\n{"retries": 3}\n```',
        "```python\ndef search(query: PoolQuery) -> list[PoolHit]: ...\n```",
        "The contract is\ndef search(self, query: PoolQuery) -> list[PoolHit]: ...\nand nothing else.",
        "    'alpha', 'beta', 'gamma',\n    'delta', 'epsilon', 'zeta',\n    'eta', 'theta', 'iota',",
        "You must know which `{major}.{minor}` versions run; return to it for `{major}.{minor}` later; so.",
        "MemoryProvider.insert_many\nMemoryProvider.search\nMemoryProvider.iterate",
        "DEBUG=1\nPORT=8000\nHOST=0.0.0.0\nWORKERS=2",
        "retries: 3\nname: oms\nitems:\n  - a\n  - b",
        'Set `"retries": 3` in config.json.',
        "- Use the outbox (see ADR-3);\n- return early;\n- do not import from models;\n+ plus one more",
        "If the queue is down:\n  return the item and try again later.\nfor each repository:\n  do the same.",
        "1. import the module\n2. return the result\n3. raise the limit;",
        "We grep for 'Traceback (most recent call last)' and NullPointerException at Foo.bar(Foo.java:12).",
        "The header `diff --git a/x b/x` is parsed, `@@ -1 +1 @@` too.",
        "--- \nA rule above, and below\n---",
        "| name | type |\n|---|---|\n| id | uuid |\n| content | text |",
        "SELECT … FOR UPDATE locks the row.",
        "Select the row, then update it; delete nothing.",
        "class of problems:\n  first kind\n  second kind",
        "TypeError: x is not a function was the symptom.",
        "https://acme.example/a?b=c;d=e;f=g {x} {y}; see it;",
        "> quoted prose\n> over two lines\n> and three",
        "# Heading\n\n## Another\n\nText (with parentheses), `code`, and an arrow -> here.",
        "",
    ],
)
def test_what_conventions_quote_is_fine(text: str) -> None:
    assert not find_code(text)
