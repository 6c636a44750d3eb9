"""Self-contained HTML pages that show robots and motions in 3D without a network. See ``page``."""

from torsor.view.pages.document import Page, page

__all__ = ["Page", "page"]
