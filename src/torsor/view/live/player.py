"""The one thread that moves what a viewer shows, some sixty times a second while something moves."""

import threading
import time
from typing import Any

from torsor.view.live.controls import Controls
from torsor.view.live.stage import Stage

TICK = 1 / 60  # s between two pictures
SLOW = 0.2  # s between two updates of the numbers, which nobody reads faster
IDLE = 0.5  # s between two looks for something to do


class Player:
    """A thread that plays a stage until ``close``. While nobody watches, time passes and nothing is drawn."""

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
            self.stage.awake.wait(max(TICK - (time.monotonic() - now), 1e-3) if moving else IDLE)
            if not moving:
                before = time.monotonic()  # time that nothing moved in does not count

    def _tick(self, seconds: float, now: float) -> bool:
        """Move and draw, and return whether something moves by itself. Errors are shown, and the viewer goes on."""
        stage = self.stage
        try:
            asked = stage.awake.is_set()
            stage.awake.clear()
            moving = stage.step(seconds)
            watched = bool(self.server.get_clients())
            if asked or (moving and watched):
                stage.draw()
            if asked or (moving and watched and now - self._shown > SLOW):
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
