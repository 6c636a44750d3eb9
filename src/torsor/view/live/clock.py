"""The common time of all motions that are played."""

from dataclasses import dataclass


@dataclass
class Clock:
    """Time (s) from 0 to ``duration``, ``speed`` times as fast as real time while ``playing``; ``loop`` starts again.

    Example:
        >>> clock = Clock(2.0, playing=True, speed=0.5)
        >>> clock.advance(1.0), clock.time
        (True, 0.5)
    """

    duration: float
    playing: bool = False
    loop: bool = True
    speed: float = 1.0
    time: float = 0.0
    rounds: int = 0

    @property
    def total(self) -> float:
        """Time (s) with all rounds of a loop: for motions that go on."""
        return self.time + self.rounds * self.duration

    def advance(self, seconds: float) -> bool:
        """Let real time pass and return whether the time has changed; without ``loop`` it stops at the end."""
        if not self.playing or self.duration <= 0:
            return False
        self.time += self.speed * seconds
        if self.time > self.duration:
            self.rounds += int(self.time // self.duration) if self.loop else 0
            self.time = self.time % self.duration if self.loop else self.duration
            self.playing = self.loop
        return True

    def seek(self, time: float) -> None:
        """Go to a time."""
        self.time, self.rounds = min(max(time, 0.0), self.duration), 0

    def play(self, playing: bool = True) -> None:
        """Play or pause; at the end, play begins again."""
        if playing and self.time >= self.duration:
            self.time, self.rounds = 0.0, 0
        self.playing = playing
