# Every target fills .venv by itself; a second run installs nothing and needs no network.
VENV  := .venv
BIN   := $(VENV)/bin
STAMP := $(VENV)/.installed
PROFILE := embedded
export PYTHON

.PHONY: demo test lint format bench gauntlet sample clean distclean
.DEFAULT_GOAL := test

$(STAMP): pyproject.toml constraints.txt scripts/venv
	@scripts/venv $(VENV)

# On a terminal the wizard opens on it; without one the reset is walked unattended.
demo: $(STAMP)
	@scripts/need-java
	@scripts/demo $(BIN)/runbook

# These JVMs live for seconds: what the optimising compiler costs them, half of their time, they never get back.
test gauntlet sample: export SPARK_SUBMIT_OPTS ?= -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
test gauntlet sample: export SPARK_LAUNCHER_OPTS ?= $(SPARK_SUBMIT_OPTS)

# Without Java the Spark tests are skipped; -rs says so, and why, above pytest's last line. Three at once for two cores:
# many of them wait, for a job to stop or a checkpoint to be still.
test: $(STAMP)
	$(BIN)/python -m pytest -rs --durations 15 -n 3 --dist loadgroup $(ARGS)

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMP)
	@scripts/need-java
	$(BIN)/python bench/bench.py
	$(BIN)/python bench/s3.py
	$(BIN)/python bench/rows.py $(ARGS)

# Every scenario against every path, then the tests too long for `make test`, then a kill at every change of every walk:
# some hours.
# The table in pieces: ARGS="--results FILE --continue --only SCENARIO". PROFILE=cluster: Kafka and Delta.
gauntlet: $(STAMP)
	@scripts/need-java
	$(BIN)/python gauntlet/gauntlet.py --profile $(PROFILE) $(ARGS)
	RUNBOOK_ALL_SCENARIOS=1 RUNBOOK_KILLS=7 $(BIN)/python -m pytest -rs -m spark
	RUNBOOK_ALL_SCENARIOS=1 $(BIN)/python -m pytest -rs -n 2 --dist loadgroup tests/engine/test_killed_walks.py tests/s3 tests/runbook

# Eight cells of it, the same ones each time.
sample: $(STAMP)
	@scripts/need-java
	$(BIN)/python gauntlet/gauntlet.py --sample 8

clean:
	rm -rf build dist .pytest_cache .hypothesis .ruff_cache .mypy_cache *.egg-info
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +

distclean: clean
	rm -rf $(VENV)
