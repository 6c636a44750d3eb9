"""Facts that several pages state have one source, docs/facts.toml: it is true, and every page includes it."""

import importlib.util
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import torsor
from torsor.formats import dispatch

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def _tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("facts", ROOT / "docs" / "tools" / "facts.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


TOOL = _tool()
FACTS: dict[str, Any] = TOOL.read_facts()
REJECTED = [limit for limit in FACTS["limits"] if "rejected" in limit]


def test_every_page_includes_the_facts_as_they_are() -> None:
    for page in TOOL.pages():
        assert page.read_text("utf-8") == TOOL.included(page, FACTS), f"{page.name}: run python docs/tools/facts.py"


def test_pages_of_features_state_their_limits() -> None:
    for page in {page for limit in FACTS["limits"] for page in limit["pages"]}:
        assert "<!-- facts: limits here -->" in (ROOT / "docs" / page).read_text("utf-8"), page


@pytest.mark.parametrize("limit", REJECTED, ids=lambda limit: limit["error"])
def test_what_is_not_supported_is_rejected(limit: dict[str, Any]) -> None:
    with pytest.raises(torsor.ModelError, match=limit["error"]):
        exec(limit["rejected"], {"np": np, "torsor": torsor})


def test_extras_and_python_are_those_of_the_project() -> None:
    extras = [name for row in FACTS["extras"] for name in row["names"]]
    assert sorted([*extras, "dev", "docs"]) == sorted(PROJECT["optional-dependencies"])
    assert PROJECT["requires-python"] == f">={FACTS['platforms']['python']}"


def test_formats_are_those_that_the_library_reads_and_writes() -> None:
    read = {suffix for entry in FACTS["formats"] for suffix in entry["suffixes"]}
    assert read == {*dispatch._READERS, *dispatch._XML_SUFFIXES, ".xacro"}
    assert {suffix for entry in FACTS["formats"] for suffix in entry["written"]} == set(dispatch.WRITTEN)
    assert all(entry["extra"] in PROJECT["optional-dependencies"] for entry in FACTS["formats"] if "extra" in entry)
