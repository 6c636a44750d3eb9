"""The numbers of all equations of the documents, to check citations. The Lie-algebra notes have sections only."""


def _chapter(number: int, first: int, last: int) -> list[str]:
    return [f"{number}.{k}" for k in range(first, last + 1)]


BARMAN = frozenset([*_chapter(2, 1, 12), *_chapter(3, 1, 95), *_chapter(4, 13, 19), *_chapter(5, 1, 10)])
GUARINO = frozenset(map(str, range(1, 37)))
KHALIL = frozenset(map(str, range(1, 113)))
HUA = frozenset(map(str, range(1, 53)))
