# Each target makes its own virtual environment when there is none, so that a bare clone is enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PINNED := --quiet --constraint constraints.txt
# Bytecode on disk saves a second at each start of Python, of which the tests have many.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo view test test-all test-slow test-versions durations lock check bench docs lines clean

# Installs $(1), in the versions of constraints.txt, by uv: 15 s where pip takes 80 s. pip installs if uv fails, and
# if an index is set for pip, which uv would not use. It is the pip of $(PYTHON) if it is new enough: a second one in the
# environment would take 5 s. Python makes the bytecode of what it imports, a small part of all that is installed.
define install
	@echo "Installing into $(VENV): the first time only, a quarter of a minute to some minutes"
	@if $(PYTHON) -m pip --python $(PYTHON) --version > /dev/null 2>&1; \
		then $(PYTHON) -m venv --without-pip $(VENV) && pip="$(PYTHON) -m pip --python $(BIN)/python"; \
		else $(PYTHON) -m venv $(VENV) && pip="$(BIN)/python -m pip"; fi && \
	pip="$$pip --disable-pip-version-check" && \
	if $$pip config list | grep -qE '[.](index-url|no-index)=' || ! $$pip install $(PINNED) uv \
		|| ! $(BIN)/uv pip install --python $(BIN)/python $(PINNED) $(1); \
		then $$pip install $(PINNED) --no-compile $(1); fi
	@touch $@
endef

# What the demonstration needs is a small part of what the tests need.
$(VENV)/.demo: pyproject.toml constraints.txt
	$(call install,--editable ".[plot]")

$(READY): pyproject.toml constraints.txt
	$(call install,--editable ".[dev]")

$(VENV)/.view: pyproject.toml constraints.txt
	$(call install,--editable ".[view]")

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
	$(BIN)/mypy --num-workers 2

# The documentation site, in build/site; a broken link or reference ends the build. It needs the extra "docs" alone:
# signatures and docstrings are read from the source.
NAMES := import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["docs"])
$(VENV)/.docs: pyproject.toml constraints.txt
	$(call install,$$($(PYTHON) -c '$(NAMES)'))

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
