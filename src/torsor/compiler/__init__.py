"""Compilation of CasADi functions to machine code and NumPy gufuncs; this package is independent of robots."""

from torsor.compiler import cache
from torsor.compiler.c import export_c, export_cpp
from torsor.compiler.cache import Signature, StoredKernel, keep, recall
from torsor.compiler.compiled import DEVICES, DTYPES, AnyKernel, compile, dtype_name
from torsor.compiler.cuda.device import array_module, free_memory, on_host
from torsor.compiler.cuda.kernel import CudaKernel, require_card
from torsor.compiler.js import export_js
from torsor.compiler.kernel import Kernel, VirtualMachine
from torsor.compiler.machine_code import compiler_fingerprint
from torsor.compiler.program import Operation, OperationCount, Program, count_operations, read_program
from torsor.compiler.tables import calls_only_tables, table
from torsor.compiler.threads import AUTO

__all__ = [
    "AUTO",
    "DEVICES",
    "DTYPES",
    "AnyKernel",
    "CudaKernel",
    "Kernel",
    "Operation",
    "OperationCount",
    "Program",
    "Signature",
    "StoredKernel",
    "VirtualMachine",
    "array_module",
    "cache",
    "calls_only_tables",
    "compile",
    "compiler_fingerprint",
    "count_operations",
    "dtype_name",
    "export_c",
    "export_cpp",
    "export_js",
    "free_memory",
    "keep",
    "on_host",
    "read_program",
    "recall",
    "require_card",
    "table",
]
