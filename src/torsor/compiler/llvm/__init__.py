"""CasADi functions as LLVM code: rules, loops over states, and object code."""

from functools import cache
from importlib.resources import files
from string import Template


@cache
def _template(name: str) -> Template:
    return Template(files("torsor.compiler").joinpath("llvm", "ir", f"{name}.ll").read_text(encoding="utf-8"))


def ir(name: str, **values: object) -> str:
    """Return the LLVM code of the file ``ir/NAME.ll`` with ``$name`` replaced by ``values``.

    Example:
        >>> ir("chain", max_arrays=9, arrays=1, times=2, states=3, words=4, head=5).count("define")
        1
    """
    return _template(name).substitute(values)
