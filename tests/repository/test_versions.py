"""The lock file has all that the development environment needs, in versions that pyproject.toml allows."""

import re

from packaging.utils import canonicalize_name

from repository.versions import LOCK, LOCKED, ROOT, SELECTION, requirements

LINES = [line for line in LOCK.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]


def test_the_lock_has_exact_versions_alone() -> None:
    for line in LINES:
        assert re.fullmatch(r"[a-z0-9-]+==[a-z0-9.]+( ; .*)?", line), line  # no index, no path


def test_the_lock_has_a_version_of_every_dependency_that_is_allowed() -> None:
    locked: dict[str, list[str]] = {}
    for line in LINES:
        name, version = line.partition(" ;")[0].split("==")
        locked.setdefault(name, []).append(version)
    for each in requirements(tuple(LOCKED.split(","))):
        assert any(each.specifier.contains(version) for version in locked[canonicalize_name(each.name)]), str(each)


def test_every_dependency_has_a_lowest_version() -> None:
    for each in requirements(tuple(LOCKED.split(","))):
        assert any(one.operator in (">=", "==") for one in each.specifier), str(each)


def test_the_selection_of_tests_exists() -> None:
    assert all((ROOT / path).exists() for path in SELECTION)
