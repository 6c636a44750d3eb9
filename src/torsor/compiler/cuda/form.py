"""The two forms of a kernel: for the card, and for this machine's processor, where tests run it thread by thread."""

from collections.abc import Sequence
from dataclasses import dataclass

from torsor.compiler.cuda.card import WARP

PHASES = ("take", "compute", "give")
"""The parts of a kernel, between which the threads of a warp wait for each other."""

_REGISTERS = "tid", "ctaid", "ntid"


@dataclass(frozen=True)
class Form:
    """What differs between the forms: pointers, and how a thread learns its number.

    On the card one function does all ``PHASES``. On the processor each is a function of the number of the thread and of
    the shared memory of its warp.
    """

    on_card: bool

    @property
    def memory(self) -> str:
        """The type of pointers to arrays."""
        return "ptr addrspace(1)" if self.on_card else "ptr"

    @property
    def shared(self) -> str:
        """The type of pointers to shared memory."""
        return "ptr addrspace(3)" if self.on_card else "ptr"

    def start(self, shared: int) -> list[str]:
        """Return the instructions that set %first (the first state of the warp), %lane and %tile.

        ``shared`` is the shared memory of a warp, in bytes.
        """
        if not self.on_card:
            return [
                f"  %first = and i64 %thread, {-WARP}",
                f"  %lane = and i64 %thread, {WARP - 1}",
            ]
        lines = []
        for name in _REGISTERS:
            lines.append(f"  %{name}.x = call i32 @llvm.nvvm.read.ptx.sreg.{name}.x()")
            lines.append(f"  %{name} = zext i32 %{name}.x to i64")
        lines += [
            f"  %warp = and i64 %tid, {-WARP}",
            "  %before = mul i64 %ctaid, %ntid",
            "  %first = add i64 %before, %warp",
            f"  %lane = and i64 %tid, {WARP - 1}",
        ]
        lines.append(f"  %place = mul i64 %warp, {shared // WARP}")
        lines.append("  %tile = getelementptr i8, ptr addrspace(3) @tile, i64 %place")
        return lines

    def wait(self) -> list[str]:
        """Return the instruction that lets the threads of a warp wait for each other."""
        return ["  call void @llvm.nvvm.bar.warp.sync(i32 -1)"] if self.on_card else []

    def head(self, name: str, arrays: int, attributes: Sequence[str] = ()) -> str:
        """Return the head of a function: its name and its parameters."""
        given = ", ".join(f"i64 %p.{k}, i64 %b.{k}, i64 %e.{k}" for k in range(arrays))
        given = f"i64 %states, {given}" if arrays else "i64 %states"
        if self.on_card:
            return f"define ptx_kernel void @{name}({given}) {' '.join(attributes)} {{"
        return f"define void @{name}(i64 %thread, ptr %tile, {given}) {{"

    def declarations(self) -> list[str]:
        """Return the declarations of what the instructions above use."""
        if not self.on_card:
            return []
        lines = [f"declare i32 @llvm.nvvm.read.ptx.sreg.{name}.x()" for name in _REGISTERS]
        lines.append("declare void @llvm.nvvm.bar.warp.sync(i32)")
        lines.append("@tile = external addrspace(3) global [0 x i8], align 16")
        return lines


CARD, PROCESSOR = Form(True), Form(False)
