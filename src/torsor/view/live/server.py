"""The viewer server, which by default listens only on this machine and accepts only its own page."""

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

# The viewer serves viser's page with a script that spares browsers without a GPU.
HEAD_TAG, TITLE_TAG = "<head>", "<title>Viser</title>"
SKY_STYLE = "canvas[data-engine] { background: linear-gradient(#dfe6ee, #f6f8fa 55%, #e4e9ef); }"  # of the offline page
_alone = threading.Lock()


@contextmanager
def own_page(viser: Any, title: str) -> Iterator[None]:
    """Make servers created in this context serve viser's page with Torsor's script and title from a temporary folder.

    viser has no setting for its page folder, so its server class is wrapped temporarily.
    """
    usual = viser.infra.WebsockServer

    def server(*arguments: Any, http_server_root: Path, **options: Any) -> Any:
        folder = Path(mkdtemp(prefix="torsor_view_"))
        shutil.copytree(http_server_root, folder, dirs_exist_ok=True)
        page, script = folder / "index.html", asset("software.js", __package__)
        html = page.read_text(encoding="utf-8").replace(HEAD_TAG, f"{HEAD_TAG}<script>\n{script}</script>", 1)
        head = f"<title>{escape(printable(title))} - Torsor</title><style>{SKY_STYLE}</style>"
        page.write_text(html.replace(TITLE_TAG, head, 1), encoding="utf-8")
        made = usual(*arguments, http_server_root=folder, **options)
        weakref.finalize(made, shutil.rmtree, folder, True)
        return made

    with _alone:
        viser.infra.WebsockServer = server
        try:
            yield
        finally:
            viser.infra.WebsockServer = usual


LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
MAX_PORTS = 100  # ports
MAX_MESSAGES = 10_000  # sent at once: viser's 128 are less than one frame of a robot with many meshes
POLICY_VIOLATION = 1008  # close code of a websocket: policy violation


def start(host: str, port: int, title: str) -> Any:
    """Return a viser server on ``port`` or the next free one. ``title`` is the page title.

    By default, viser accepts every page that connects, and shares the viewer through a public relay if a client
    requests it. Here, pages from other origins are disconnected, because any website in the same browser could
    otherwise read and move the robot. Sharing is disabled.
    """
    try:
        import viser
    except ImportError:
        raise missing("the viewer needs viser", "view") from None
    free = free_port(host, port)
    if not is_local(host):
        risk = "everyone who can reach this machine can see and move the robot; there is no password and no encryption"
        warn(f"the viewer listens on {host}: {risk}", fix="use host='localhost' and an ssh tunnel")
    with silence(), own_page(viser, title):  # viser prints a banner; the caller prints the address
        server: Any = viser.ViserServer(host=host, port=free, verbose=False)
    server.request_share_url = lambda *_, **__: None
    server._websock_server.get_message_buffer().max_window_size = MAX_MESSAGES
    _refuse_foreign_pages(server, host)
    server.gui.configure_theme(show_logo=False, show_share_button=False, control_width="medium")
    server.gui.set_panel_label(printable(title))
    return server


@contextmanager
def silence() -> Iterator[None]:
    """Suppress viser's messages on standard output and in notebooks."""
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
    """Return whether a host name refers only to this machine."""
    try:
        return host in LOCAL_HOSTS or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def free_port(host: str, port: int) -> int:
    """Return the first free port of a host from ``port`` upwards (0: any). Raise ModelError if there is none."""
    try:
        infos = socket.getaddrinfo(host or None, 0, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        fix = "use localhost, or an address of this machine"
        raise ModelError(f"no such host ({reason})", value=host, where=f"view: host {host!r}", fix=fix) from None
    addresses = [(family, address) for family, _, _, _, address in infos]
    for candidate in range(port, min(port + MAX_PORTS, 65536)):
        if _is_free(host, addresses, candidate):
            return candidate
    asked = f"the ports {port} to {min(port + MAX_PORTS, 65536) - 1} are taken"
    raise ModelError(asked, where="view", fix="choose another port, or 0 for any that is free")


def _is_free(host: str, addresses: list[tuple[Any, Any]], port: int) -> bool:
    """Return whether a port is free on all addresses. Raise ModelError if no address can be bound."""
    failed = list[OSError]()
    for family, address in addresses:
        try:
            with socket.socket(family, socket.SOCK_STREAM) as tried:
                if os.name == "posix":  # on other systems the port would be shared
                    tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                tried.bind((address[0], port, *address[2:]))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return False
            failed.append(error)
    if len(failed) == len(addresses):  # one of several may belong to a missing protocol
        problem = f"cannot listen on port {port} ({failed[0].strerror})"
        fix = "an address of this machine; ports below 1024 need special rights"
        raise ModelError(problem, where=f"view: host {host!r}", allowed=fix)
    return True


def is_own_page(origin: str | None, asked: str, host: str) -> bool:
    """Return whether a page may connect, because it was loaded from this server under one of the server's names.

    ``origin`` is the page's origin (None: not a browser), and ``asked`` is the requested host and port. A local server
    has only local names, so a foreign name that resolves to this machine is rejected.
    """
    if origin is None:
        return True
    try:
        page, name = urlsplit(origin).netloc, urlsplit(f"//{asked}").hostname or ""
    except ValueError:  # not an address
        return False
    return page == asked and (not is_local(host) or is_local(name))


def _refuse_foreign_pages(server: Any, host: str) -> None:
    sockets = server._websock_server

    async def refuse(client: Any) -> None:
        connection = sockets._live_connections[client.client_id]
        headers = connection.request.headers
        if not is_own_page(headers.get("Origin"), headers.get("Host", ""), host):
            await connection.close(POLICY_VIOLATION, "this page is not the viewer's own")

    sockets.on_client_connect(refuse)
