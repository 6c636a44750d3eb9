"""Names in exported source: unique, allowed in the language, and as similar as possible to the given ones."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

import casadi as ca


class Names:
    """Makes unique identifiers. ``form`` makes an identifier of any text; ``reserved`` says which must not be used.

    Example:
        >>> names = Names(lambda text: text.replace(" ", "_"), lambda name: name == "double", "_")
        >>> names.new("tau"), names.new("tau"), names.new("double"), names.new("a b")
        ('tau', 'tau_2', 'double_', 'a_b')
    """

    def __init__(
        self, form: Callable[[str], str], reserved: Callable[[str], bool], joint: str, taken: Iterable[str] = ()
    ):
        self.form, self.reserved, self.joint, self.taken = form, reserved, joint, set(taken)

    def new(self, wanted: str) -> str:
        """Return a new identifier, as similar as possible to the given name."""
        name = self.form(wanted)
        tried, count = name + "_" if self.reserved(name) else name, 1
        while tried in self.taken:
            count += 1
            tried = f"{name}{self.joint}{count}"
        self.taken.add(tried)
        return tried


def words(text: str) -> str:
    """Return a text with an underscore for each character that is not a letter or digit of ASCII, a letter first.

    Example:
        >>> words("2-x"), words("größe")
        ('x2_x', 'gr__e')
    """
    name = re.sub(r"[^A-Za-z0-9_]", "_", text)
    # Underscores at the beginning belong to compilers.
    return name if re.match(r"[A-Za-z]", name) else "x" + name


def camel(text: str) -> str:
    """Return a text in camel case, a letter first: the words of ``words`` with capitals in place of underscores.

    Example:
        >>> camel("inverse_dynamics"), camel("jacobian_left hand"), camel("2-x")
        ('inverseDynamics', 'jacobianLeftHand', 'x2X')
    """
    first, *others = [part for part in words(text).split("_") if part]
    return first + "".join(part[0].upper() + part[1:] for part in others)


def with_names(functions: Sequence[ca.Function] | Mapping[str, ca.Function]) -> list[tuple[str, ca.Function]]:
    """Return the functions with their names, or raise an error that describes what is wrong."""
    if not isinstance(functions, Iterable):
        raise ValueError(f"functions is {functions!r}; allowed: a list, or a mapping from names; fix: make it a list")
    items = list(functions.items()) if isinstance(functions, Mapping) else [(None, each) for each in functions]
    if not items:
        raise ValueError("no functions are given; allowed: one or more CasADi functions; fix: name those to be written")
    found: dict[str, ca.Function] = {}
    for key, function in items:
        if not isinstance(function, ca.Function):
            raise ValueError(f"{function!r} is among the functions; allowed: CasADi functions; fix: leave it out")
        title = function.name() if key is None else key
        if not isinstance(title, str):
            raise ValueError(f"a function is named {title!r}; allowed: a string; fix: name it by one")
        if title in found:
            fix = "give a mapping from names of your choice to the functions"
            raise ValueError(f"two functions are named {title!r}; allowed: each name once; fix: {fix}")
        found[title] = function
    return list(found.items())
