"""CasADi functions as NumPy callables. Knows nothing of robots: any CasADi function of SX will do."""

from torsor.compile.count import OperationCount, count_operations
from torsor.compile.virtual_machine import VirtualMachine

__all__ = ["OperationCount", "VirtualMachine", "count_operations"]
