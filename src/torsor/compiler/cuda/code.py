"""LLVM code of a GPU kernel, in which each thread computes one state, from the rules of the machine code.

A kernel takes the number of states, for each array its address and its strides (bytes between states and entries), and
the address of each table. Threads beyond the last state recompute it and write the same numbers to the same location,
which avoids a branch.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import casadi as ca

from torsor.compiler.cuda.gpu import WARP
from torsor.compiler.cuda.large_functions import Budget, Part, budget, plan_spills
from torsor.compiler.cuda.layout import GPU, PHASES, Form, Staged, tiles, write_copies
from torsor.compiler.llvm.angles import sin_cos_huge
from torsor.compiler.llvm.elementary import EVERY_RULE
from torsor.compiler.llvm.rules import Emitter, Scalar
from torsor.compiler.program import FREE_OPERATIONS, Operation, Program, no_rule

# sin and cos on a GPU, without a branch for typical angles, and correct for huge angles.
#
# A call within a kernel, even a rare one, needs registers for all live values, and branches prevent the compiler from
# interleaving independent operations. Nearly all angles are inputs. Their sines and cosines are therefore computed at
# the start, where no values are live, and recomputed if one of the angles is huge. In large functions, they are stored
# in shared memory until they are used.


class CudaEmitter(Emitter):
    """Emitter of instructions for one state (vectors of length 1), without the C library, which GPUs lack."""

    def one_huge(self, x: str) -> str:
        """Return a bit that is set if an angle is too large for the standard reduction."""
        return self.put(f"extractelement {self.bits} {self.is_huge(x)}, i64 0")

    def any_sin_cos(self, x: str) -> tuple[str, str]:
        """Return sin and cos of an angle that may be huge."""
        sin, cos = self.sin_cos(x)
        bit, label, before = self.one_huge(x), self._next, self.block
        self.lines += [f"  br i1 {bit}, label %slow.{label}, label %done.{label}, !prof !1", f"slow.{label}:"]
        slow = sin_cos_huge(self, x)
        self.lines += [f"  br label %done.{label}", f"done.{label}:"]
        self.block = f"done.{label}"
        pairs = zip((sin, cos), slow, strict=True)
        either = [f"phi {self.vector} [ {a}, %{before} ], [ {b}, %slow.{label} ]" for a, b in pairs]
        return self.put(either[0]), self.put(either[1])


def angles_of(program: Program, most: int) -> dict[int, tuple[int | None, int | None]]:
    """Return up to ``most`` inputs that are angles, with the values of their sines and cosines."""
    result: dict[int, tuple[int | None, int | None]] = {}
    for index, operation in enumerate(program.operations):
        if operation.code in (ca.OP_SIN, ca.OP_COS):
            angle = operation.arguments[0]
            if program.operations[angle].code == ca.OP_INPUT and (angle in result or len(result) < most):
                sin, cos = result.get(angle, (None, None))
                result[angle] = (index, cos) if operation.code == ca.OP_SIN else (sin, index)
    return result


def write_angles(
    e: CudaEmitter, values: Sequence[str], store: Callable[[int, str], None] | None = None
) -> list[tuple[str, str]]:
    """Write the sines and cosines of angles and return their names; ``store`` stores them in slots instead."""

    def put(k: int, pair: tuple[str, str]) -> tuple[str, str]:
        if store is not None:
            for slot, value in enumerate(pair, start=2 * k):
                store(slot, value)
        return pair

    usual, some = list[tuple[str, str]](), "false"
    for k, x in enumerate(values):
        some = e.put(f"or i1 {some}, {e.one_huge(x)}")
        usual.append(put(k, e.sin_cos(x)))
    before = e.block
    e.lines += [f"  br i1 {some}, label %huge.some, label %huge.none, !prof !1", "huge.some:"]
    e.block = "huge.some"
    right = [put(k, e.any_sin_cos(x)) for k, x in enumerate(values)]
    last = e.block
    e.lines += ["  br label %huge.none", "huge.none:"]
    e.block = "huge.none"
    if store is not None:
        return []

    def either(a: str, b: str) -> str:
        return e.put(f"phi {e.vector} [ {a}, %{before} ], [ {b}, %{last} ]")

    pairs = zip(usual, right, strict=True)
    return [(either(sin, right_sin), either(cos, right_cos)) for (sin, cos), (right_sin, right_cos) in pairs]


NAME = "torsor"
"""The name of the kernel in PTX."""

_THREADS = (128, 64, WARP)  # threads per block, in order of preference
_BLOCK_SHARED = 56 * 1024  # bytes of shared memory per block; four blocks fill an SM of Hopper
_MAX_ANGLES = 16  # largest number of angles computed at the start
_WARP_SHARED = 48 * 1024  # maximum number of bytes per warp, which every GPU has


@dataclass(frozen=True)
class Plan:
    """The plan of a kernel: ``staged`` has a flag for each array (inputs first) that states whether it is staged.

    ``budget`` contains the resources of a thread; without it, the size of the program determines them.
    """

    staged: tuple[bool, ...]
    budget: Budget | None = None


class Kernel(NamedTuple):
    """The LLVM module of a kernel; ``shared`` is the shared memory of a warp, in bytes."""

    module: str
    shared: int


def threads_of_block(shared: int) -> int:
    """Return the number of threads per block if each warp needs ``shared`` bytes of shared memory."""
    return next(item for item in _THREADS if item == WARP or shared * item // WARP <= _BLOCK_SHARED)


class _Kernel:
    """Builder of the code of one kernel."""

    def __init__(self, part: Part, scalar: Scalar, plan: Plan, form: Form):
        program, self.zeros = part
        self.program, self.scalar, self.form = program, scalar, form
        self.budget = plan.budget or budget(program, scalar.size)
        self.entries = [rows * columns for rows, columns in (*program.inputs, *program.outputs)]
        self.tiles, self.tile_bytes = tiles(self.entries, scalar.size, plan.staged)
        self.inputs = len(program.inputs)
        slots = (_WARP_SHARED - self.tile_bytes) // (WARP * scalar.size)
        self.angles = angles_of(program, slots // 4)
        near = [tile is not None for tile in self.tiles[: self.inputs]]
        # In small functions, sines and cosines stay in registers.
        self.small = self.budget.kept >= len(program.operations) and len(self.angles) <= _MAX_ANGLES
        waiting = [] if self.small else [value for pair in self.angles.values() for value in pair]
        self.spills = plan_spills(program, self.budget, slots, waiting, near)
        self.shared = self.tile_bytes + self.spills.slots * WARP * scalar.size
        self.called: dict[str, str] = {}  # code of the elementary functions in use, by name
        self.begin()

    def begin(self) -> None:
        """Begin a function, without any values computed or loaded."""
        self.emitter = CudaEmitter(self.scalar, 1)
        self.names: dict[int, str] = {}
        self.pairs: dict[int, tuple[str, str]] = {}
        self.loaded: dict[tuple[int, int], str] = {}

    def staged(self, inputs: bool) -> list[Staged]:
        """Return the staged inputs or outputs."""
        numbers = range(self.inputs) if inputs else range(self.inputs, len(self.entries))
        return [Staged(k, self.entries[k], tile) for k in numbers if (tile := self.tiles[k]) is not None]

    def start(self) -> None:
        """Write the beginning of a function, which computes the state of the thread and the addresses of its arrays."""
        e, form = self.emitter, self.form
        e.lines += form.start(self.shared)
        e.lines += [
            "  %inside = icmp slt i64 %first, %states",
            "  br i1 %inside, label %begin, label %end",
            "begin:",
            "  %left = sub i64 %states, %first",
            "  %last = sub i64 %states, 1",
            "  %full = icmp sge i64 %left, 32",
            "  %count = select i1 %full, i64 32, i64 %left",
            "  %mine = add i64 %first, %lane",
            "  %exists = icmp slt i64 %mine, %states",
            "  %state = select i1 %exists, i64 %mine, i64 %last",
            "  %row = sub i64 %state, %first",
        ]
        e.block = "begin"

    def places(self) -> None:
        """Write the address of the thread's state in each array."""
        e, form = self.emitter, self.form
        for k, tile in enumerate(self.tiles):
            if tile is None:
                e.lines += [
                    f"  %skip.{k} = mul i64 %state, %b.{k}",
                    f"  %from.{k} = add i64 %p.{k}, %skip.{k}",
                    f"  %array.{k} = inttoptr i64 %from.{k} to {form.memory}",
                ]
            else:
                e.lines += [
                    f"  %low.{k} = mul i64 %row, {tile.pitch}",
                    f"  %at.{k} = add i64 %low.{k}, {tile.offset}",
                    f"  %array.{k} = getelementptr i8, {form.shared} %tile, i64 %at.{k}",
                ]

        kind = self.form.memory
        e.lines += [f"  %table.{k} = inttoptr i64 %t.{k} to {kind}" for k in range(len(self.program.tables))]
        e.lines += [
            f"  %slots.lane = mul i64 %lane, {self.scalar.size}",
            f"  %slots.skip = add i64 %slots.lane, {self.tile_bytes}",
            f"  %slots = getelementptr i8, {form.shared} %tile, i64 %slots.skip",
        ]

    def slot(self, number: int) -> str:
        """Return a typed pointer to a slot of the thread; slots of the threads of a warp are adjacent."""
        skip = number * WARP * self.scalar.size
        return f"{self.form.shared} {self.emitter.put(f'getelementptr i8, {self.form.shared} %slots, i64 {skip}')}"

    def store(self, value: str, pointer: str) -> None:
        """Write the instruction that stores a value."""
        self.emitter.lines.append(f"  store {self.emitter.vector} {value}, {pointer}, align {self.scalar.size}")

    def pointer(self, k: int, entry: int) -> str:
        """Return a typed pointer to an entry of the thread's state."""
        e = self.emitter
        if self.tiles[k] is not None:
            place = e.put(f"getelementptr i8, {self.form.shared} %array.{k}, i64 {entry * self.scalar.size}")
            return f"{self.form.shared} {place}"
        if entry == 0:
            return f"{self.form.memory} %array.{k}"
        skip = e.put(f"mul i64 %e.{k}, {entry}")
        return f"{self.form.memory} {e.put(f'getelementptr i8, {self.form.memory} %array.{k}, i64 {skip}')}"

    def load(self, k: int, entry: int) -> str:
        """Return an entry of an input; adjacent entries of a tile are read together."""
        e, tile, size, kind = self.emitter, self.tiles[k], self.scalar.size, self.scalar.name
        if (k, entry) in self.loaded:
            return self.loaded[k, entry]
        if tile is None:
            load = f"load {e.vector}, {self.pointer(k, entry)}, align {size}, !invariant.load !0"
            self.loaded[k, entry] = e.put(load)
        else:
            many = tile.access // size  # number of entries per access of shared memory
            first, group = entry // many * many, f"<{many} x {kind}>"
            values = e.put(f"load {group}, {self.pointer(k, first)}, align {tile.access}")
            for j in range(many):
                one = e.put(f"extractelement {group} {values}, i64 {j}")
                self.loaded[k, first + j] = e.put(f"insertelement {e.vector} poison, {kind} {one}, i64 0")
        return self.loaded[k, entry]

    def value(self, index: int) -> str:
        """Return the name of a value."""
        operation = self.program.operations[index]
        if operation.code == ca.OP_CONST:
            return self.emitter.constant(operation.number)
        if operation.code == ca.OP_INPUT:
            return self.load(*operation.arguments)
        return self.names[index]

    def start_angles(self) -> None:
        """Write the first loads, and the sines and cosines of input angles."""
        early = [entry for entry, slot in self.spills.loads.get(0, ()) if slot is None]
        for item in early:  # these loads overlap
            self.value(item)
        if not self.angles:
            return
        values = [self.value(angle) for angle in self.angles]
        if self.small:
            self.pairs = dict(zip(self.angles, write_angles(self.emitter, values), strict=True))
        else:
            write_angles(self.emitter, values, lambda slot, value: self.store(value, self.slot(slot)))
            for angle in set(self.angles) - set(early):
                self.drop(angle)

    def fetch(self, index: int, slot: int | None) -> None:
        """Write the instruction that loads a value from its slot, or an input."""
        if slot is None:
            self.value(index)
        else:
            e = self.emitter
            self.names[index] = e.put(f"load {e.vector}, {self.slot(slot)}, align {self.scalar.size}")

    def drop(self, index: int) -> None:
        """Forget the name of a value, so that it is reloaded before its next use."""
        self.names.pop(index, None)
        operation = self.program.operations[index]
        if operation.code == ca.OP_INPUT:
            del self.loaded[operation.arguments[0], operation.arguments[1]]

    def compute(self, index: int, operation: Operation) -> None:
        """Write one operation."""
        if operation.code in FREE_OPERATIONS or index in self.spills.first:
            return
        if operation.code in (ca.OP_SIN, ca.OP_COS):
            argument = operation.arguments[0]
            if argument not in self.pairs:
                self.pairs[argument] = self.emitter.any_sin_cos(self.value(argument))
            self.names[index] = self.pairs[argument][operation.code == ca.OP_COS]
        elif operation.code == ca.OP_CALL:
            number = int(operation.number)
            count, place = len(self.program.tables[number]) // 8, self.value(operation.arguments[0])
            self.names[index] = self.emitter.entry(f"{self.form.memory} %table.{number}", count, place)
        elif operation.code in EVERY_RULE:
            arguments = [self.value(argument) for argument in operation.arguments]
            self.names[index] = EVERY_RULE[operation.code](self.emitter, *arguments)
        else:
            raise NotImplementedError(no_rule(self.program.name, operation.code))

    def body(self) -> None:
        """Write all operations; results are stored immediately."""
        targets, spills = self.program.targets, self.spills
        self.places()
        self.start_angles()

        def give(value: str, places: Sequence[tuple[int, int]]) -> None:
            for k, entry in places:
                self.store(value, self.pointer(self.inputs + k, entry))

        for index, operation in enumerate(self.program.operations):
            for item, slot in spills.loads.get(index, ()):
                self.fetch(item, slot)
            self.compute(index, operation)
            if index in targets:
                if index in spills.first:
                    self.fetch(index, spills.first[index])
                give(self.value(index), targets[index])
            for item, slot in spills.stores.get(index, ()):
                self.store(self.value(item), self.slot(slot))
            for item in spills.dropped.get(index, ()):
                self.drop(item)
        give(self.emitter.constant(0.0), self.zeros)

    def function(self, name: str, phases: Sequence[str], attributes: Sequence[str] = ()) -> str:
        """Return the text of a function for the given phases."""
        self.begin()
        self.start()
        e = self.emitter
        for phase in phases:
            if phase == "take":
                write_copies(e, self.form, self.staged(True), True)
            elif phase == "compute":
                e.lines += self.form.wait() if self.staged(True) else []
                self.body()
            else:
                e.lines += self.form.wait() if self.staged(False) else []
                write_copies(e, self.form, self.staged(False), False)
        self.called |= e.functions
        head = self.form.head(name, len(self.entries), len(self.program.tables), attributes)
        return "\n".join([head, "entry:", *e.lines, "  br label %end", "end:", "  ret void", "}"])


def write_kernel(part: Part, dtype: str, plan: Plan, form: Form = GPU) -> Kernel:
    """Return the LLVM module of a kernel."""
    kernel = _Kernel(part, Scalar(dtype), plan, form)
    if form.on_gpu:
        attributes = [f'"nvvm.maxntid"="{_THREADS[0]}"']
        if kernel.budget.registers is not None:
            attributes.append(f'"nvvm.maxnreg"="{kernel.budget.registers}"')
        functions = [kernel.function(NAME, PHASES, attributes)]
    else:
        functions = [kernel.function(phase, [phase]) for phase in PHASES]
    e, counts = kernel.emitter, {"sqrt": 1, "fabs": 1, "floor": 1, "ceil": 1, "copysign": 2, "fma": 3}
    lines = [f"declare {e.vector} @llvm.{name}.{e.suffix}({', '.join([e.vector] * n)})" for name, n in counts.items()]
    lines += [*form.declarations(), *functions]
    lines += [*kernel.called.values(), "!0 = !{}", '!1 = !{!"branch_weights", i32 1, i32 100000}', ""]
    return Kernel("\n".join(lines), kernel.shared)
