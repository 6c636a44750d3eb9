"""The formulas of the documentation: KaTeX, which the site ships, can set every one of them."""

import json
import re
import subprocess
from pathlib import Path

from node import needs_node

DOCS = Path(__file__).parents[2] / "docs"
KATEX = DOCS / "vendor" / "katex" / "katex.min.js"
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
FORMULA = re.compile(r"\$\$(.+?)\$\$|(?<![\\$\w])\$([^\s$](?:[^$\n]*[^\s$\\])?)\$(?!\w)", re.DOTALL)
PROGRAM = """
const katex = require(process.argv[1])
const faults = []
for (const [page, source, displayMode] of JSON.parse(require("fs").readFileSync(0, "utf8"))) {
  try {
    katex.renderToString(source, { displayMode, strict: "error" })
  } catch (error) {
    faults.push([page, source, error.message])
  }
}
console.log(JSON.stringify(faults))
"""


@needs_node
def test_katex_sets_every_formula() -> None:
    formulas = [
        (page.name, match[1] or match[2], match[1] is not None)
        for page in sorted(DOCS.glob("**/*.md"))
        for match in FORMULA.finditer(CODE.sub("", page.read_text("utf-8")))
    ]
    program = ["node", "-e", PROGRAM, str(KATEX)]
    done = subprocess.run(program, input=json.dumps(formulas), capture_output=True, text=True, check=True)
    assert not json.loads(done.stdout)


def test_brackets_next_to_each_other_are_escaped_or_in_mathematics() -> None:
    """Markdown reads [a][b] as a link with the text a and the reference b, which ends ``make docs``."""
    for page in sorted(DOCS.glob("**/*.md")):
        text = FORMULA.sub("", CODE.sub("", page.read_text("utf-8")))
        assert not (links := re.findall(r".{,20}[^\\!]\]\[.{,20}", text)), f"{page.name}: {links}"
