"""``show``: robots and results in the browser."""

import sys
import threading
import time
import webbrowser
from collections.abc import Sequence
from typing import Any

from torsor.base.checks import one_of, whole_number
from torsor.base.errors import ModelError
from torsor.robot.parallel import ParallelRobot
from torsor.robot.robot import Robot
from torsor.view.live.controls import Controls
from torsor.view.live.server import silence, start
from torsor.view.live.stage import Stage, Subject

FRAME_TIME = 1 / 60  # s between two pictures
READOUT_TIME = 0.2  # s between two updates of forces and energies
IDLE_TIME = 0.5  # s between two checks for requests


class Player:
    """A thread that plays a stage until ``close`` is called. Nothing is drawn if no browser is connected."""

    def __init__(self, server: Any, stage: Stage):
        self.server, self.stage, self.controls, self.closed = server, stage, Controls(server, stage), False
        stage.draw()
        self.controls.update()
        self._shown = 0.0
        self.thread = threading.Thread(target=self._run, name="torsor view", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        before = time.monotonic()
        while not self.closed:
            now = time.monotonic()
            moving = self._tick(now - before, now)
            before = now
            self.stage.awake.wait(max(FRAME_TIME - (time.monotonic() - now), 1e-3) if moving else IDLE_TIME)
            if not moving:
                before = time.monotonic()  # idle time does not count

    def _tick(self, seconds: float, now: float) -> bool:
        """Move, draw, and return whether something is moving. Errors are shown in the panel."""
        stage = self.stage
        try:
            asked = stage.awake.is_set()
            stage.awake.clear()
            moving = stage.step(seconds)
            watched = bool(self.server.get_clients())
            if asked or (moving and watched):
                stage.draw()
            if asked or (moving and watched and now - self._shown > READOUT_TIME):
                self.controls.update()
                self._shown = now
            return moving
        except Exception as error:
            if str(error) not in stage.faults:
                stage.faults = [*stage.faults[-3:], str(error)]
            stage.clock.playing = False
            return False

    def close(self) -> None:
        """End the thread."""
        self.closed = True
        self.stage.wake()
        self.thread.join(timeout=5.0)


PORT = 8080
MAX_SUBJECTS = 16  # subjects at once
HEIGHT = 600  # pixels, in a notebook


class Viewer:
    """A running viewer at the address ``url``, and a context manager; ``stop`` ends the viewer.

    ``play``, ``seek``, ``chart``, ``move`` and ``show`` have the same effects as the controls of the page.
    """

    def __init__(self, server: Any, stage: Stage, host: str):
        self.server, self.stage, self.player = server, stage, Player(server, stage)
        shown = "localhost" if host in ("0.0.0.0", "::", "") else f"[{host}]" if ":" in host else host
        self.url = f"http://{shown}:{server.get_port()}"

    def __repr__(self) -> str:
        return f"<Viewer of {', '.join(subject.title for subject in self.stage.subjects)}: {self.url}>"

    def __enter__(self) -> "Viewer":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def play(self, playing: bool = True) -> None:
        """Play or pause the motions."""
        self.stage.clock.play(playing)
        self.stage.wake()

    def seek(self, time: float) -> None:
        """Go to a time (s) after the start of the motions."""
        self.stage.clock.seek(time)
        self.stage.wake()

    def chart(self, name: str) -> None:
        """Select the coordinate of the charts, such as "elbow_joint"."""
        controls = self.player.controls
        if controls.charted is None:
            raise ModelError("there is no motion to chart", where="view", fix="show a result, such as a trajectory")
        controls.charted.value = one_of(name, tuple(controls.charts), "view", "coordinate")

    def move(self, values: Sequence[float], number: int = 0) -> None:
        """Set the sliders of a robot, in the order of the panel, in rad and m; ``number`` is its index in ``show``."""
        posture = self.stage.subjects[number].posture
        if posture is None or len(values) != len(posture.slides):
            count = 0 if posture is None else len(posture.slides)
            what = f"move got {len(values)} values"
            raise ModelError(what, where="view", allowed=f"{count}, one for each slider")
        self.stage.move(number, [float(value) for value in values])

    def show(self, *names: str, shown: bool = True) -> None:
        """Show or hide marks: frames, center, inertia, reactions, moments, ground, external, markers."""
        boxes = self.player.controls.boxes
        for name in names:
            boxes[one_of(name, tuple(boxes), "view", "mark")].value = shown

    def wait(self) -> None:
        """Wait until Ctrl-C, then stop."""
        try:
            while self.player.thread.is_alive():
                self.player.thread.join(0.5)
        except KeyboardInterrupt:
            pass
        finally:
            self.stop()

    def stop(self) -> None:
        """End the viewer."""
        if not self.player.closed:
            self.player.close()
            with silence():  # viser prints a message
                self.server.stop()


def show(
    *what: Any,
    names: Sequence[str] | None = None,
    host: str = "localhost",
    port: int = PORT,
    open: bool = True,
    block: bool | None = None,
    play: bool = True,
    swing: bool = False,
    reference: Any = None,
    spacing: float | None = None,
) -> Viewer:
    """Show robots and results in the browser and return the viewer. This requires the extra ``view``.

    ``what`` contains robots, which are shown with sliders, and results (trajectories, rollouts, motions, strides,
    measured gaits, identifications), which are played. The motions of a batch are played together, as on a ``page``,
    which describes their ``spacing`` (m). Several are shown together with a common clock and the titles ``names``. The
    page is served on ``host`` (by default, only this machine) and on ``port`` or the next free one. ``open`` opens it
    in the browser, or below the cell in Jupyter. With ``block``, ``show`` returns only after Ctrl-C; the default is
    True in scripts and False in interactive sessions. ``play`` starts motions immediately. ``swing`` moves the
    coordinates of robots within the limits of their drives, and draws the path of the end of a serial chain.
    ``reference`` is a motion that the others should track. It is drawn as an outline, and charts show the errors.

    Example:
        >>> fall = torsor.simulate(torsor.library.two_link(), duration=0.5)
        >>> viewer = torsor.show(fall, torsor.library.two_link(), open=False, block=False)  # doctest: +SKIP
        >>> viewer.stop()  # doctest: +SKIP
    """
    if not 1 <= len(what) <= MAX_SUBJECTS:
        problem = f"show got {len(what)} robots or results"
        raise ModelError(problem, where="view", allowed=f"1 to {MAX_SUBJECTS}: robots, trajectories, motions, strides")
    titles = [""] * len(what) if names is None else [str(name) for name in names]
    if len(titles) != len(what):
        raise ModelError(f"show got {len(titles)} names", where="view", allowed=f"{len(what)}, one for each subject")
    whole_number(port, "view", "port", least=0, most=65535)
    subjects = [Subject(subject, title, spacing=spacing) for subject, title in zip(what, titles, strict=True)]
    if isinstance(reference, (Robot, ParallelRobot)):
        raise ModelError("a robot has no motion", argument="reference", where="view", allowed="a motion or trajectory")
    if reference is not None:
        subjects.append(Subject(reference, "reference", ghost=True))
    for subject in subjects:
        subject.sways = swing and subject.posture is not None
    server = start(host, port, ", ".join(subject.title for subject in subjects if not subject.ghost))
    viewer = Viewer(server, Stage(server, subjects), host)
    for subject in viewer.stage.subjects:
        if subject.sways and subject.scene.end:
            viewer.stage.trail(subject, subject.scene.end)
    viewer.play(play)
    notebook = _in_notebook()
    if open and notebook:
        from IPython.display import IFrame, display

        display(IFrame(viewer.url, width="100%", height=HEIGHT))
    elif open:
        webbrowser.open(viewer.url)
    interactive = notebook or hasattr(sys, "ps1") or bool(sys.flags.interactive)
    if not interactive if block is None else block:
        if block is None:
            print(f"{viewer.url} (Ctrl-C ends it)")
        viewer.wait()
    return viewer


def _in_notebook() -> bool:
    """Return whether the code runs in a notebook: IPython with a kernel."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")
