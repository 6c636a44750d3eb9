"""NVIDIA GPUs as LLVM targets: translation of LLVM modules to PTX, which the GPU driver compiles."""

from dataclasses import dataclass

import llvmlite.binding as llvm

from torsor.compiler.llvm.target import initialize, versions

TRIPLE = "nvptx64-nvidia-cuda"
WARP = 32
"""Number of threads that execute an instruction together."""

# Compute capabilities supported by LLVM and the first PTX versions that support them, all times ten. A newer GPU runs
# the code of the newest capability before its own.
_CAPABILITIES = {70: 60, 72: 61, 75: 63, 80: 70, 86: 71, 87: 74, 89: 78, 90: 78, 100: 86, 120: 87}
# The first CUDA release (as reported by the driver) that supports a PTX version, newest first.
_VERSIONS = ((12080, 87), (12050, 85), (12040, 84), (12030, 83), (12020, 82), (12010, 81), (12000, 80), (11080, 78))
_MIN_DRIVER = 11080


@dataclass(frozen=True)
class GpuModel:
    """A GPU model: its compute capability and PTX version, both times ten."""

    capability: int
    version: int

    @classmethod
    def of(cls, capability: int, driver: int) -> "GpuModel":
        """Return the model of a GPU with a compute capability (90 for 9.0) and a driver (12080 for CUDA 12.8)."""
        if driver < _MIN_DRIVER:
            message = f"the GPU driver is for CUDA {driver // 1000}.{driver % 1000 // 10}"
            raise RuntimeError(f"{message}; allowed: 11.8 or newer; fix: install a newer NVIDIA driver")
        version = next(version for least, version in _VERSIONS if driver >= least)
        known = [item for item, needs in _CAPABILITIES.items() if item <= capability and needs <= version]
        if not known:
            message = f"the GPU has the compute capability {capability / 10}"
            raise RuntimeError(f"{message}; allowed: 7.5 (Turing) or newer, or 7.0 (Volta) with CUDA before 13")
        return cls(max(known), version)

    @property
    def description(self) -> str:
        """Text with everything on which PTX depends except its source, including the versions of LLVM and llvmlite."""
        return "|".join([TRIPLE, str(self.capability), str(self.version), *versions()])

    def ptx(self, module: str) -> str:
        """Return the PTX of an LLVM module after checking it with LLVM's verifier."""
        initialize()
        target = llvm.Target.from_triple(TRIPLE)
        machine = target.create_target_machine(cpu=f"sm_{self.capability}", features=f"+ptx{self.version}", opt=3)
        parsed = llvm.parse_assembly(module)
        parsed.triple = TRIPLE
        parsed.verify()
        return str(machine.emit_assembly(parsed))


H200 = GpuModel(90, 78)
"""Hopper: H100 and H200."""
