"""CasADi functions as NumPy callables. Knows nothing of robots: any CasADi function of SX will do."""

from torsor.compiler.count import OperationCount, count_operations
from torsor.compiler.virtual_machine import VirtualMachine

__all__ = ["OperationCount", "VirtualMachine", "count_operations"]
