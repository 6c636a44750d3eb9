"""Programs of motion problems whose kernels are interpreted, for solutions to compare with: nothing is compiled."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest

from torsor.motion.transcription import node_kernels


@contextmanager
def interpreted() -> Iterator[None]:
    """Evaluate kernels of nodes that are made in this context by CasADi's virtual machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(node_kernels, "Target", partial(node_kernels.Target, device="casadi"))
        yield
