"""LLVM target processors: this machine, and others whose code can be generated and counted here.

This file imports nothing from Torsor, because ``native`` runs it as a script in compiler processes.
"""

import pickle
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

import llvmlite
import llvmlite.binding as llvm

PLANNED_MARK = "; registers are planned\n"
"""The first line of a module without branches whose instructions and registers are already chosen (``piece.py``)."""

ENCODED_MARK = "; machine code\n"
"""The first line of a module whose content is already machine code or data (``piece.py``)."""


@dataclass(frozen=True)
class Target:
    """A processor: its LLVM triple, name and features, and the ``bits`` of its widest vector registers.

    Example:
        >>> TARGETS["AVX-512"].width("float64"), TARGETS["NEON"].width("float32")
        (8, 4)
    """

    triple: str
    cpu: str
    bits: int = 128
    features: str = ""

    @property
    def is_arm(self) -> bool:
        """Whether the processor is AArch64 (otherwise x86-64)."""
        return self.triple.startswith(("aarch64", "arm64"))

    @property
    def description(self) -> str:
        """Text with everything on which object code depends except its source, including LLVM and llvmlite versions."""
        return "|".join([self.triple, self.cpu, self.features, *versions()])

    @property
    def constants(self) -> Literal["operands", "vectors", "lanes"]:
        """The fastest way to provide constants to instructions.

        AArch64 needs up to five instructions to create a number, but can multiply by a lane of a vector. AVX-512
        broadcasts a number in memory to all lanes within an arithmetic instruction. AVX2 needs a separate broadcast
        unless memory contains all lanes.
        """
        return "lanes" if self.is_arm else "operands" if self.bits == 512 else "vectors"

    @property
    def registers(self) -> int:
        """The number of vector registers."""
        return 32 if self.is_arm or self.bits == 512 else 16

    def width(self, dtype: str) -> int:
        """Return the number of float64 or float32 numbers in a vector register."""
        return self.bits // (64 if dtype == "float64" else 32)

    def machine(self, level: int = 2) -> llvm.TargetMachine:
        """Return LLVM's code generator with an optimisation ``level`` from 0 to 3."""
        initialize()
        # Position-independent small code: constants are next to the code and are addressed without extra instructions.
        return llvm.Target.from_triple(self.triple).create_target_machine(
            cpu=self.cpu, features=self.features, opt=level, reloc="pic", codemodel="small", jit=True
        )

    def objects(self, modules: Sequence[str], level: int = 2) -> list[bytes]:
        """Return the object code of each LLVM module."""
        machine = self._machines(level)
        return [bytes(machine(module).emit_object(self._parse(module))) for module in modules]

    def assembly(self, modules: Sequence[str], level: int = 2) -> str:
        """Return the assembly text of LLVM modules."""
        machine = self._machines(level)
        return "\n".join(str(machine(module).emit_assembly(self._parse(module))) for module in modules)

    def _machines(self, level: int) -> Callable[[str], llvm.TargetMachine]:
        """Return a function that maps a module to its code generator.

        With planned registers, there is nothing to optimise on AArch64: without optimisation, LLVM generates the same
        instructions in a tenth of the time. On x86-64, it would then copy registers and would not use memory operands.
        """
        made = cache(self.machine)
        return lambda item: made(0 if self.is_arm and item.startswith(PLANNED_MARK) else level)

    def _parse(self, text: str) -> llvm.ModuleRef:
        module = llvm.parse_assembly(text)
        module.triple = self.triple
        if "windows" in self.triple:
            # JITLink registers stack unwinding tables (.eh_frame) with __register_frame, which does not exist on
            # Windows. Exceptions never pass through this code, so it needs no such tables.
            for function in module.functions:
                if not function.is_declaration:
                    function.add_function_attribute("nounwind")
        return module


@cache
def initialize() -> None:
    """Initialise LLVM's code generators for all processors and GPUs."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


def versions() -> tuple[str, str]:
    """Return the versions of LLVM and llvmlite."""
    return ".".join(map(str, llvm.llvm_version_info)), llvmlite.__version__


_LINUX, _ARM_LINUX = "x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"

TARGETS = {
    "SSE2": Target(_LINUX, "x86-64"),
    "AVX2": Target(_LINUX, "haswell", 256),
    "AVX-512": Target(_LINUX, "skylake-avx512", 512),
    "NEON": Target(_ARM_LINUX, "generic"),
    "Neoverse N1": Target(_ARM_LINUX, "neoverse-n1"),
    "Apple M1": Target("arm64-apple-macosx", "apple-m1"),
    "Windows, AVX2": Target("x86_64-pc-windows-msvc-elf", "haswell", 256),
}
"""Processors to compare code on, by name."""


@cache
def host() -> Target:
    """Return the processor of this machine."""
    try:
        features = llvm.get_host_cpu_features().flatten()
    except RuntimeError:  # LLVM cannot query features on every platform, but the processor name implies most of them
        features = ""
    bits = 512 if "+avx512f" in features else 256 if "+avx2" in features else 128
    triple = llvm.get_default_triple()
    if sys.platform == "win32" and not triple.endswith("-elf"):
        triple += "-elf"  # LLVM's just-in-time linker cannot read Windows object files
    return Target(triple, llvm.get_host_cpu_name(), bits, features)


if __name__ == "__main__":
    sys.stdout.buffer.write(pickle.dumps(host().objects(*pickle.load(sys.stdin.buffer))))
