# Everything a person types. `make help` lists it.

PYTHON ?=
VENV := .venv
BIN := $(VENV)/bin
TEST_DATA := .data/test
PYTEST_WORKERS ?= 2
PYTEST_ARGS ?=

# Settings that production refuses to start without, for checks that connect to nothing.
PRODUCTION := FIRM_MEMORY_ENV_FILE= DJANGO_SETTINGS_MODULE=firmmemory.settings.prod \
	SECRET_KEY=a-key-for-checks-only-0123456789-abcdefghijklmnopqrstuvwxyz \
	ALLOWED_HOSTS=memory.example.com DATABASE_URL=postgresql://nobody@127.0.0.1:1/none

.DEFAULT_GOAL := help
.PHONY: help up demo test check bench evaluate requirements clean

help: ## Show this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 22

# No shell between make and the server, so that it can tell when make is gone.
up: $(VENV)/.runtime ## Install what is needed and run Firm Memory until Ctrl-C
	@$(BIN)/python manage.py up --stop-with-parent

demo: $(VENV)/.runtime ## Propose, approve and ask, on the running instance or a fresh one
	@$(BIN)/python manage.py demo

test: $(VENV)/.dev ## Run the tests, in a data folder of their own
	@$(BIN)/python -m pytest -n $(PYTEST_WORKERS) $(PYTEST_ARGS)

check: $(VENV)/.dev ## Lint, types, layers, production settings, migrations
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy apps firmmemory
	$(BIN)/mypy --config-file client/pyproject.toml client/src
	$(BIN)/lint-imports
	$(PRODUCTION) $(BIN)/python manage.py check --deploy --fail-level WARNING
	$(PRODUCTION) $(BIN)/python -W ignore::RuntimeWarning manage.py makemigrations --check --dry-run

bench: $(VENV)/.dev ## Measure, and write the numbers to docs/benchmarks.md
	@$(BIN)/python manage.py bench

evaluate: $(VENV)/.dev ## Measure the answers of the sample suite, and hold them against its baseline
	@$(BIN)/python manage.py evaluate sample --arm none --arm grep --arm bm25 --arm default --arm text --gate

requirements: ## Compile the pinned and hashed requirements (needs uv)
	@uv --version >/dev/null 2>&1 || { echo "Compiling needs uv: https://docs.astral.sh/uv/"; exit 1; }
	uv pip compile requirements/base.in -o requirements.txt $(COMPILE)
	uv pip compile requirements/dev.in -o requirements/dev.txt $(COMPILE)

COMPILE := --generate-hashes --universal --python-version 3.11 --no-emit-index-url --no-header --quiet

clean: ## Remove caches and the tests' database; your data in .data stays
	@if [ -x $(BIN)/python ] && [ -e $(TEST_DATA)/postgres ]; then \
		DATABASE_URL= FIRM_MEMORY_ENV_FILE= FIRM_MEMORY_DATA_DIR=$(TEST_DATA) $(BIN)/python manage.py postgres stop; \
		rm -rf "$$(readlink -f $(TEST_DATA)/postgres)"; \
	fi
	rm -rf $(TEST_DATA) staticfiles build client/dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find apps firmmemory client tests -name __pycache__ -type d -prune -exec rm -rf {} +

# --- the virtual environment: made once, filled anew whenever the pins change -----------------------

$(BIN)/python:
	@found=; for python in $(or $(PYTHON),python3 python3.13 python3.12 python3.11); do \
		if $$python -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; \
		then found=$$python; break; fi; \
	done; \
	if [ -z "$$found" ]; then \
		echo "Firm Memory needs Python 3.11, 3.12 or 3.13, and $(or $(PYTHON),python3) is not one of them." \
			"Install one, or name it: make up PYTHON=/path/to/python3.12" >&2; exit 1; \
	fi; \
	echo "Making the virtual environment $(VENV) with $$($$found --version)."; \
	$$found -m venv --clear $(VENV)

$(VENV)/.runtime: requirements.txt | $(BIN)/python
	@$(call install,-r requirements.txt)

$(VENV)/.dev: requirements.txt requirements/dev.txt | $(BIN)/python
	@$(call install,-r requirements.txt -r requirements/dev.txt)

# uv where there is one, since it is several times faster; pip needs nothing else.
define install
echo "Installing the pinned packages (about 900 MB; the first time takes a minute or two)."; \
if uv --version >/dev/null 2>&1; then \
	uv pip install --quiet --python $(BIN)/python --require-hashes $(1); \
else \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes $(1); \
fi && touch $@
endef
