"""What this costs, measured: the code of ``manage.py bench``, which writes docs/benchmarks.md."""
