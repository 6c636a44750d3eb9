"""LLVM code of a kernel: one thread computes one state, in one function, from the rules that machine code is made of.

A kernel takes the number of states, and of each array its address and the bytes between states and between entries.
Threads beyond the last state compute it once more and write the same numbers to the same place, which takes no branch.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca

from torsor.compiler.cuda.angles import CudaEmitter, write_test
from torsor.compiler.cuda.form import CARD, PHASES, Form
from torsor.compiler.cuda.layout import Tile, tiles
from torsor.compiler.cuda.card import WARP
from torsor.compiler.cuda.spills import Spills, plan_spills
from torsor.compiler.cuda.split import Part
from torsor.compiler.cuda.staging import Staged, write_copies
from torsor.compiler.llvm.huge_angles import sin_cos_huge
from torsor.compiler.llvm.elementary import EVERY_RULE
from torsor.compiler.llvm.rules import Emitter, Scalar
from torsor.compiler.program import Operation, Program

# Few inputs are loaded before anything else. Many of them would fill the registers, which pays in long functions only:
# on an H200 it takes inverse dynamics of a humanoid from 4.5e9 to 4.1e9 states a second, forward dynamics from 1.4e9 to
# 2.3e9.
FEW, MANY = 48, 5000
NAME = "torsor"
"""The name of the kernel in PTX."""

_FREE = {ca.OP_INPUT, ca.OP_CONST}


@dataclass(frozen=True)
class Plan:
    """How a program becomes a kernel: which arrays are staged, threads of a block, and registers of a thread at most.

    ``staged`` has inputs first. ``registers`` is None where the compiler of the driver chooses. ``huge``: sin and cos
    are right for huge angles too; without, they are wrong there, which shows what the test for such angles costs.
    """

    staged: tuple[bool, ...]
    threads: int = 128
    registers: int | None = None
    huge: bool = True
    kept: int | None = None
    volatile: str = ""
    near: int = 20
    far: int = 300


class _Kernel:
    """The code of one kernel while it is written."""

    def __init__(self, part: Part, scalar: Scalar, plan: Plan, form: Form):
        program, self.zeros = part
        self.program, self.scalar, self.plan, self.form = program, scalar, plan, form
        self.entries = [rows * columns for rows, columns in (*program.inputs, *program.outputs)]
        self.tiles, self.tile_bytes = tiles(self.entries, scalar.size, plan.staged)
        self.inputs = len(program.inputs)
        self.waiting = _angles(program) if plan.kept else {}
        self.spills = plan_spills(program, plan.kept, [v for entries in self.waiting.values() for pair in entries.values() for v in pair]) if plan.kept else Spills({}, {}, {}, {}, 0)
        self.slots_at = self.tile_bytes
        self.tile_bytes += self.spills.slots * WARP * scalar.size
        self.called: dict[str, str] = {}  # elementary functions, by name, with their code
        self.begin()

    def begin(self) -> None:
        """Begin a function."""
        self.emitter = CudaEmitter(self.scalar, self.plan.huge)
        self.names: dict[int, str] = {}
        self.pairs: dict[int, tuple[str, str]] = {}
        self.loaded: dict[tuple[int, int], str] = {}
        self.angles: dict[int, str] = {}  # inputs that are angles, none of them huge

    def staged(self, inputs: bool) -> list[Staged]:
        """Return the staged inputs, or the staged outputs."""
        numbers = range(self.inputs) if inputs else range(self.inputs, len(self.entries))
        return [Staged(k, self.entries[k], tile) for k in numbers if (tile := self.tiles[k]) is not None]

    def start(self) -> None:
        """Write what each function begins with: the state of the thread, and where the arrays of it are."""
        e, form = self.emitter, self.form
        e.lines += form.start(self.plan.threads, self.tile_bytes)
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

    def slots_place(self) -> None:
        self.emitter.lines += [
            f"  %slots.lane = mul i64 %lane, {self.scalar.size}",
            f"  %slots.skip = add i64 %slots.lane, {self.slots_at}",
            f"  %slots = getelementptr i8, {self.form.shared} %tile, i64 %slots.skip",
        ]

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
        """Return an entry of an input; from a tile, its neighbours are read with it."""
        e, tile = self.emitter, self.tiles[k]
        if (k, entry) not in self.loaded:
            if tile is None:
                self.loaded[k, entry] = e.put(
                    f"load {e.vector}, {self.pointer(k, entry)}, align {self.scalar.size}, !invariant.load !0"
                )
            else:
                self.load_group(k, entry, tile)
        return self.loaded[k, entry]

    def load_group(self, k: int, entry: int, tile: Tile) -> None:
        """Read as many entries as one access of shared memory has."""
        e, many = self.emitter, tile.access // self.scalar.size
        first = entry // many * many
        group = f"<{many} x {self.scalar.name}>"
        values = e.put(f"load {group}, {self.pointer(k, first)}, align {tile.access}")
        for j in range(many):
            one = e.put(f"extractelement {group} {values}, i64 {j}")
            self.loaded[k, first + j] = e.put(f"insertelement {e.vector} poison, {self.scalar.name} {one}, i64 0")

    def value(self, index: int) -> str:
        """Return the name of a value; inputs are loaded on first use."""
        if index not in self.names:
            operation = self.program.operations[index]
            if operation.code == ca.OP_CONST:
                return self.emitter.constant(operation.number)
            self.names[index] = self.load(*operation.arguments)
        return self.names[index]

    def compute(self, index: int, operation: Operation) -> None:
        """Write one operation."""
        if operation.code in _FREE:
            return
        if operation.code in (ca.OP_SIN, ca.OP_COS):
            argument = operation.arguments[0]
            if argument not in self.pairs:
                if argument in self.angles:
                    self.pairs[argument] = self.emitter.sin_cos(self.angles[argument])
                else:
                    self.pairs[argument] = self.emitter.any_sin_cos(self.value(argument))
            self.names[index] = self.pairs[argument][operation.code == ca.OP_COS]
        elif operation.code in EVERY_RULE:
            arguments = [self.value(argument) for argument in operation.arguments]
            self.names[index] = EVERY_RULE[operation.code](self.emitter, *arguments)
        else:
            raise NotImplementedError(f"{self.program.name}: no rule for CasADi's operation {operation.code}")

    def body(self) -> None:
        """Write all operations; a result is stored as soon as it is known."""
        e, wanted = self.emitter, _wanted(self.program)
        self.places()
        if self.spills.slots:
            self.slots_place()

        def give(value: str, places: Sequence[tuple[int, int]]) -> None:
            for k, entry in places:
                e.lines.append(f"  store {e.vector} {value}, {self.pointer(self.inputs + k, entry)}")
                e.lines[-1] += f", align {self.scalar.size}"

        taken = [index for index, operation in enumerate(self.program.operations) if operation.code == ca.OP_INPUT]
        if not self.plan.kept and (len(taken) <= FEW or len(self.program.operations) > MANY):  # their loads are under way together
            for index in taken:
                self.value(index)
        if self.plan.huge and not self.plan.kept:
            self.test_angles()
        spills = self.spills
        if spills.first:
            self.write_angles()
        ahead = self.ahead()
        for index, operation in enumerate(self.program.operations):
            for each, slot in ahead.get(index, ()):
                if slot is None:
                    self.names[each] = self.load(*self.program.operations[each].arguments)
                else:
                    self.names[each] = e.put(f"load {self.plan.volatile}{e.vector}, {self.slot(slot)}, align {self.scalar.size}")
            if index not in spills.first:
                self.compute(index, operation)
            elif index in wanted:
                self.names[index] = e.put(f"load {e.vector}, {self.slot(spills.first[index])}, align {self.scalar.size}")
            if index in wanted:
                give(self.value(index), wanted[index])
            for each, slot in spills.stores.get(index, ()):
                e.lines.append(f"  store {self.plan.volatile}{e.vector} {self.value(each)}, {self.slot(slot)}, align {self.scalar.size}")
            for each in spills.dropped.get(index, ()):
                self.names.pop(each, None)
                self.loaded.pop(self.program.operations[each].arguments, None)
        give(e.constant(0.0), self.zeros)

    def ahead(self) -> dict[int, list[tuple[int, int | None]]]:
        """Return the loads that are written before each operation."""
        found: dict[int, list[tuple[int, int | None]]] = {}
        free: dict[int, int] = {}  # after which operation a value left the registers
        held = set[int]()
        for index, operation in enumerate(self.program.operations):
            if operation.code in _FREE or index in self.spills.first:
                continue
            wanted: list[tuple[int, int | None]] = list(self.spills.loads.get(index, ()))
            for each in dict.fromkeys(operation.arguments):
                if self.program.operations[each].code == ca.OP_INPUT and each not in held:
                    held.add(each)
                    wanted.append((each, None))
            for each, slot in wanted:
                early = index - (self.plan.far if slot is None else self.plan.near)
                found.setdefault(max(free.get(each, 0), early), []).append((each, slot))
            for each in self.spills.dropped.get(index, ()):
                held.discard(each)
                free[each] = index + 1
        return found

    def slot(self, number: int | str) -> str:
        """Return a typed pointer to a slot of shared memory."""
        e, bytes_ = self.emitter, WARP * self.scalar.size
        skip = number * bytes_ if isinstance(number, int) else e.put(f"mul i64 {number}, {bytes_}")
        return f"{self.form.shared} {e.put(f'getelementptr i8, {self.form.shared} %slots, i64 {skip}')}"

    def write_angles(self) -> None:
        """Write sine and cosine of all angles that are inputs: they go to slots of shared memory.

        Nothing else is alive yet: the branch for huge angles needs no registers.
        """
        e, some, slot, values = self.emitter, "false", 0, []
        for k, entries in self.waiting.items():
            values += [(self.load(k, entry), slot + 2 * j) for j, entry in enumerate(entries)]
            slot += 2 * len(entries)
        for x, slot in values:
            some = e.put(f"or i1 {some}, {e.one_huge(x)}")
            self.store_pair(slot, e.sin_cos(x))
        e.lines += [f"  br i1 {some}, label %huge.some, label %huge.none, !prof !1", "huge.some:"]
        for x, slot in values:
            bit = e.one_huge(x)
            e.lines += [f"  br i1 {bit}, label %huge.{slot}, label %usual.{slot}, !prof !1", f"huge.{slot}:"]
            self.store_pair(slot, sin_cos_huge(e, x))
            e.lines += [f"  br label %usual.{slot}", f"usual.{slot}:"]
        e.lines += ["  br label %huge.none", "huge.none:"]
        e.block = "huge.none"
        self.loaded.clear()

    def store_pair(self, slot: int, pair: tuple[str, str]) -> None:
        e = self.emitter
        for j, value in enumerate(pair):
            e.lines.append(f"  store {e.vector} {value}, {self.slot(slot + j)}, align {self.scalar.size}")

    def test_angles(self) -> None:
        """Write the test for huge angles among the inputs, before anything else is alive."""
        operations = self.program.operations
        taken = dict.fromkeys(each.arguments[0] for each in operations if each.code in (ca.OP_SIN, ca.OP_COS))
        angles = [index for index in taken if operations[index].code == ca.OP_INPUT]
        self.angles = write_test(self.emitter, angles, self.value)

    def function(self, name: str, phases: Sequence[str], attributes: Sequence[str] = ()) -> str:
        """Return the text of a function that does some phases."""
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
        head = self.form.head(name, len(self.entries), attributes)
        return "\n".join([head, "entry:", *e.lines, "  br label %end", "end:", "  ret void", "}"])


def _angles(program: Program) -> dict[int, dict[int, list[int | None]]]:
    """Return the angles that are inputs: of each input the entries, with the values that are their sine and cosine."""
    found: dict[int, dict[int, list[int | None]]] = {}
    for index, each in enumerate(program.operations):
        if each.code in (ca.OP_SIN, ca.OP_COS):
            angle = program.operations[each.arguments[0]]
            if angle.code == ca.OP_INPUT:
                k, entry = angle.arguments
                found.setdefault(k, {}).setdefault(entry, [None, None])[each.code == ca.OP_COS] = index
    return found


def _wanted(program: Program) -> dict[int, list[tuple[int, int]]]:
    """Return, for each value that is a result, the (output, entry) where it is stored."""
    wanted: dict[int, list[tuple[int, int]]] = {}
    for k, indices in enumerate(program.results):
        for entry, index in enumerate(indices):
            if index is not None:
                wanted.setdefault(index, []).append((k, entry))
    return wanted


def write_kernel(part: Part, dtype: str, plan: Plan, form: Form = CARD) -> str:
    """Return the LLVM module of a kernel.

    Example:
        >>> from torsor.compiler.cuda.card import H200
        >>> from torsor.compiler.cuda.split import whole
        >>> from torsor.compiler.program import read_program
        >>> x = ca.SX.sym("x", 2)
        >>> part = whole(read_program(ca.Function("f", [x], [x[0] * x[1]])))
        >>> text = write_kernel(part, "float32", Plan((False, False)))
        >>> "mul.f32" in H200.ptx(text) or "mul.rn.f32" in H200.ptx(text)
        True
    """
    kernel = _Kernel(part, Scalar(dtype), plan, form)
    if form.on_card:
        attributes = [f'"nvvm.maxntid"="{plan.threads}"']
        if plan.registers is not None:
            attributes.append(f'"nvvm.maxnreg"="{plan.registers}"')
        functions = [kernel.function(NAME, PHASES, attributes)]
    else:
        functions = [kernel.function(phase, [phase]) for phase in PHASES]
    lines = [*_intrinsics(kernel.emitter), *form.declarations(kernel.tile_bytes), *functions]
    lines += [*kernel.called.values(), "!0 = !{}", '!1 = !{!"branch_weights", i32 1, i32 100000}', ""]
    return "\n".join(lines)


def _intrinsics(e: Emitter) -> list[str]:
    one = ("sqrt", "fabs", "floor", "ceil")
    lines = [f"declare {e.vector} @llvm.{name}.{e.suffix}({e.vector})" for name in one]
    lines.append(f"declare {e.vector} @llvm.copysign.{e.suffix}({e.vector}, {e.vector})")
    return [*lines, f"declare {e.vector} @llvm.fma.{e.suffix}({e.vector}, {e.vector}, {e.vector})"]
