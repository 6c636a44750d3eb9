"""A headless Chromium that tests control by the DevTools protocol through a pipe, without a port or another package."""

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Self

import pytest

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), ""
)
needs_chromium = pytest.mark.skipif(not CHROMIUM, reason="chromium is not installed")
PATIENCE = 60.0  # seconds for an answer, also on a busy machine

OPTIONS = (
    *("--headless", "--no-sandbox", "--no-first-run", "--disable-quic", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--remote-debugging-pipe"),
)
SOFTWARE = ("--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader")  # WebGL without a GPU
WITHOUT_WEBGL = ("--disable-gpu", "--disable-3d-apis", "--disable-webgl")

# Chromium reads commands from file 3 and answers to file 4; numbers of pipes may be these.
LAUNCH = """
import fcntl, os, sys
high = [fcntl.fcntl(int(each), fcntl.F_DUPFD, 50) for each in sys.argv[1:3]]
for file, number in zip(high, (3, 4)):
    os.dup2(file, number)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Browser:
    """A tab of a headless Chromium; a context manager. ``errors`` contains the errors that scripts logged."""

    def __init__(self, *options: str, width: int = 1200, height: int = 760) -> None:
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        (theirs, self._to), (self._from, back) = os.pipe(), os.pipe()
        own = [*OPTIONS, *(options or SOFTWARE), f"--user-data-dir={self.folder.name}"]
        command = [sys.executable, "-c", LAUNCH, str(theirs), str(back), CHROMIUM, *own, "about:blank"]
        self.process = subprocess.Popen(
            command, pass_fds=(theirs, back), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(theirs)
        os.close(back)
        self._left, self._count, self.errors, self._session = b"", 0, list[str](), ""
        self.requests, self.size = list[str](), (width, height)

    def __enter__(self) -> Self:
        try:
            self._attach()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _attach(self) -> None:
        target = next(each for each in self.send("Target.getTargets")["targetInfos"] if each["type"] == "page")
        found = self.send("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = found["sessionId"]
        for domain in ("Runtime", "Page", "Log", "Network"):
            self.send(f"{domain}.enable")
        shape = {"width": self.size[0], "height": self.size[1], "deviceScaleFactor": 1, "mobile": False}
        self.send("Emulation.setDeviceMetricsOverride", **shape)

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._to)
        os.close(self._from)
        self.folder.cleanup()

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Return the answer to a command of the protocol."""
        self._count += 1
        message = {"id": self._count, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            found = self._receive()
            if found.get("id") == self._count:
                assert "error" not in found, f"{method}: {found['error']}"
                return found["result"]

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._left:
            more = os.read(self._from, 1 << 20)
            assert more, "chromium has ended"
            self._left += more
        message, _, self._left = self._left.partition(b"\0")
        found = json.loads(message)
        if found.get("method") == "Runtime.exceptionThrown":
            self.errors.append(str(found["params"]["exceptionDetails"].get("exception", {}).get("description")))
        if found.get("method") == "Log.entryAdded" and found["params"]["entry"]["level"] == "error":
            self.errors.append(found["params"]["entry"]["text"])
        if found.get("method") == "Network.requestWillBeSent":
            self.requests.append(found["params"]["request"]["url"])
        return found

    def open(self, path: Path | str, until: str = "document.readyState === 'complete'") -> None:
        """Open a file or an address and wait until an expression is true."""
        self.send("Page.navigate", url=path if isinstance(path, str) else path.resolve().as_uri())
        self.wait(until)

    def wait(self, expression: str) -> None:
        """Wait until an expression is true."""
        end = time.monotonic() + PATIENCE
        while not self.value(f"!!({expression})"):
            assert time.monotonic() < end, f"never true: {expression}; errors: {self.errors}"
            time.sleep(0.02)

    def value(self, expression: str) -> Any:
        """Return the value of an expression (for a promise, its result) as JSON."""
        found = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found.get("exceptionDetails")
        return found["result"].get("value")

    def screenshot(self, path: Path) -> None:
        """Save a picture of the window."""
        path.write_bytes(base64.b64decode(self.send("Page.captureScreenshot", format="png")["data"]))

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Move the mouse with its left button down."""
        press = {"button": "left", "buttons": 1, "clickCount": 1}
        self.send("Input.dispatchMouseEvent", type="mousePressed", x=start[0], y=start[1], **press)
        self.send("Input.dispatchMouseEvent", type="mouseMoved", x=end[0], y=end[1], button="left", buttons=1)
        self.send("Input.dispatchMouseEvent", type="mouseReleased", x=end[0], y=end[1], button="left", clickCount=1)

    def click(self, selector: str) -> None:
        """Click the middle of an element, as a user does."""
        box = self.value(
            f"(() => {{ const b = document.querySelector({json.dumps(selector)}).getBoundingClientRect();"
            " return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        press = {"x": box[0], "y": box[1], "button": "left", "clickCount": 1}
        self.send("Input.dispatchMouseEvent", type="mousePressed", buttons=1, **press)
        self.send("Input.dispatchMouseEvent", type="mouseReleased", **press)
