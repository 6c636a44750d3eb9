# Each target makes its own virtual environment when there is none, so that a bare clone is enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# The versions of constraints.txt. Python makes the bytecode of what it imports, a small part of all that is installed.
QUICK := --quiet --disable-pip-version-check --no-compile --constraint constraints.txt --editable
INSTALL := $(BIN)/python -m pip install $(QUICK)
# Bytecode on disk saves a second at each start of Python, of which the tests have many.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo view test test-all test-slow test-versions durations lock check bench docs lines clean

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

# With the pip of $(PYTHON), where it is new enough: a second pip in the environment would take 5 s.
$(VENV)/.view: pyproject.toml constraints.txt
	@echo "Installing into $(VENV): the first time only, half a minute to some minutes"
	@if $(PYTHON) -m pip --python $(PYTHON) --version > /dev/null 2>&1; \
		then $(PYTHON) -m venv --without-pip $(VENV) && $(PYTHON) -m pip --python $(BIN)/python install $(QUICK) ".[view]"; \
		else $(PYTHON) -m venv $(VENV) && $(INSTALL) ".[view]"; fi
	touch $@

# A robot that moves, in the browser; for others: make view VIEW="robot.urdf", make view VIEW="ur5 --track"
VIEW ?= ur5 --swing
view: $(VENV)/.view
	$(BIN)/torsor view $(VIEW)

demo: $(VENV)/.demo
	$(BIN)/torsor demo -o demo.png --force

PYTEST := $(BIN)/python -m pytest -n 2 --dist worksteal

# After every change: style, types, and all tests but the long ones.
test: check
	$(PYTEST) -m "not slow and not long"

# Everything but the slow proofs.
test-all: check
	$(PYTEST) -m "not slow"

test-slow: $(READY)
	$(PYTEST) -m slow

# The seconds of each test function with an empty kernel cache, by which long ones are known.
durations: $(READY)
	TORSOR_CACHE=$$(mktemp -d) $(PYTEST) -m "not slow" --record-durations

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

# The documentation site, in build/site; a broken link or reference ends the build. It needs the extra "docs" alone:
# signatures and docstrings are read from the source.
$(VENV)/.docs: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']['docs'])" \
		| xargs $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --constraint constraints.txt
	touch $@

docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

bench: $(READY)
	$(BIN)/python benchmarks/speed.py --json bench.json

# Lines and files of each package.
lines:
	@for package in src/torsor/*/; do \
		printf '%7d lines %4d files  %s\n' $$(find $$package -name '*.py' -exec cat {} + | wc -l) \
			$$(find $$package -name '*.py' | wc -l) $$package; done
	@printf '%7d lines %4d files  src/torsor\n' $$(find src -name '*.py' -exec cat {} + | wc -l) \
		$$(find src -name '*.py' | wc -l)

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache
