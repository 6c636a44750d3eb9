"""Functions of one float64 for each lane of a vector: for what has a loop or integers wider than a number."""

from collections.abc import Sequence

from torsor.compiler.llvm.vectors import Number


def each_lane(function: str, results: Sequence[str], *arguments: Number) -> list[str]:
    """Call an LLVM function of numbers for each lane; return one vector for each of its results, of the given types.

    The arguments are passed as float64.
    """
    e = arguments[0].emitter
    kind = results[0] if len(results) == 1 else f"{{ {', '.join(results)} }}"
    found = ["poison"] * len(results)
    for lane in range(e.width):
        passed = []
        for argument in arguments:
            number = e.put(f"extractelement {e.vector} {argument.name}, i64 {lane}")
            passed.append(number if e.scalar.name == "double" else e.put(f"fpext float {number} to double"))
        value = e.put(f"call {kind} {function}({', '.join(f'double {each}' for each in passed)})")
        for k, each in enumerate(results):
            part = value if len(results) == 1 else e.put(f"extractvalue {kind} {value}, {k}")
            found[k] = e.put(f"insertelement <{e.width} x {each}> {found[k]}, {each} {part}, i64 {lane}")
    return found
