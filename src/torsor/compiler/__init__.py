"""CasADi functions as machine code behind NumPy's gufuncs. Knows nothing of robots."""

from torsor.compiler import cache
from torsor.compiler.c.source import export_c
from torsor.compiler.count import OperationCount, count_operations
from torsor.compiler.kernel import DEVICES, DTYPES, Kernel, compile, dtype_name
from torsor.compiler.machine import compiler_fingerprint
from torsor.compiler.program import Operation, Program, read_program
from torsor.compiler.stored import Kept, Signature, recall
from torsor.compiler.virtual_machine import VirtualMachine

__all__ = [
    "DEVICES",
    "DTYPES",
    "Kept",
    "Kernel",
    "Operation",
    "OperationCount",
    "Program",
    "Signature",
    "VirtualMachine",
    "cache",
    "compile",
    "compiler_fingerprint",
    "count_operations",
    "dtype_name",
    "export_c",
    "read_program",
    "recall",
]
