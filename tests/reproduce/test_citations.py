"""Equations, sections and tables that are cited exist in the documents."""

import re
from pathlib import Path

import pytest

# The numbers of all equations of the documents. The Lie-algebra notes have sections only.


def _chapter(number: int, first: int, last: int) -> list[str]:
    return [f"{number}.{k}" for k in range(first, last + 1)]


BARMAN = frozenset([*_chapter(2, 1, 12), *_chapter(3, 1, 95), *_chapter(4, 13, 19), *_chapter(5, 1, 10)])
GUARINO = frozenset(map(str, range(1, 37)))
KHALIL = frozenset(map(str, range(1, 113)))
HUA = frozenset(map(str, range(1, 53)))

SECTIONS = {
    "Barman 2020": frozenset(
        [
            *("4.1", "4.1.1", "4.1.2", "4.1.3", "4.2", "4.2.1", "4.2.2"),
            *("5.1", "5.2", "5.2.1", "5.2.2", "5.3", "6.1", "6.2", "6.2.2"),
        ]
    ),
    "Guarino Lo Bianco 2009": frozenset(["I", "II", "III", "IV", "V", "VI"]),
    "Khalil 2010": frozenset(
        [
            *("1", "2", "2.1", "2.2", "3", "3.1", "3.2", "3.3", "3.3.1", "3.3.2", "4", "5"),
            *("6", "6.1", "6.2", "6.3", "7", "7.1", "7.2", "7.3", "8"),
        ]
    ),
    "Hua et al. 2022": frozenset(["I", "II", "III", "IV", "V", "VI"]),
}
TABLES = {
    "Barman 2020": frozenset(["4.1", "4.2", "4.3", "4.4"]),
    "Guarino Lo Bianco 2009": frozenset(["I", "II", "III"]),
    "Khalil 2010": frozenset[str](),
    "Hua et al. 2022": frozenset(["I"]),
}
EQUATIONS = {"Barman 2020": BARMAN, "Guarino Lo Bianco 2009": GUARINO, "Khalil 2010": KHALIL, "Hua et al. 2022": HUA}

ROOT = Path(__file__).parents[2]
FILES = sorted(
    path
    for folder in ("src", "docs", "examples", "tests")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in (".py", ".md")
)
NUMBER = r"(?:\d+(?:\.\d+)*|[IVX]+)\b"
# From the document to the end of the sentence or of the parentheses: what is cited of it.
CITED = re.compile(rf"({'|'.join(map(re.escape, EQUATIONS))})((?:[^.;()]|\.(?=\d)|(?<=eq)\.|(?<=eqs)\.|(?<=Fig)\.)*)")
LISTED = {
    "equation": (re.compile(rf"eqs?\. ({NUMBER}(?:(?:, | and | to |-){NUMBER})*)"), EQUATIONS),
    "section": (re.compile(rf"sections? ({NUMBER}(?:(?:, | and | to |-){NUMBER})*)"), SECTIONS),
    "table": (re.compile(rf"Tables? ({NUMBER}(?:(?:, | and | to |-){NUMBER})*)"), TABLES),
}


def citations(text: str) -> list[tuple[str, str, str]]:
    """Return (document, what, number) of all citations in a text, whose lines may be broken anywhere."""
    flat = re.sub(r"\s+(?:#\s*)?", " ", text)
    flat = re.sub(r"\]\([^)]*\)", "", flat)  # targets of links
    flat = re.sub(r"(\d{4}) \((?=eqs?\.|section|Table)", r"\1, ", flat)  # Hua et al. 2022 (eqs. 37-49)
    found = []
    for document, rest in CITED.findall(flat):
        for what, (pattern, _) in LISTED.items():
            for numbers in pattern.findall(rest):
                found += [(document, what, number) for number in re.findall(NUMBER, numbers)]
    return found


@pytest.fixture(scope="module")
def cited() -> dict[tuple[str, str, str], list[str]]:
    found: dict[tuple[str, str, str], list[str]] = {}
    for path in FILES:
        for each in citations(path.read_text(encoding="utf-8")):
            found.setdefault(each, []).append(str(path.relative_to(ROOT)))
    return found


def test_what_is_cited_is_found_in_a_text() -> None:
    text = "(Khalil 2010, eqs. 22-31; more). Barman 2020,\n    Tables 4.1 and 4.2, eqs. 4.16 and 4.17."
    text += " Khalil 2010, section 2.2. Hua et al. 2022 (eqs. 37-49)."
    assert citations(text) == [
        ("Khalil 2010", "equation", "22"),
        ("Khalil 2010", "equation", "31"),
        ("Barman 2020", "equation", "4.16"),
        ("Barman 2020", "equation", "4.17"),
        ("Barman 2020", "table", "4.1"),
        ("Barman 2020", "table", "4.2"),
        ("Khalil 2010", "section", "2.2"),
        ("Hua et al. 2022", "equation", "37"),
        ("Hua et al. 2022", "equation", "49"),
    ]


def test_cited_equations_sections_and_tables_exist(cited: dict[tuple[str, str, str], list[str]]) -> None:
    assert len(cited) > 40
    wrong = {each: files for each, files in cited.items() if each[2] not in LISTED[each[1]][1][each[0]]}
    assert not wrong


def test_the_recursion_cites_the_equations_of_its_wrenches(cited: dict[tuple[str, str, str], list[str]]) -> None:
    """They begin with eq. 22, the force of a link, and end with eq. 31, the force of its joint."""
    file = "src/torsor/dynamics/recursions/newton_euler.py"
    own = {number for (document, what, number), files in cited.items() if file in files and document == "Khalil 2010"}
    assert own == {"22", "31"}
