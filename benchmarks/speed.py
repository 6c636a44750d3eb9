"""Compare the speed of Torsor with Pinocchio and MuJoCo in one process (``make bench``)."""

from argparse import ArgumentParser
from pathlib import Path

from rich.console import Console

from bench import run_benchmarks

if __name__ == "__main__":
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the table as JSON")
    run_benchmarks(parser.parse_args().json, Console())
