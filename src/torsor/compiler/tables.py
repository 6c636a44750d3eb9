"""Tables of constants that a CasADi function reads at a computed index.

CasADi's scalar graphs have no operation that reads a table, but a function with the option ``never_inline`` remains one
operation (``OP_CALL``). A table is such a function of an index and of the number of the table, which is a hash of its
entries: CasADi's instructions contain their arguments, but not the function that they call. The virtual machine
evaluates it as an interpolant, which finds an entry in constant time.

CasADi's forward derivatives do not see that a called function is constant almost everywhere. The entries are therefore
stored as whole numbers and passed through ``floor``, whose derivative is zero.
"""

import hashlib
import re

import casadi as ca
import numpy as np

from torsor.base.arrays import Array
from torsor.base.errors import ModelError

_BITS = 52  # of the whole numbers, which float64 represents exactly
_NAME = re.compile(r"torsor_table_(\d+)_(\d+)_(\d+)")


def table(values: Array) -> ca.Function:
    """Return the function of an index that reads an entry of a matrix in row-major order.

    The index is a whole number from 0; the derivative of an entry is zero. The matrix has at least 2 rows and 2 columns
    and at most 2^24 finite entries, so that float32 represents all indices. Entries are rounded to multiples of at
    most 2^-51 of their range.

    Example:
        >>> entry = table(np.array([[1.5, 2.0, 7.0], [3.0, 0.0, -1.0]]))
        >>> float(entry(2)), float(entry(3))
        (7.0, 3.0)
    """
    (rows, columns), low = values.shape, values.min()
    scale = max(2.0 ** (np.frexp(values.max() - low)[1] - _BITS), np.finfo(float).tiny)
    whole = np.rint((values - low) / scale)
    digest = hashlib.sha256(repr(values.shape).encode() + whole.astype("<f8").tobytes()).digest()
    number = int.from_bytes(digest[:8]) >> (64 - _BITS)
    grid = [np.arange(rows), np.arange(columns)]
    entry = ca.interpolant("entry", "linear", grid, whole.ravel(order="F"), {"lookup_mode": ["exact", "exact"]})
    index, which = ca.MX.sym("index"), ca.MX.sym("which")
    row = ca.floor((index + 0.5) / columns)
    name, place = f"torsor_table_{number}_{rows}_{columns}", ca.vertcat(row, index - row * columns)
    call = ca.Function(name, [index, which], [entry(place)], {"never_inline": True})
    symbol = ca.SX.sym("index")
    try:
        return ca.Function("table", [symbol], [low + scale * ca.floor(call(symbol, number))])
    except RuntimeError as error:
        found = f"CasADi {ca.CasadiMeta.version()} has no calls in scalar functions"
        raise ModelError(found, where="table", allowed="3.7 or newer", fix="pip install -U casadi") from error


def calls_only_tables(function: ca.Function) -> bool:
    """Return whether all functions that an SX function calls are tables."""
    return all(_NAME.fullmatch(each.name()) for each in function.find_functions(0))


def tables_of(function: ca.Function) -> dict[int, bytes]:
    """Return the entries of the tables that an SX function calls, as float64 numbers, by the number of the table."""
    result = {}
    for each in function.find_functions(0):
        found = _NAME.fullmatch(each.name())
        if found is not None:
            number, rows, columns = map(int, found.groups())
            (entry,) = each.find_functions(0)
            places = np.divmod(np.arange(rows * columns), columns)
            result[number] = entry(np.array(places)).full().tobytes()
    return dict(sorted(result.items()))
