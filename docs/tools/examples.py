"""A griffe extension for the reference: show the "Example" section of a docstring as Python code."""

from typing import Any

import griffe


class Examples(griffe.Extension):
    """Rename the section, because griffe supports only the plural form."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of an object after griffe has read it."""
        if obj.docstring is not None:
            obj.docstring.value = obj.docstring.value.replace("\nExample:\n", "\nExamples:\n")
