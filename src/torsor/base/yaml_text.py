"""Text in YAML, as plain values: a key that a table has twice is an error, where YAML's readers take the last one."""

from typing import Any

from torsor.base.errors import ModelError, missing


def parse_yaml(text: str, where: str, instead: str = "") -> Any:
    r"""Return the content of YAML text from the file ``where``; ``instead`` is what works without the extra ``yaml``.

    Example:
        >>> parse_yaml("rate: 100\ncolumns: {q: [0]}", "map.yaml")
        {'rate': 100, 'columns': {'q': [0]}}
        >>> parse_yaml("rate: 100\nrate: 1", "map.yaml")
        Traceback (most recent call last):
        torsor.ModelError: map.yaml: line 2: the key 'rate' is in line 1 already; allowed: each key once
    """
    try:
        import yaml
    except ImportError:
        found = "YAML is read by the package PyYAML, which is not installed"
        raise missing(found, "yaml", where=where, instead=instead) from None
    kind = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader  # libyaml reads ten times faster
    try:
        loader = kind(text)
        node = loader.get_single_node()
        _check_keys(node, where)  # before merge keys (<<) add theirs, which the keys of the table itself override
        return None if node is None else loader.construct_document(node)
    except ModelError:  # of a key that is given twice
        raise
    except (yaml.YAMLError, ValueError, KeyError, AttributeError, RecursionError) as error:  # of odd scalars
        raise ModelError(f"not valid YAML: {' '.join(str(error).split())}", where=where) from None


def _check_keys(root: Any, where: str) -> None:
    """Raise ModelError for a key that a table has twice."""
    waiting, seen = [root], set[int]()
    while waiting:
        node = waiting.pop()
        kind = type(node).__name__
        if id(node) in seen or kind not in ("MappingNode", "SequenceNode"):
            continue
        seen.add(id(node))  # names (&) may refer to the table that they are in
        if kind == "SequenceNode":
            waiting += node.value
            continue
        lines: dict[tuple[str, str], int] = {}
        for key, value in node.value:
            waiting.append(value)
            if type(key).__name__ != "ScalarNode":
                continue
            line = key.start_mark.line + 1
            if (key.tag, key.value) in lines:
                found = f"line {line}: the key {key.value!r} is in line {lines[key.tag, key.value]} already"
                raise ModelError(found, value=key.value, where=where, allowed="each key once")
            lines[key.tag, key.value] = line
