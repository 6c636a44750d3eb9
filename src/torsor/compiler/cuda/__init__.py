"""CasADi functions on NVIDIA GPUs, as PTX that LLVM generates from the rules of the machine code, for CuPy arrays."""
