"""YAML from people, which can be anybody's: by the safe loader, of a bounded size, without duplicate keys.

Anchors and aliases are part of YAML and may be used; what they stand for counts as often as it stands there, so that a
few lines cannot become a billion values.
"""

from __future__ import annotations

from collections.abc import Hashable
from copy import deepcopy
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from pii_tracer.common.atomic_files import read_bounded
from pii_tracer.model.errors import ConfigError

MAX_BYTES = 16 * 1024 * 1024
MAX_VALUES = 1_000_000
_READ_OFTEN = ("estate", "policy")
"""What a command reads many times, and what has no values of persons, so that its text may stay in memory."""

_MOST_KEPT = 1024 * 1024
"""Letters of a text that stays."""


def load_yaml(path: Path, what: str) -> Any:
    """The content of a YAML file. what: names the file in messages, e.g. `estate`.

    Raises:
        ConfigError: it cannot be read, is too large, is not YAML, or a key stands twice; nothing of its content is
            told but lines.
    """
    try:
        text = read_bounded(path, MAX_BYTES).decode("utf-8-sig")
    except FileNotFoundError:
        made = ", or run `pii-tracer init`" if what in ("estate", "policy") else ""
        raise ConfigError(f"the {what} file is missing", where=str(path), todo=f"name the right path{made}") from None
    except OSError as error:
        raise ConfigError(
            f"the {what} file cannot be read: {error.strerror or type(error).__name__}",
            where=str(path),
            todo="check the path and its permissions",
        ) from None
    except UnicodeDecodeError:
        raise ConfigError(f"the {what} file is not UTF-8", where=str(path), todo="save it as UTF-8") from None
    return parse_yaml(text, str(path), what)


def parse_yaml(text: str, where: str, what: str) -> Any:
    """The content of a YAML document. Raises `ConfigError` as `load_yaml` does."""
    try:
        often = what in _READ_OFTEN and len(text) <= _MOST_KEPT
        return deepcopy(_loaded_before(text)) if often else _loaded(text)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else "?"
        raise ConfigError(
            f"the {what} file is not YAML: {error.problem}", where=f"{where}, line {line}", todo="correct that line"
        ) from None
    except RecursionError:
        raise ConfigError(
            f"the {what} file is nested too deeply", where=where, todo="nest fewer lists and mappings in each other"
        ) from None
    except (yaml.YAMLError, ValueError, OverflowError, TypeError, AttributeError) as error:
        # a character, date or number that there is not: the message can quote it
        raise ConfigError(
            f"the {what} file contains something that is not YAML: {type(error).__name__}",
            where=where,
            todo="correct it",
        ) from None


def _loaded(text: str) -> Any:
    return yaml.load(text, Loader=_Strict)  # noqa: S506 (a SafeLoader)


_loaded_before = lru_cache(maxsize=4)(_loaded)


class _Strict(yaml.SafeLoader):
    """SafeLoader that refuses duplicate keys (YAML 1.2, section 3.2.1.3: keys are unique) and endless documents."""

    def get_single_data(self) -> Any:
        node = self.get_single_node()
        if node is None:
            return None
        if _size(node, {}) > MAX_VALUES:
            raise yaml.MarkedYAMLError(problem=f"more than {MAX_VALUES} values", problem_mark=node.start_mark)
        return self.construct_document(node)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        seen: set[Hashable] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable) or key in seen:
                # people write values in the place of keys, too: the line tells which it is
                told = "a key appears twice" if isinstance(key, Hashable) else "a key is not text"
                raise yaml.MarkedYAMLError(problem=told, problem_mark=key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


def _size(node: Any, known: dict[int, int | None]) -> int:
    """Values below a node, an alias counted wherever it stands. One that holds itself is endless."""
    if isinstance(node, yaml.ScalarNode):
        return 1
    if id(node) in known:
        size = known[id(node)]
        if size is None:
            raise yaml.MarkedYAMLError(problem="a value that contains itself", problem_mark=node.start_mark)
        return size
    known[id(node)] = None
    below = [part for pair in node.value for part in pair] if isinstance(node, yaml.MappingNode) else node.value
    size = known[id(node)] = 1 + sum(_size(part, known) for part in below)
    return size
