"""The errors and warnings of Torsor: where it is, what was found, what is allowed, and the fix."""

__all__ = ["ModelError", "ModelWarning", "describe"]


class ModelError(ValueError):
    """A description that no mechanism can have, or a name or shape that the mechanism does not have."""


class ModelWarning(UserWarning):
    """A description that can be computed with, but that no real mechanism has."""


def describe(what: str, *, where: str = "", allowed: str = "", fix: str = "") -> str:
    """Build the one-line message of an error: ``where: what; allowed: ...; fix: ...``.

    Example:
        >>> describe("mass is -1.0 kg", where="arm.toml: link 'hand'", allowed="0 or more", fix="correct the sign")
        "arm.toml: link 'hand': mass is -1.0 kg; allowed: 0 or more; fix: correct the sign"
    """
    message = f"{where}: {what}" if where else what
    if allowed:
        message += f"; allowed: {allowed}"
    if fix:
        message += f"; fix: {fix}"
    return message
