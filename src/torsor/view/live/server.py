"""The server of the viewer: on this machine alone unless told otherwise, for its own page alone, and never shared."""

import contextlib
import io
import ipaddress
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from torsor.errors import ModelError, describe, warn
from torsor.view.live.client import own_page

LOCAL = ("localhost", "127.0.0.1", "::1")
FOREIGN = 1008  # close code of a websocket: policy violation


def start(host: str, port: int) -> Any:
    """Return a viser server on ``port``, or on the next one that is free.

    viser accepts every page that connects, and shares the viewer through a public relay if a client asks for it. Here a
    page of another origin is disconnected, since any web site in the same browser could otherwise read and move the
    robot, and nothing is shared.
    """
    try:
        import viser
    except ImportError:
        raise ImportError("the viewer needs viser; fix: pip install torsor[view]") from None
    if not is_local(host):
        warn(
            f"the viewer listens on {host}: everyone who reaches this machine sees the robot and its meshes and can "
            "move it; there is no password and no encryption; fix: host='localhost' and an ssh tunnel"
        )
    with silence():  # viser prints a banner; the caller says the address
        try:
            with own_page(viser):
                server: Any = viser.ViserServer(host=host, port=port, verbose=False)
        except OSError as error:
            raise ModelError(describe(f"cannot listen on {host}:{port}: {error}", where="view")) from None
    server.request_share_url = lambda *_, **__: None
    _refuse_foreign_pages(server, host)
    server.gui.configure_theme(show_logo=False, show_share_button=False, control_width="medium")
    return server


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Discard what viser prints: on standard output, and in notebooks, where Rich shows it below the cell."""
    from rich import get_console

    console = get_console()
    before = console.quiet
    console.quiet = True
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        console.quiet = before


def is_local(host: str) -> bool:
    """Return whether a host is this machine alone.

    Example:
        >>> is_local("localhost"), is_local("127.0.0.2"), is_local("0.0.0.0")
        (True, True, False)
    """
    try:
        return host in LOCAL or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_own_page(origin: str | None, asked: str, host: str) -> bool:
    """Return whether a page may connect: it came from this server, by a name that this server has.

    ``origin`` is the page's (None: not a browser), ``asked`` the host and port that it asked for. A server of this
    machine alone has local names only, so that a foreign name that resolves to this machine does not help a page.

    Example:
        >>> is_own_page("http://localhost:8080", "localhost:8080", "localhost")
        True
        >>> is_own_page("http://evil.example", "localhost:8080", "localhost")
        False
        >>> is_own_page("http://evil.example:8080", "evil.example:8080", "localhost")
        False
    """
    if origin is None:
        return True
    if urlsplit(origin).netloc != asked:
        return False
    return not is_local(host) or is_local(urlsplit(f"//{asked}").hostname or "")


def _refuse_foreign_pages(server: Any, host: str) -> None:
    sockets = server._websock_server

    async def refuse(client: Any) -> None:
        connection = sockets._live_connections[client.client_id]
        headers = connection.request.headers
        if not is_own_page(headers.get("Origin"), headers.get("Host", ""), host):
            await connection.close(FOREIGN, "this page is not the viewer's own")

    sockets.on_client_connect(refuse)
