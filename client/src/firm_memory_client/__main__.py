"""``python -m firm_memory_client`` is ``fm``."""

from firm_memory_client.cli import main

main(prog_name="fm")
