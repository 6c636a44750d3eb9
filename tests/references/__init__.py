"""Published forms of the Newton-Euler recursion, each in its own letters: those that ``torsor reproduce`` evaluates."""

from torsor.reproduce.equations import barman as barman_2020
from torsor.reproduce.equations import barman as denavit_hartenberg
from torsor.reproduce.equations import guarino as guarino_lo_bianco_2009
from torsor.reproduce.equations import guarino as luh_walker_paul
from torsor.reproduce.equations import khalil, lie

__all__ = ["barman_2020", "denavit_hartenberg", "guarino_lo_bianco_2009", "khalil", "lie", "luh_walker_paul"]
