"""The command ``fm``. What it prints is for people or, with ``--json``, for programs; docs/client.md has its codes."""

from __future__ import annotations

import click

from firm_memory_client.about import __version__
from firm_memory_client.cli import moving, recall, setup, writing


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="fm")
def main() -> None:
    """Firm Memory: why things are built the way they are.

    The address and the token come from FIRM_MEMORY_URL and FIRM_MEMORY_TOKEN, or from what `fm configure` keeps. The
    repository is the one checked out in this folder unless a command is told otherwise.
    """


for each in (
    *(recall.search, recall.get, recall.context, recall.ask, recall.me),
    *(writing.propose, writing.ingest, writing.correct, writing.notes),
    *(moving.import_, moving.export),
    *(setup.configure, setup.doctor, setup.connect, setup.mcp, setup.hook),
):
    main.add_command(each)
