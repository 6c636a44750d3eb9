"""The panel of the viewer: playback, marks, trails, sliders, forces and energies."""

from collections.abc import Sequence
from math import ceil, floor
from typing import Any

import numpy as np

from torsor.view.live.chart import charts, drawing
from torsor.view.live.figure import label, short, words
from torsor.view.live.marks import MARK_LABELS
from torsor.view.live.postures import Posture
from torsor.view.live.shots import Drives, Shot
from torsor.view.live.stage import Stage, Subject
from torsor.view.scene.curves import KINDS
from torsor.view.scene.scene import PERSON_OPACITY
from torsor.view.scene.sliders import SLIDER_UNITS

MAX_ROWS = 80  # rows of a table
TEXT_STYLE = "font-size:0.8em;line-height:1.35;padding:0 0.7em 0.4em"
# Colours of the offline page: above the limit, below it, without one, and of names.
OVER_COLOUR, LIMITED_COLOUR, FREE_COLOUR, FAINT_COLOUR = "#c8342c", "#1f63b0", "#6a7482", "#6a7482"
NUMBER_STYLE = "text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap"


def readout(shot: Shot) -> str:
    """Return the values at one instant as HTML: drive forces, energies and loop-closure error."""
    kinetic, potential = shot.energies
    energies = {"Kinetic energy": kinetic, "Potential energy": potential, "Total energy": kinetic + potential}
    rows = [(name, f"{short(energy)} J") for name, energy in energies.items()]
    if (closing := shot.closing) is not None:
        rows.append(("Loop-closure error", f"{closing:.1e}"))
    left, right = f"<td style='color:{FAINT_COLOUR}'>", f"<td style='{NUMBER_STYLE}'>"
    listed = "".join(f"<tr>{left}{name}</td>{right}{value}</td></tr>" for name, value in rows)
    forces = "" if shot.drives is None or not shot.drives.names else bars(shot.drives, drives_title(shot))
    return f"<div style='{TEXT_STYLE}'>{forces}<table style='width:100%;margin-top:0.6em'>{listed}</table></div>"


def drives_title(shot: Shot) -> str:
    """Return the title of the drive forces: torques, forces or both, or joint moments for a person."""
    if shot.is_person or shot.drives is None:
        return "Joint moments"
    kinds = sorted({f"{KINDS.get(unit, 'force')}s" for unit in shot.drives.units}, reverse=True)
    return f"Drive {' and '.join(kinds)}"


def bars(drives: Drives, title: str) -> str:
    """Return forces as horizontal bars, with negative values to the left.

    A bar has full length at the limit or, without a limit, at the largest force in the table.
    """
    largest = float(np.nan_to_num(np.abs(drives.forces)).max(initial=0.0)) or 1.0
    rows = []
    if drives.residuals is not None:
        rows.append(f"<tr><td></td><td></td><td style='{NUMBER_STYLE}'>measured − predicted</td></tr>")
    for k, (name, unit) in enumerate(zip(drives.names[:MAX_ROWS], drives.units, strict=False)):
        force, limit = float(drives.forces[k]), float(drives.limits[k])
        bounded = np.isfinite(limit) and limit > 0
        known = bool(np.isfinite(force))
        share = force / (limit if bounded else largest) if known else 0.0
        color = FREE_COLOUR if not bounded else OVER_COLOUR if abs(share) > 1 else LIMITED_COLOUR
        value = (short(force) if known else "unknown") + (f" / {short(limit)}" if bounded else "") + f" {unit}"
        rest = "" if drives.residuals is None else f"<td style='{NUMBER_STYLE}'>{short(drives.residuals[k])}</td>"
        width = 50 * min(abs(share), 1.0)
        place = f"left:{50 - width if share < 0 else 50:.1f}%;width:{width:.1f}%"
        bar = f"<i style='position:absolute;top:0;bottom:0;background:{color};{place}'></i>"
        track = "position:relative;height:4px;border-radius:2px;overflow:hidden;background:#8883;margin-bottom:0.35em"
        style = f"{NUMBER_STYLE};color:{FAINT_COLOUR}"
        rows.append(f"<tr><td>{words(name)}</td><td style='{style}'>{value}</td>{rest}</tr>")
        rows.append(f"<tr><td colspan=3><div style='{track}'>{bar}</div></td></tr>")
    note = f"<div>and {len(drives.names) - MAX_ROWS} more</div>" if len(drives.names) > MAX_ROWS else ""
    return f"<b>{title}</b><table style='width:100%;border-spacing:0 1px'>{''.join(rows)}</table>{note}"


def legend(entries: Sequence[tuple[str, tuple[float, ...]]], notes: list[str]) -> str:
    """Return a colour legend and notes as HTML."""
    chips = "".join(
        f"<div><span style='display:inline-block;width:0.8em;height:0.8em;margin-right:0.5em;border-radius:2px;"
        f"background:rgb({','.join(str(round(255 * part)) for part in color[:3])})'></span>{words(name)}</div>"
        for name, color in entries
    )
    style = f"color:{OVER_COLOUR};margin-top:0.3em"
    messages = "".join(f"<div style='{style}'>{words(note)}</div>" for note in notes if note)
    return f"<div style='{TEXT_STYLE}'>{chips}{messages}</div>"


NO_TRAIL = "choose ..."
INNER_MARKS, SEE_THROUGH = ("reactions", "moments"), 0.6  # marks inside the links, and the opacity that shows them
SPEEDS = {f"{speed:g}x": speed for speed in (0.1, 0.25, 0.5, 1.0, 2.0, 4.0)}


def within(slider: Any) -> float:
    """Return the value of a slider, or its minimum if the page sends a number outside the range."""
    value = float(slider.value)
    return value if slider.min <= value <= slider.max else float(slider.min)


class Controls:
    """The panel of a stage. User input is passed to the stage, and ``update`` shows changes made by the program."""

    def __init__(self, server: Any, stage: Stage):
        self.gui, self.stage = server.gui, stage
        self.head = self.gui.add_html("")
        self.time: Any = None
        self.charted: Any = None
        self.sliders, self.boxes = dict[int, list[tuple[Any, float]]](), dict[str, Any]()
        ordered = sorted(stage.subjects, key=lambda each: not each.ghost)  # errors are relative to the first
        films = [(each.film, each.color, each.ghost) for each in ordered if each.film is not None]
        self.charts, self.gaps = charts(films), [gap for film, _, _ in films for gap in film.motion.gaps]
        self.films = [film for film, _, _ in films]
        sides = {film.motion.stride if film.duration == stage.clock.duration else "" for film in self.films}
        self.stride = sides.pop() if len(sides) == 1 else ""
        if stage.clock.duration > 0:
            self._add_playback()
            if self.films:
                self._add_chart()
            self._add_marks()
            self._add_trails()
        for number, subject in enumerate(stage.subjects):
            if subject.posture is not None:
                self._add_sliders(number, subject, subject.posture)
        self.readouts = [self._add_readout(subject) for subject in stage.marked]
        if self.time is None:  # sliders first
            self._add_marks()
            self._add_trails()

    def _add_playback(self) -> None:
        clock = self.stage.clock
        with self.gui.add_folder("Motion"):
            self.button = self.gui.add_button("Play")
            end = float(np.ceil(round(1000 * clock.duration, 6))) / 1000  # the clock stops at its duration
            self.time = self.gui.add_slider("time (s)", 0.0, end, 0.001, 0.0)
            speed = self.gui.add_dropdown("speed", tuple(SPEEDS), initial_value="1x")
            loop = self.gui.add_checkbox("loop", clock.loop)

        def press(_: Any) -> None:
            clock.play(not clock.playing)
            self.stage.wake()

        def seek(event: Any) -> None:
            if event.client_id is not None:  # the user, not the program
                clock.seek(within(self.time))
                self.stage.wake()

        def change(_: Any) -> None:
            clock.speed, clock.loop = SPEEDS.get(speed.value, 1.0), bool(loop.value)

        self.button.on_click(press)
        self.time.on_update(seek)
        speed.on_update(change)
        loop.on_update(change)

    def _add_chart(self) -> None:
        with self.gui.add_folder("Charts"):
            self.charted = self.gui.add_dropdown("coordinate", tuple(self.charts) or ("none",))
            self.chart = self.gui.add_html("")
        self.charted.on_update(lambda _: self.stage.wake())

    def _add_marks(self) -> None:
        stage = self.stage
        with self.gui.add_folder("Show", expand_by_default=len(stage.shown) > 1):
            for name, words in MARK_LABELS.items() if stage.marked else ():
                if name in ("ground", "external", "markers") and not stage.has(name):
                    continue
                box = self.boxes[name] = self.gui.add_checkbox(words, name in ("ground", "markers"))
                stage.show(name, bool(box.value))
                box.on_update(lambda event, name=name: show(name, bool(event.target.value)))
            if stage.marked:
                stretch = self.gui.add_slider("arrow length", 0.1, 5.0, 0.1, 1.0)
                stretch.on_update(lambda event: stage.stretch(within(event.target)))
            usual = PERSON_OPACITY if stage.has("markers") else 1.0
            opacity = self.gui.add_slider("opacity", 0.1, 1.0, 0.05, usual)
            stage.fade(usual)
            opacity.on_update(lambda event: stage.fade(within(event.target)))

            def show(name: str, shown: bool) -> None:
                stage.show(name, shown)
                if name in INNER_MARKS and opacity.value in (1.0, SEE_THROUGH):  # arrows begin inside the links
                    within_links = any(self.boxes[mark].value for mark in INNER_MARKS)
                    opacity.value = SEE_THROUGH if within_links else 1.0
                    stage.fade(opacity.value)

            if len(stage.shown) > 1:
                widest = float(f"{2 * stage.width:.2g}")
                apart = self.gui.add_slider("apart (m)", 0.0, widest, 0.01, round(stage.apart, 2))
                apart.on_update(lambda event: stage.spread(within(event.target)))

    def _add_trails(self) -> None:
        subjects = [subject for subject in self.stage.subjects if subject.crowd is None]
        if not subjects:
            return
        with self.gui.add_folder("Trails", expand_by_default=False):
            for subject in subjects:
                names = {label(name): name for name in subject.marks.places}
                chosen = self.gui.add_dropdown(label(subject.title, 20), (NO_TRAIL, *names))

                def choose(event: Any, subject: Subject = subject, names: dict[str, str] = names) -> None:
                    if event.target.value in names:
                        self.stage.trail(subject, names[event.target.value])

                chosen.on_update(choose)
            self.gui.add_button("Remove trails").on_click(lambda _: self.stage.forget())

    def _add_sliders(self, number: int, subject: Subject, posture: Posture) -> None:
        stage = self.stage
        with self.gui.add_folder(label(f"{subject.title}: coordinates")):
            if not posture.slides:
                return
            sway = self.gui.add_checkbox("swing", subject.sways)
            home = self.gui.add_button("Home posture")
            handles, factors = list[Any](), list[float]()
            for slide in posture.slides:
                unit, factor = SLIDER_UNITS[slide.unit]
                low, high = float(floor(factor * slide.low)), float(ceil(factor * slide.high))
                name = label(f"{slide.name} ({unit})", 30)
                handles.append(self.gui.add_slider(name, low, high, 1.0, float(round(factor * slide.start))))
                factors.append(factor)

        def moved(event: Any) -> None:
            if event.client_id is not None:  # the user, not the program
                values = [float(handle.value) / factor for handle, factor in zip(handles, factors, strict=True)]
                stage.move(number, values, led=False)

        def reset(_: Any) -> None:
            sway.value = False
            stage.move(number, [slide.start for slide in posture.slides])

        for handle in handles:
            handle.on_update(moved)
        home.on_click(reset)
        sway.on_update(lambda event: stage.sway(number, bool(event.target.value)))
        self.sliders[number] = list(zip(handles, factors, strict=True))

    def _add_readout(self, subject: Subject) -> Any:
        several = len(self.stage.shown) > 1
        title = label(f"{subject.title}: forces and energies" if several else "Forces and energies")
        with self.gui.add_folder(title, expand_by_default=not several):
            return self.gui.add_html("")

    def update(self) -> None:
        """Update the time, moving sliders, forces, energies and notes."""
        stage = self.stage
        if self.time is not None:
            self.time.value = min(round(stage.clock.time, 3), self.time.max)
            self.button.label = "Pause" if stage.clock.playing else "Play"
            if self.charted is not None and self.charted.value in self.charts:
                shown, clock = self.charts[self.charted.value], stage.clock
                stances = self.films[0].stances(self.charted.value)
                self.chart.content = drawing(shown, clock.time, clock.duration, self.gaps, stances, self.stride)
        for number, handles in self.sliders.items():
            subject = stage.subjects[number]
            if subject.posture is not None and (subject.sways or subject.led):
                subject.led = False
                for (handle, factor), value in zip(handles, subject.posture.values, strict=True):
                    nearest = round(factor * value / handle.step) * handle.step
                    handle.value = float(np.clip(nearest, handle.min, handle.max))
        for subject, html in zip(stage.marked, self.readouts, strict=True):
            html.content = readout(subject.shot)
        several = len(stage.subjects) > 1
        entries = [(subject.title, subject.color) for subject in stage.subjects if several]
        notes = [note for subject in stage.subjects for note in subject.notes]
        self.head.content = legend(entries, [*notes, *stage.faults])
