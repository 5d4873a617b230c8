# Two commands do everything on a fresh machine: `make demo` and `make test`. Both make .venv if it is missing.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUN := $(BIN)/python -m autograder
DEBIAN := chromium postgresql
# Test files share the cores; tests of one file stay together, since they share their class.
PARALLEL := -n 2 --dist loadfile

.PHONY: demo test lint test-system release check-release check-grader check-attacks check-accidents \
        check-durability sync check-notebooks bench site publish clean

demo: $(VENV)/run
	$(RUN) demo

test: $(VENV)/dev lint check-notebooks check-release
	$(BIN)/python -m pytest -m "not system" $(PARALLEL)

lint: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

test-system: $(VENV)/dev
	@missing=""; for package in $(DEBIAN); do \
	  dpkg-query -W -f='$${Status}' $$package 2>/dev/null | grep -q "install ok installed" \
	    || missing="$$missing $$package"; done; \
	if [ -n "$$missing" ]; then \
	  echo "missing Debian packages:$$missing - install them with: apt-get install$$missing" >&2; exit 1; fi
	$(BIN)/python -m pytest -m system $(PARALLEL)

release: $(VENV)/run
	$(RUN) release

check-release: $(VENV)/dev
	$(RUN) release --check

check-notebooks: $(VENV)/dev
	$(RUN) check-notebooks

sync: $(VENV)/run
	$(RUN) sync

check-grader: $(VENV)/run
	$(RUN) check-grader

check-attacks: $(VENV)/dev
	$(BIN)/python -m pytest -p tests.tables tests/attacks $(PARALLEL)

check-accidents: $(VENV)/dev
	$(BIN)/python -m pytest -p tests.tables tests/accidents $(PARALLEL)

check-durability: $(VENV)/dev
	$(BIN)/python -m tests.pipeline.durability

# Half an hour on two quiet cores; `make bench WRITE=--write` puts the tables into docs/bench.md.
bench: $(VENV)/dev
	$(BIN)/python -m autograder.bench $(WRITE)
	$(BIN)/python -m experiments.copy_task bench

site: $(VENV)/run
	$(RUN) site

publish: $(VENV)/run
	$(RUN) publish $(DIR)

$(VENV)/run: requirements.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	touch $@

$(VENV)/dev: requirements-dev.txt requirements-cluster.txt $(VENV)/run
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	touch $@

clean:
	rm -rf demo site build .pytest_cache .ruff_cache
