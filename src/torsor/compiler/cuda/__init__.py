"""CasADi functions on NVIDIA cards: PTX written by LLVM from the same rules as machine code, called on CuPy arrays."""
