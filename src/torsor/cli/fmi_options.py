"""The options of ``torsor export --to fmi``: what is in a functional mock-up unit."""

from argparse import ArgumentParser

FMI_OPTIONS = ("names", "version", "inverse", "parameters", "external", "q0", "v0", "step", "binary")
"""The arguments of ``torsor.export.fmi`` that the command line has, as names of attributes."""

FLAGS = {"version": "fmi-version", "binary": "no-binary"}
"""The options of those whose names differ."""


def add_fmi_options(parser: ArgumentParser) -> None:
    """Declare the options; those that are not given are None."""
    group = parser.add_argument_group("functional mock-up units (--to fmi FILE.fmu)")
    group.add_argument("--fmi-version", dest="version", type=int, choices=(2, 3), help="of the standard; by default 3")
    inverse = "inverse dynamics: inputs q, v and a, output tau"
    group.add_argument("--inverse", action="store_const", const=True, help=inverse)
    tunable = "numbers that may be changed, such as links.hand.mass or gravity"
    group.add_argument("--parameters", metavar="PATH", nargs="+", help=tunable)
    group.add_argument("--external", metavar="LINK", nargs="+", help="links with a wrench as input")
    group.add_argument("--q0", metavar="X", type=float, nargs="+", help="positions at the start; by default neutral")
    group.add_argument("--v0", metavar="X", type=float, nargs="+", help="velocities at the start; by default 0")
    group.add_argument("--step", metavar="S", type=float, help="longest step of co-simulation, s; by default 0.001")
    sources = "C sources only, without a library for this machine"
    group.add_argument("--no-binary", dest="binary", action="store_const", const=False, help=sources)
