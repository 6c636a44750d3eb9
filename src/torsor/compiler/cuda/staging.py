"""Row-major arrays through shared memory: a warp copies its 32 states in whole lines, and each thread reads its own."""

from collections.abc import Sequence
from typing import NamedTuple

from torsor.compiler.cuda.card import WARP
from torsor.compiler.cuda.form import Form
from torsor.compiler.cuda.layout import Tile
from torsor.compiler.llvm.rules import Emitter

_VECTOR = 16  # bytes that a thread copies at a time
_LOAD = "<4 x i32>"


class Staged(NamedTuple):
    """A staged array: its number among the parameters, its entries a state, and its tile."""

    number: int
    entries: int
    tile: Tile


def write_copies(e: Emitter, form: Form, arrays: Sequence[Staged], into_tile: bool) -> None:
    """Write the copies of staged arrays into their tiles, or back.

    A whole warp of dense arrays that begin at a multiple of 16 bytes is copied by 16 bytes; all else one by one.
    """
    if not arrays:
        return
    way = "in" if into_tile else "out"
    for each in arrays:
        k, row = each.number, each.entries * e.scalar.size
        e.lines += [
            f"  %{way}.skip.{k} = mul i64 %first, %b.{k}",
            f"  %{way}.from.{k} = add i64 %p.{k}, %{way}.skip.{k}",
            f"  %{way}.chunk.{k} = inttoptr i64 %{way}.from.{k} to {form.memory}",
            f"  %{way}.tile.{k} = getelementptr i8, {form.shared} %tile, i64 {each.tile.offset}",
            f"  %{way}.dense.{k} = icmp eq i64 %b.{k}, {row}",
            f"  %{way}.rest.{k} = and i64 %p.{k}, {_VECTOR - 1}",
            f"  %{way}.even.{k} = icmp eq i64 %{way}.rest.{k}, 0",
        ]
    whole = e.put(f"icmp eq i64 %count, {WARP}")
    for each in arrays:
        for condition in ("dense", "even"):
            whole = e.put(f"and i1 {whole}, %{way}.{condition}.{each.number}")
    e.lines += [f"  br i1 {whole}, label %{way}.lines, label %{way}.single", f"{way}.lines:"]
    _write_lines(e, form, arrays, way)
    e.lines += [f"  br label %{way}.done", f"{way}.single:"]
    e.block = f"{way}.single"
    for each in arrays:
        _write_single(e, form, each, way)
    e.lines += [f"  br label %{way}.done", f"{way}.done:"]
    e.block = f"{way}.done"


def _write_lines(e: Emitter, form: Form, arrays: Sequence[Staged], way: str) -> None:
    """Write copies by 16 bytes: first all loads, so that they are under way together, then all stores."""
    moves = []
    for each in arrays:
        row = each.entries * e.scalar.size
        vectors = WARP * row // _VECTOR
        for first in range(0, vectors, WARP):
            index = "%lane" if first == 0 else e.put(f"add i64 %lane, {first}")
            if first + WARP > vectors:  # threads that have none left repeat the last one
                inside = e.put(f"icmp slt i64 {index}, {vectors}")
                index = e.put(f"select i1 {inside}, i64 {index}, i64 {vectors - 1}")
            there = e.put(f"mul i64 {index}, {_VECTOR}")
            here = there
            if each.tile.pitch != row:
                rows = e.put(f"udiv i64 {index}, {row // _VECTOR}")
                padding = e.put(f"mul i64 {rows}, {each.tile.pitch - row}")
                here = e.put(f"add i64 {there}, {padding}")
            outer = e.put(f"getelementptr i8, {form.memory} %{way}.chunk.{each.number}, i64 {there}")
            inner = e.put(f"getelementptr i8, {form.shared} %{way}.tile.{each.number}, i64 {here}")
            pair = (form.memory, outer), (form.shared, inner)
            (kind, source), (other, goal) = pair if way == "in" else reversed(pair)
            moves.append((e.put(f"load {_LOAD}, {kind} {source}, align {_VECTOR}"), f"{other} {goal}"))
    e.lines += [f"  store {_LOAD} {value}, {goal}, align {_VECTOR}" for value, goal in moves]


def _write_single(e: Emitter, form: Form, each: Staged, way: str) -> None:
    """Write a loop that copies one entry at a time; the states may lie apart."""
    k, scalar, label = each.number, e.scalar, f"{way}.{each.number}"
    before = e.block
    total = e.put(f"mul i64 %count, {each.entries}")
    some = e.put(f"icmp slt i64 %lane, {total}")
    e.lines += [
        f"  br i1 {some}, label %loop.{label}, label %after.{label}",
        f"loop.{label}:",
        f"  %j.{label} = phi i64 [ %lane, %{before} ], [ %next.{label}, %loop.{label} ]",
        f"  %row.{label} = udiv i64 %j.{label}, {each.entries}",
        f"  %entry.{label} = urem i64 %j.{label}, {each.entries}",
        f"  %across.{label} = mul i64 %entry.{label}, {scalar.size}",
        f"  %down.{label} = mul i64 %row.{label}, %b.{k}",
        f"  %outer.{label} = add i64 %down.{label}, %across.{label}",
        f"  %low.{label} = mul i64 %row.{label}, {each.tile.pitch}",
        f"  %inner.{label} = add i64 %low.{label}, %across.{label}",
        f"  %there.{label} = getelementptr i8, {form.memory} %{way}.chunk.{k}, i64 %outer.{label}",
        f"  %here.{label} = getelementptr i8, {form.shared} %{way}.tile.{k}, i64 %inner.{label}",
    ]
    pair = f"{form.memory} %there.{label}", f"{form.shared} %here.{label}"
    source, goal = pair if way == "in" else reversed(pair)
    e.lines += [
        f"  %value.{label} = load {scalar.name}, {source}, align {scalar.size}",
        f"  store {scalar.name} %value.{label}, {goal}, align {scalar.size}",
        f"  %next.{label} = add i64 %j.{label}, {WARP}",
        f"  %more.{label} = icmp slt i64 %next.{label}, {total}",
        f"  br i1 %more.{label}, label %loop.{label}, label %after.{label}",
        f"after.{label}:",
    ]
    e.block = f"after.{label}"
