"""Unique names for links, joints and frames that a reader or writer adds."""

from torsor.mechanism.build import unused_name


def claim_name(wanted: str, taken: set[str]) -> str:
    """Return a name that is not taken, and add it to those that are.

    Example:
        >>> taken = {"arm"}
        >>> claim_name("arm", taken), sorted(taken)
        ('arm_', ['arm', 'arm_'])
    """
    name = unused_name(wanted, taken)
    taken.add(name)
    return name
