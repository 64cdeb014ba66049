# GNU make 3.81 (macOS) is enough. Variables given on the command line or in the environment (HOST, PORT,
# RESPONSES_DATA_DIR, ...) reach the programs as environment variables.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.PHONY: help install serve team key admin test coverage check layers bench soak faults hostile lock clean format
.DELETE_ON_ERROR:

MLX ?= $(if $(filter Darwin,$(shell uname -s)),metal,cpu)
WEB ?= 2
WORKERS ?= 2
SOAK_SECONDS ?= 600
SOAK_TURNS ?= 2000
PROCESSES ?= 2
PURE := responses_api/protocol/*,responses_api/streaming/*,responses_api/chat/*,inference/dialects/*
JOBS ?= 200
HOSTILE_SECONDS ?= 3600

VENV := .venv
RUN := $(VENV)/bin/python
SERVER := $(VENV)/.installed-mlx-$(MLX)
DEVELOPMENT := $(SERVER)-dev
PYTEST = -m pytest -n $(PROCESSES) $(if $(SEED),--randomly-seed $(SEED),-p no:randomly) $(ARGS)
LOCK := $(VENV)/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header $(if $(UPGRADE),--upgrade)
# Checks are about the code, not about this machine's settings.
CHECK_ENV := env -u REDIS_URL -u RESPONSES_BROKER_URL -u DATABASE_URL RESPONSES_DATA_DIR=$(VENV)/check-data

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' Makefile

install: $(SERVER) ## Only create the environment (MLX=)

serve: $(SERVER) ## Serve on http://127.0.0.1:8080 (HOST=, PORT=, RESPONSES_DATA_DIR=, MLX=cpu|metal|cuda)
	@exec $(RUN) manage.py serve

team: $(SERVER) ## Run WEB=2 web and WORKERS=2 worker processes on DATABASE_URL and REDIS_URL
	@exec $(RUN) manage.py team --web $(WEB) --workers $(WORKERS)

key: $(SERVER) ## Create an API key: NAME= PROJECT=; the last line is the key
	@exec $(RUN) manage.py key --name "$${NAME:?give NAME=...}" --project "$${PROJECT:?give PROJECT=...}"

admin: $(SERVER) ## Create the first administrator
	@exec $(RUN) manage.py admin

test: $(DEVELOPMENT) ## Run all tests that can run on this machine (PROCESSES=2, SEED= shuffles, TEST_DATABASE_URL=, TEST_REDIS_URL=, ARGS=)
	@exec $(RUN) $(PYTEST)

coverage: $(DEVELOPMENT) ## Run all tests, and check that they cover 92% of all lines and every line of the pure packages
	@$(RUN) -m coverage erase
	@CI=true $(RUN) -m coverage run $(PYTEST)
	@$(RUN) -m coverage combine -q
	$(RUN) -m coverage report --fail-under 92
	$(RUN) -m coverage report --fail-under 100 --include '$(PURE)'

check: $(DEVELOPMENT) ## Check format, lint, types, import contracts, sizes, migrations, deployment, generated files
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(CHECK_ENV) $(VENV)/bin/mypy
	$(VENV)/bin/lint-imports
	$(RUN) -m tests.layers
	$(CHECK_ENV) $(RUN) manage.py makemigrations --check --dry-run
	$(CHECK_ENV) RESPONSES_BEHIND_TLS=true $(RUN) manage.py check --deploy --fail-level WARNING
	$(CHECK_ENV) $(RUN) manage.py settings_docs --check

layers: $(DEVELOPMENT) ## Draw the layers of packages, and list what is too large
	@exec $(RUN) -m tests.layers

format: $(DEVELOPMENT) ## Format the code and apply the linter's fixes
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

bench: $(DEVELOPMENT) ## Measure what the project promises (ARGS="tiny causes --streams 8", ARGS=--short)
	@exec $(RUN) -m tests.perf.bench $(ARGS)

soak: $(DEVELOPMENT) ## Fuzz live servers for SOAK_SECONDS=600 per test, and run SOAK_TURNS=2000 concurrent turns
	@SOAK_SECONDS=$(SOAK_SECONDS) SOAK_TURNS=$(SOAK_TURNS) exec $(RUN) -m pytest -rA --timeout 7200 tests/soak \
		tests/live/generation/test_conversations.py::test_concurrent_turns_are_all_complete $(ARGS)

faults: $(DEVELOPMENT) ## Kill workers, stop services, cancel JOBS=200 jobs and more (ARGS="kill cancel")
	@exec $(RUN) -m tests.faults $(ARGS) --jobs $(JOBS)

hostile: $(DEVELOPMENT) ## Send hostile requests for HOSTILE_SECONDS=3600, and print the worst (ARGS="--shape team")
	@exec $(RUN) -m tests.hostile --seconds $(HOSTILE_SECONDS) $(ARGS)

lock: $(DEVELOPMENT) ## Lock requirements/*.in again (UPGRADE=1 takes newer versions)
	$(LOCK) requirements/mlx-cpu.in -o requirements/mlx-cpu.txt
	$(LOCK) -c requirements/mlx-cpu.txt requirements/mlx-metal.in -o requirements/mlx-metal.txt
	$(LOCK) -c requirements/mlx-cpu.txt requirements/mlx-cuda.in -o requirements/mlx-cuda.txt
	$(LOCK) -c requirements/mlx-cpu.txt requirements/dev.in -o requirements/dev.txt
	$(LOCK) -c requirements/dev.txt requirements/clients.in -o requirements/clients.txt

clean: ## Remove the environment and caches; the data directory stays
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage*
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# --- the environment: a stamp is written only if the step before it succeeded ---------------------------------------

$(RUN):
	@python=$$(sh requirements/find-python.sh) && \
	echo "Environment: $$($$python --version) in $(VENV)" && \
	rm -rf $(VENV) && $$python -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

$(SERVER): requirements/mlx-$(MLX).txt | $(RUN)
	@$(RUN) requirements/install.py "Server (mlx-$(MLX))" --require-hashes -r requirements/mlx-$(MLX).txt
	@rm -f $(VENV)/.installed-* && touch $@

$(DEVELOPMENT): $(SERVER) requirements/dev.txt
	@$(RUN) requirements/install.py "Tests and checks" --require-hashes -r requirements/dev.txt
	@touch $@
