"""Small files of every format, with the traps that real ones have."""

from __future__ import annotations

AGENTS = """\
# Acme Pay — guide for agents

This file guides agents. Welcome.

@docs/more.md

See [the handbook](docs/handbook.md) for more.

## Setup

- Install with `make setup`, never with pip
  alone, because the pins are hashed.
- Run the tests with `make test`
  - in two processes on a laptop
  - in eight on the build server
- [Docs index](docs/README.md) — how the docs are organised

```bash
- this is code and no bullet
make everything
```

## Do not

* Commit generated files.
* Edit `schema.sql` by hand
* Never push to main.

Before you open a merge request:

1. Run `make check` and read what it says.
2) Say in the description why, not what.

| Changed surface | Required checks |
| --- | --- |
| `docs/**` | `make lint-docs` and a look at the page |
| Protobuf | `make proto | tee log`, then the tests |

Every money amount must be an integer number of cents, never a float.

    indented code stays code

Setext heading
--------------

- [ ] Boxes are ticked by people
- One
<!-- - a comment is for people -->
<!-- firm-memory:begin repo=acme/pay format=agents_md -->
- M-7: This came from us and is not taken in again.
<!-- firm-memory:end -->
- After the block there is a rule of our own.
"""

CLAUDE = """\
@AGENTS.md

# Claude

## Getting started

- Install with `make setup`, never with pip alone, because the pins are hashed.
- Prefer small commits; one change, one commit.
"""

CURSORRULES = "You are an expert in payments.\n\n- Always round half to even.\r\n- Never log card numbers.\r\n"

MDC = """\
---
description: Rules for the API
globs: services/api/**/*.py, services/web/**
alwaysApply: false
---

# API

- Answer errors as problem+json.
"""

MDC_ALWAYS = """\
---
description: Always on
globs: "**/*"
alwaysApply: true
---
- Keep handlers free of SQL.
"""

COPILOT = """\
# Copilot instructions

Use American spelling in identifiers and British spelling in documents.

- Prefer `pathlib` over `os.path`.
"""

INSTRUCTIONS = """\
---
applyTo: "**/*.ts"
---
- Use `unknown`, not `any`.
"""

MADR = """\
---
status: accepted
date: 2024-05-31
deciders: somebody
---
# Use PostgreSQL for the queue

## Context and Problem Statement

We need a queue.

## Decision Outcome

Chosen option: PostgreSQL, because we run it already.

```sql
SELECT 1;
```
"""

NYGARD = """\
# 3. Rent the queue

Date: 2025-01-02

## Status

Accepted. Supersedes [ADR-0002](0002-queue.md).

## Context

Running it costs nights.

## Decision

We rent it.
"""

REJECTED = """\
# 4. Write a queue of our own

## Status

Rejected

## Decision

We do not write one, since it is not what we sell.
"""

PEP = """\
PEP: 12
Title: Numbers are cents
Status: Superseded
Created: 03-Feb-2021
Replaces: 7

Abstract
========

Amounts are whole numbers of cents.
"""

EVERY = {
    "AGENTS.md": AGENTS,
    "CLAUDE.md": CLAUDE,
    ".cursorrules": CURSORRULES,
    ".cursor/rules/api.mdc": MDC,
    ".cursor/rules/always.mdc": MDC_ALWAYS,
    ".github/copilot-instructions.md": COPILOT,
    ".github/instructions/ts.instructions.md": INSTRUCTIONS,
    "docs/adr/0002-queue.md": MADR,
    "docs/adr/0003-rent.md": NYGARD,
    "docs/adr/0004-own.md": REJECTED,
    "peps/pep-0012.rst": PEP,
}
