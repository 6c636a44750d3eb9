# Each target makes its own virtual environment when there is none, so that a bare clone is enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# The versions of constraints.txt. Python makes the bytecode of what it imports, a small part of all that is installed.
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --constraint constraints.txt --editable
# Bytecode on disk saves a second at each start of Python, of which the tests have many.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo view test quick test-slow test-versions lock check bench docs clean

# What the demonstration needs is a small part of what the tests need.
$(VENV)/.demo: pyproject.toml constraints.txt
	@echo "Installing into $(VENV): the first time only, half a minute to some minutes"
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) ".[plot]"
	touch $@

$(READY): pyproject.toml constraints.txt
	@echo "Installing into $(VENV): the first time only, half a minute to some minutes"
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) ".[dev]"
	touch $@

$(VENV)/.view: pyproject.toml constraints.txt
	@echo "Installing into $(VENV): the first time only, half a minute to some minutes"
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) ".[view]"
	touch $@

# A robot that moves, in the browser; for others: make view VIEW="robot.urdf"
VIEW ?= ur5 --swing
view: $(VENV)/.view
	$(BIN)/torsor view $(VIEW)

demo: $(VENV)/.demo
	$(BIN)/torsor demo --output demo.png

# Style and types are checked while the tests run.
test: $(READY)
	$(MAKE) -j2 check quick

quick: $(READY)
	$(BIN)/python -m pytest -m "not slow" -n 2 --dist worksteal

test-slow: $(READY)
	$(BIN)/python -m pytest -m slow -n 2

# A minute of tests with the lowest versions of pyproject.toml and with the newest ones, on every Python that is
# installed; for some of them: make test-versions VERSIONS="3.11-lowest 3.13"
test-versions: $(READY)
	$(BIN)/python tests/repository/versions.py test $(VERSIONS)

# The newest versions of all packages of the development environment, into constraints.txt.
lock: $(READY)
	$(BIN)/python tests/repository/versions.py lock

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The documentation site, in build/site; a broken link or reference ends the build.
docs: $(READY)
	$(INSTALL) ".[docs]"
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

bench: $(READY)
	$(BIN)/python benchmarks/speed.py --json bench.json

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache
