"""Gravity and inverse dynamics of the UR5 on a Cortex-M4F in float32: size, stack and emulated cycles.

    python benchmarks/cortex_m.py

The script needs the Debian packages gcc-arm-none-eabi, libnewlib-arm-none-eabi and qemu-system-arm. The exported C is
compiled for the core, linked with newlib, and run by QEMU (machine mps2-an386) for random states. The stack is filled
with a pattern before a call, and the part that the call overwrites is its stack use. QEMU does not count cycles: it
writes the address of each executed instruction, and the cycles of these instructions are taken from the tables of the
Cortex-M4 Technical Reference Manual (3.3.1 and 7.2.3), for memory without wait states. There, the pipeline refill after
a branch, P, takes 1 to 3 cycles; here, it takes 3. If the next instruction uses a result of the floating-point unit,
one cycle is added.
"""

import re
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

import torsor

CLOCK = 168e6  # Hz, of an STM32F407
WANTED = 10e3  # Hz
STATES = 50
NAMES = ("gravity_force", "inverse_dynamics")
CORE = ["-mcpu=cortex-m4", "-mthumb", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard"]
FLAGS = ["-std=c99", "-O2", "-Wall", "-Wextra", "-Werror", "-Wdouble-promotion", "-fstack-usage", "-ffp-contract=off"]
REFILL = 3  # P of the manual

MEMORY = """
MEMORY { FLASH (rx) : ORIGIN = 0, LENGTH = 1M   RAM (rwx) : ORIGIN = 0x20000000, LENGTH = 128K }
SECTIONS {
    .text : { KEEP(*(.vectors)) *(.text*) *(.rodata*) } > FLASH
    .data : { *(.data*) } > RAM
    .bss : { *(.bss*) *(COMMON) } > RAM
}
"""
PROGRAM = """
#include "arm.h"
#include "states.h"
#include <stdint.h>
static void told(const char *text)
{
    register uint32_t r0 __asm__("r0") = 4;  /* SYS_WRITE0 of semihosting */
    register const char *r1 __asm__("r1") = text;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}
static void word(uint32_t number)
{
    char text[10] = "00000000 ";
    for (int k = 7; k >= 0; --k, number >>= 4) text[k] = "0123456789abcdef"[number & 15u];
    told(text);
}
static void painted(volatile uint32_t *top) { for (int k = 1; k <= 512; ++k) top[-k] = 0xa5a5a5a5u; }
static uint32_t depth(volatile uint32_t *top)
{
    uint32_t k = 512;
    while (k > 0 && top[-(int)k] == 0xa5a5a5a5u) --k;
    return 4u * k;
}
#define STACK ((volatile uint32_t *)0x2001f000)  /* below the stack of main, where calls have theirs */
typedef void (*Call)(const float *state, float *out);
void call_gravity_force(const float *state, float *out) { gravity_force(state, out); }
void call_inverse_dynamics(const float *state, float *out) { inverse_dynamics(state, state + 6, state + 12, out); }
uint32_t on_stack(Call call, const float *state, float *out, volatile uint32_t *top);
__asm__(".thumb_func\\n.global on_stack\\non_stack:\\n push {r4, lr}\\n mov r4, sp\\n mov sp, r3\\n mov r3, r0\\n"
        " mov r0, r1\\n mov r1, r2\\n blx r3\\n mov sp, r4\\n pop {r4, pc}\\n");
int main(void)
{
    static const Call calls[2] = {call_gravity_force, call_inverse_dynamics};
    for (int call = 0; call < 2; ++call) {
        for (int k = 0; k < STATES; ++k) {
            union { float number[6]; uint32_t bits[6]; } out;
            painted(STACK);
            on_stack(calls[call], states[k], out.number, STACK);
            word(depth(STACK));
            for (int j = 0; j < 6; ++j) word(out.bits[j]);
            told("\\n");
        }
    }
    return 0;
}
__attribute__((noreturn)) void reset(void)
{
    *(volatile uint32_t *)0xe000ed88 |= 0xfu << 20;  /* the floating-point unit */
    __asm__ volatile("dsb\\nisb");
    main();
    register uint32_t r0 __asm__("r0") = 0x18, r1 __asm__("r1") = 0x20026;  /* SYS_EXIT: the application ends */
    __asm__ volatile("bkpt 0xab" : : "r"(r0), "r"(r1));
    for (;;) {}
}
__attribute__((section(".vectors"), used)) static void *const vectors[2] = {(void *)0x20020000, (void *)reset};
"""


class Instruction(NamedTuple):
    """An instruction of the disassembly: its name, its operands as text, and its length in bytes."""

    name: str
    operands: str
    length: int


class Row(NamedTuple):
    """A row of the table: bytes of code and stack; for the slowest call, instructions, cycles and cycles without sines.

    The error is the largest one, relative to the largest force.
    """

    name: str
    code: int
    stack: int
    instructions: int
    cycles: int
    own: int
    error: float


def run(*command: str | Path) -> str:
    """Run a program and return its output; errors contain the output."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise RuntimeError(f"{command[0]}: {done.stdout}{done.stderr}")
    return done.stdout or done.stderr  # QEMU writes what the program says to standard error


def built(folder: Path, robot: torsor.Robot, states: np.ndarray) -> Path:
    """Write and compile the program, and return it."""
    torsor.export.c(robot, folder, NAMES, dtype="float32", name="arm")
    rows = ",\n".join("{" + ", ".join(f"{float(each).hex()}f" for each in row) + "}" for row in states)
    declared = f"#define STATES {len(states)}\nstatic const float states[STATES][{states.shape[1]}] = {{\n{rows}}};\n"
    for name, text in (("states.h", declared), ("main.c", PROGRAM), ("memory.ld", MEMORY)):
        (folder / name).write_text(text)
    run("arm-none-eabi-gcc", *CORE, *FLAGS, "-c", folder / "arm.c", "-o", folder / "arm.o")
    link: list[str | Path] = ["-nostartfiles", "-Wl,--gc-sections", "-ffreestanding", "-T", folder / "memory.ld"]
    sources = [folder / "main.c", folder / "arm.o"]
    program = folder / "program"
    run("arm-none-eabi-gcc", *CORE, "-std=gnu99", "-O1", *link, *sources, "-lm", "-lc", "-lgcc", "-o", program)
    return program


def disassembled(program: Path) -> dict[int, Instruction]:
    """Return the instructions of a program by their addresses."""
    found = {}
    for line in run("arm-none-eabi-objdump", "-d", program).splitlines():
        parts = re.match(r"\s*([0-9a-f]+):\t([0-9a-f ]+?)\s*\t(\S+)\s*([^;@<]*)", line)
        if parts:
            name = re.sub(r"\.[nw]$", "", parts[3])
            found[int(parts[1], 16)] = Instruction(name, parts[4].strip(), len(parts[2].replace(" ", "")) // 2)
    return found


def sizes(program: Path) -> dict[str, tuple[int, int]]:
    """Return the address and length of each symbol of a program."""
    rows = (line.split() for line in run("arm-none-eabi-nm", "-S", program).splitlines())
    return {row[3]: (int(row[0], 16) & ~1, int(row[1], 16)) for row in rows if len(row) == 4}


def registers(operands: str) -> int:
    """Return how many registers a list such as {r4, r6-r8} has."""
    listed = re.search(r"\{(.*)\}", operands)
    spans = (re.findall(r"\d+", each) for each in listed[1].split(",")) if listed else ()
    return sum(int(each[1]) - int(each[0]) + 1 if len(each) == 2 else 1 for each in spans)


ARITHMETIC = re.compile(r"v(add|sub|n?mul|n?ml[as]|fn?m[as]|div|sqrt|cvtr?)\b")


def cycles_of(instruction: Instruction, after: Instruction, is_branched: bool) -> int:
    """Return the cycles of an instruction by the manual's tables; ``after`` is the next instruction."""
    name, operands, _ = instruction
    count = registers(operands)
    if ARITHMETIC.match(name):
        used = re.search(rf"\b{operands.split(',')[0]}\b", after.operands) is not None
        own = 14 if name.startswith(("vdiv", "vsqrt")) else 3 if re.match(r"v(n?ml[as]|fn?m[as])", name) else 1
        return own + used
    if re.match(r"(v?push|v?pop|v?ldm|v?stm)", name):
        return 1 + count + (REFILL if "pc" in operands else 0)
    if re.match(r"(ldrd|strd)", name):
        return 3
    if re.match(r"(ldr|str|vldr|vstr)", name):
        return 2 + (REFILL if operands.startswith("pc") else 0)
    if re.match(r"[su]div", name):
        return 12
    return 1 + (REFILL if is_branched else 0)


def calls(trace: Path, entry: int, caller: range) -> Iterator[list[int]]:
    """Yield the addresses that are executed from each entry into a function until its return."""
    current: list[int] = []
    for line in trace.read_text().splitlines():
        address = int(line.split("/")[1], 16) if line.startswith("Trace") else -1
        if current or address == entry:
            current.append(address)
        if current and address in caller:
            yield current
            current = []


def spent(path: list[int], code: dict[int, Instruction], within: Iterable[int]) -> int:
    """Return the cycles of the executed instructions whose addresses are in ``within``."""
    total, inside = 0, set(within)
    for address, after in pairwise(path):
        if address in inside:
            each = code[address]
            total += cycles_of(each, code[after], after != address + each.length)
    return total


def measured() -> tuple[list[Row], int, int]:
    """Return the table and the code bytes of Torsor's and newlib's sine; allocation and double precision are errors."""
    robot, rng = torsor.library.ur5(), np.random.default_rng(0)
    scale = np.repeat([np.pi, 2.0, 5.0], 6)  # rad, rad/s, rad/s^2
    states = (rng.uniform(-1.0, 1.0, (STATES, 18)) * scale).astype(np.float32)
    q, v, a = np.split(states.astype(float), 3, axis=1)
    wanted = {"gravity_force": robot.gravity_force(q), "inverse_dynamics": robot.inverse_dynamics(q, v, a)}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program, trace = built(folder, robot, states), folder / "trace.log"
        symbols, code = sizes(program), disassembled(program)
        heavy = [each for each in symbols if re.match(r"__aeabi_[dl]|malloc|free|_sbrk", each)]
        if heavy:
            raise RuntimeError(f"the program has {heavy}: double precision, or memory that is allocated")
        machine = ["-machine", "mps2-an386", "-nographic", "-semihosting-config", "enable=on,target=native"]
        traced: list[str | Path] = ["-singlestep", "-d", "exec,nochain", "-D", trace]
        told = run("qemu-system-arm", *machine, *traced, "-kernel", program)
        lines = [[int(each, 16) for each in line.split()] for line in told.splitlines() if line.strip()]
        data = run("arm-none-eabi-size", folder / "arm.o").splitlines()[1].split()
        if data[1:3] != ["0", "0"]:
            raise RuntimeError(f"the exported code has static data: {data}")
        rows = list[Row]()
        for number, (title, truth) in enumerate(wanted.items()):
            own = lines[number * STATES : (number + 1) * STATES]
            found = np.array([line[1:] for line in own], dtype=np.uint32).view(np.float32).astype(float)
            error = float(np.max(np.abs(found - truth)) / np.max(np.abs(truth)))
            (entry, length), (start, size) = symbols[title], symbols[f"call_{title}"]
            paths = list(calls(trace, entry, range(start, start + size)))
            worst = max(paths, key=lambda path: spent(path, code, path))
            cycles, inside = spent(worst, code, worst), spent(worst, code, range(entry, entry + length))
            rows.append(Row(title, length, max(line[0] for line in own), len(worst) - 1, cycles, inside, error))
        libm = sum(length for each, (_, length) in symbols.items() if re.search(r"sinf|cosf|rem_pio2|two_over", each))
    return rows, symbols["torsor_sine"][1], libm


def main() -> None:
    """Print the table of docs/deploy/microcontroller.md."""
    rows, sine, libm = measured()
    print("| function | code | stack | instructions | cycles | of these in sines | most calls a second | error |")
    print("|---|---|---|---|---|---|---|---|")
    for name, code, stack, instructions, cycles, own, error in rows:
        figures = f"{instructions} | {cycles} | {cycles - own} | {CLOCK / cycles / 1e3:.0f} kHz | {error:.0e}"
        print(f"| `{name}` | {code} bytes | {stack} bytes | {figures} |")
    both, most = sum(row.cycles for row in rows), CLOCK / WANTED
    print(f"Sines: {sine} bytes of code; newlib's, for angles beyond 1000 rad: {libm} bytes. Static memory: none.")
    print(f"Both at {WANTED / 1e3:.0f} kHz take {both} of {most:.0f} cycles ({100 * both / most:.0f} %).")
    if any(row.error > 1e-5 for row in rows):
        raise SystemExit("a result is further from float64 than float32 explains")


if __name__ == "__main__":
    main()
