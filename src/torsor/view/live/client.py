"""The page that the viewer serves: viser's, with a script before it that spares browsers without a graphics card."""

import shutil
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

HEAD = "<head>"
_alone = threading.Lock()


def with_script(page: str) -> str:
    """Return a page with our script before all others; a page without a head as it is.

    Example:
        >>> with_script("<p>no head</p>")
        '<p>no head</p>'
        >>> with_script("<head><title></title></head>").startswith("<head><script>")
        True
    """
    script = files("torsor.view.live").joinpath("assets", "software.js").read_text(encoding="utf-8")
    return page.replace(HEAD, f"{HEAD}<script>\n{script}</script>", 1)


@contextmanager
def own_page(viser: Any) -> Iterator[None]:
    """Let servers that are made meanwhile serve viser's page with our script, from a folder that ends with them.

    viser has no setting for the folder of its page: the class of its server is wrapped while one is made.
    """
    usual = viser.infra.WebsockServer

    def server(*arguments: Any, http_server_root: Path, **options: Any) -> Any:
        folder = Path(mkdtemp(prefix="torsor_view_"))
        shutil.copytree(http_server_root, folder, dirs_exist_ok=True)
        page = folder / "index.html"
        page.write_text(with_script(page.read_text(encoding="utf-8")), encoding="utf-8")
        made = usual(*arguments, http_server_root=folder, **options)
        weakref.finalize(made, shutil.rmtree, folder, True)
        return made

    with _alone:
        viser.infra.WebsockServer = server
        try:
            yield
        finally:
            viser.infra.WebsockServer = usual
