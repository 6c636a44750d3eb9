"""Headless Chromium, driven by its devtools protocol over a websocket: no driver program is needed."""

import base64
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

NAMES = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = (
    "--headless",
    "--no-sandbox",  # root in a container has none
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
    "--disable-extensions",
    "--disable-gpu",
    "--enable-unsafe-swiftshader",  # WebGL without a graphics card
    "--remote-allow-origins=*",
)
PATIENCE = 60.0  # s: a browser starts and a page loads, on a busy machine


def chromium() -> str | None:
    """Return the program, or None if it or the Python package ``websockets`` is missing."""
    try:
        import websockets.sync.client  # noqa: F401
    except ImportError:
        return None
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Page:
    """A page in Chromium: JavaScript, the mouse, keys and screenshots."""

    def __init__(self, socket: Any):
        self.socket, self.count = socket, 0
        self.errors: list[str] = []
        self.command("Runtime.enable")
        self.command("Page.enable")

    def command(self, method: str, **parameters: Any) -> Any:
        """Send a command of the devtools protocol and return its result."""
        self.count += 1
        self.socket.send(json.dumps({"id": self.count, "method": method, "params": parameters}))
        while True:
            answer = json.loads(self.socket.recv(timeout=PATIENCE))
            if answer.get("method") == "Runtime.exceptionThrown":
                self.errors.append(str(answer["params"]["exceptionDetails"].get("exception", {}).get("description")))
            if answer.get("id") == self.count:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def open(self, address: str) -> None:
        """Go to an address."""
        self.command("Page.navigate", url=address)

    def run(self, script: str) -> Any:
        """Return the value of a JavaScript expression; promises are awaited."""
        answer = self.command("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"]["description"])
        return answer["result"].get("value")

    def wait(self, script: str, seconds: float = PATIENCE) -> Any:
        """Return the value of an expression as soon as it is true."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if value := self.run(script):
                return value
            time.sleep(0.1)
        raise TimeoutError(f"{script}: not within {seconds} s; the page shows {self.run('document.body.innerText')!r}")

    def press(self, x: float, y: float, to: tuple[float, float] | None = None) -> None:
        """Click at a point, or drag from it to another one."""
        end = to or (x, y)
        for kind, place in (("mousePressed", (x, y)), ("mouseMoved", end), ("mouseReleased", end)):
            place_of = {"x": place[0], "y": place[1], "button": "left", "buttons": 1, "clickCount": 1}
            self.command("Input.dispatchMouseEvent", type=kind, **place_of)

    def screenshot(self, path: Path) -> Path:
        """Write what the page shows as .png."""
        path.write_bytes(base64.b64decode(self.command("Page.captureScreenshot", format="png")["data"]))
        return path


def _opened(port: int) -> str:
    end = time.monotonic() + PATIENCE
    while True:
        try:
            with urlopen(Request(f"http://127.0.0.1:{port}/json/new?about:blank", method="PUT")) as answer:
                return str(json.load(answer)["webSocketDebuggerUrl"])
        except URLError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


@contextmanager
def browser(width: int = 1280, height: int = 720) -> Iterator[Page]:
    """Start Chromium with an empty page of a given size in pixels; it ends with the block."""
    from websockets.sync.client import connect

    program = chromium()
    assert program is not None
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        size, profile = f"--window-size={width},{height}", f"--user-data-dir={folder}"
        command = [program, *OPTIONS, size, profile, "--remote-debugging-port=0", "about:blank"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            file, end = Path(folder) / "DevToolsActivePort", time.monotonic() + PATIENCE
            while not (file.exists() and file.read_text().strip()):
                if time.monotonic() > end or process.poll() is not None:
                    raise TimeoutError("Chromium does not start")
                time.sleep(0.05)
            address = _opened(int(file.read_text().split()[0]))
            with connect(address, max_size=None) as socket:
                page = Page(socket)
                shape = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
                page.command("Emulation.setDeviceMetricsOverride", **shape)
                yield page
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(10)
            process.kill()
