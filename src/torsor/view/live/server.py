"""The server of the viewer: on this machine alone unless told otherwise, for its own page alone, and never shared."""

import errno
import io
import ipaddress
import os
import shutil
import socket
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from html import escape
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from urllib.parse import urlsplit

from torsor.base.errors import ModelError, missing, printable, warn
from torsor.compiler.source import asset

# The page that the viewer serves: viser's, with a script before it that spares browsers without a graphics card.
HEAD, TITLE = "<head>", "<title>Viser</title>"
SKY = "canvas[data-engine] { background: linear-gradient(#dfe6ee, #f6f8fa 55%, #e4e9ef); }"  # of the offline page
_alone = threading.Lock()


@contextmanager
def own_page(viser: Any, title: str) -> Iterator[None]:
    """Let servers that are made meanwhile serve viser's page with our script and title, from a temporary folder.

    viser has no setting for the folder of its page: the class of its server is wrapped while one is made.
    """
    usual = viser.infra.WebsockServer

    def server(*arguments: Any, http_server_root: Path, **options: Any) -> Any:
        folder = Path(mkdtemp(prefix="torsor_view_"))
        shutil.copytree(http_server_root, folder, dirs_exist_ok=True)
        page, script = folder / "index.html", asset("software.js", __package__)
        html = page.read_text(encoding="utf-8").replace(HEAD, f"{HEAD}<script>\n{script}</script>", 1)
        head = f"<title>{escape(printable(title))} - Torsor</title><style>{SKY}</style>"
        html = html.replace(TITLE, head, 1)
        page.write_text(html, encoding="utf-8")
        made = usual(*arguments, http_server_root=folder, **options)
        weakref.finalize(made, shutil.rmtree, folder, True)
        return made

    with _alone:
        viser.infra.WebsockServer = server
        try:
            yield
        finally:
            viser.infra.WebsockServer = usual


LOCAL = ("localhost", "127.0.0.1", "::1")
TRIED = 100  # ports
FOREIGN = 1008  # close code of a websocket: policy violation


def start(host: str, port: int, title: str) -> Any:
    """Return a viser server on ``port``, or on the next one that is free; ``title`` is that of its page.

    viser accepts every page that connects, and shares the viewer through a public relay if a client asks for it. Here a
    page of another origin is disconnected, since any web site in the same browser could otherwise read and move the
    robot, and nothing is shared.
    """
    try:
        import viser
    except ImportError:
        raise missing("the viewer needs viser", "view") from None
    free = free_port(host, port)
    if not is_local(host):
        warn(
            f"the viewer listens on {host}: everyone who reaches this machine sees the robot and its meshes and can "
            "move it; there is no password and no encryption; fix: host='localhost' and an ssh tunnel"
        )
    with silence(), own_page(viser, title):  # viser prints a banner; the caller prints the address
        server: Any = viser.ViserServer(host=host, port=free, verbose=False)
    server.request_share_url = lambda *_, **__: None
    _refuse_foreign_pages(server, host)
    server.gui.configure_theme(show_logo=False, show_share_button=False, control_width="medium")
    server.gui.set_panel_label(printable(title))
    return server


@contextmanager
def silence() -> Iterator[None]:
    """Discard what viser prints: on standard output, and in notebooks, where Rich shows it below the cell."""
    from rich import get_console

    console = get_console()
    before = console.quiet
    console.quiet = True
    try:
        with redirect_stdout(io.StringIO()):
            yield
    finally:
        console.quiet = before


def is_local(host: str) -> bool:
    """Return whether a host is this machine alone."""
    try:
        return host in LOCAL or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def free_port(host: str, port: int) -> int:
    """Return the first free port of a host from ``port`` on (0: any), or raise ModelError: viser would wait."""
    try:
        found = socket.getaddrinfo(host or None, 0, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        fix = "give localhost, or an address of this machine"
        raise ModelError(f"no such host ({reason})", value=host, where=f"view: host {host!r}", fix=fix) from None
    addresses = [(family, address) for family, _, _, _, address in found]
    for each in range(port, min(port + TRIED, 65536)):
        if _is_free(host, addresses, each):
            return each
    asked = f"the ports {port} to {min(port + TRIED, 65536) - 1} are taken"
    raise ModelError(asked, where="view", fix="choose another port, or 0 for any that is free")


def _is_free(host: str, addresses: list[tuple[Any, Any]], port: int) -> bool:
    """Return whether nothing listens on a port of any of the addresses; ModelError if they cannot be listened on."""
    failed = list[OSError]()
    for family, address in addresses:
        try:
            with socket.socket(family, socket.SOCK_STREAM) as tried:
                if os.name == "posix":  # elsewhere it would share the port with who has it
                    tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                tried.bind((address[0], port, *address[2:]))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return False
            failed.append(error)
    if len(failed) == len(addresses):  # of several, one may be of a protocol that this machine has not
        found = f"cannot listen on port {port} ({failed[0].strerror})"
        fix = "an address of this machine; ports below 1024 need special rights"
        raise ModelError(found, where=f"view: host {host!r}", allowed=fix)
    return True


def is_own_page(origin: str | None, asked: str, host: str) -> bool:
    """Return whether a page may connect: it came from this server, by a name that this server has.

    ``origin`` is the page's (None: not a browser), ``asked`` the host and port that it asked for. A server of this
    machine alone has local names only, so that a foreign name that resolves to this machine does not help a page.
    """
    if origin is None:
        return True
    try:
        page, name = urlsplit(origin).netloc, urlsplit(f"//{asked}").hostname or ""
    except ValueError:  # no address at all
        return False
    return page == asked and (not is_local(host) or is_local(name))


def _refuse_foreign_pages(server: Any, host: str) -> None:
    sockets = server._websock_server

    async def refuse(client: Any) -> None:
        connection = sockets._live_connections[client.client_id]
        headers = connection.request.headers
        if not is_own_page(headers.get("Origin"), headers.get("Host", ""), host):
            await connection.close(FOREIGN, "this page is not the viewer's own")

    sockets.on_client_connect(refuse)
