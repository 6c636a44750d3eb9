"""The example of Guarino Lo Bianco 2009 runs, and prints the numbers of the paper and of the targets."""

import importlib.util
import json
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[3]


def test_the_checks_of_the_paper(tmp_path, monkeypatch, capsys):
    spec = importlib.util.spec_from_file_location("stanford", ROOT / "examples" / "stanford_force_rates.py")
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    picture = tmp_path / "rates.png"
    monkeypatch.setattr("sys.argv", ["stanford_force_rates.py", str(picture)])
    example.main()
    assert picture.stat().st_size > 10_000

    printed = capsys.readouterr().out
    rows = {
        line[:14].split()[1]: np.array(line[15:].split(), float) for line in printed.splitlines() if "every" in line[:5]
    }
    targets = json.loads((ROOT / "tests" / "data" / "targets.json").read_text())["002_stanford"]["max_abs_dtaudot"]
    for period in ("0.01", "0.001"):
        np.testing.assert_allclose(rows[period], targets["quintic"][period], rtol=1e-4)
    assert rows["0.0001"][0] == 2.4022e-2
    assert abs(rows["0.0001"][0] / example.PUBLISHED - 1) < 0.03
    assert "paper, N = 6                      1692        1470" in printed
