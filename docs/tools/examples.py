"""An extension of griffe for the reference: the section "Example" of a docstring is a block of Python."""

from typing import Any

import griffe


class Examples(griffe.Extension):
    """Rename the section, which griffe knows in the plural only."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of an object when griffe has read it."""
        if obj.docstring is not None:
            obj.docstring.value = obj.docstring.value.replace("\nExample:\n", "\nExamples:\n")
