"""CasADi functions as LLVM code: rules, loops over states, and object code."""
