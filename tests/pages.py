"""Reading pages back: their data, their scripts, and the arrays that the data refers to."""

import base64
import json
from html.parser import HTMLParser
from typing import Any

import numpy as np


class Scripts(HTMLParser):
    """The scripts of a page, as a browser finds them: (attributes, text); and all tags."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self._inside = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append((dict(attrs), ""))
            self._inside = True

    def handle_endtag(self, tag: str) -> None:
        self._inside = self._inside and tag != "script"

    def handle_data(self, data: str) -> None:
        if self._inside:
            attributes, text = self.scripts[-1]
            self.scripts[-1] = attributes, text + data


def decoded(html: str) -> dict[str, Any]:
    """Return the data of a page with arrays in place of references."""
    texts = {attributes.get("id"): text for attributes, text in Scripts(html).scripts}
    block = base64.b64decode(texts["numbers"])

    def resolved(value: Any) -> Any:
        if isinstance(value, list):
            return [resolved(each) for each in value]
        if not isinstance(value, dict):
            return value
        if set(value) == {"type", "at", "shape"}:
            count = int(np.prod(value["shape"]))
            return np.frombuffer(block, f"<{value['type']}", count, value["at"]).reshape(value["shape"])
        return {key: resolved(each) for key, each in value.items()}

    found: dict[str, Any] = resolved(json.loads(texts["content"]))
    return found
