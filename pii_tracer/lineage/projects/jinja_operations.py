"""Values of a template that is interpreted, and what filters and operators make of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from jinja2 import nodes

from pii_tracer.model.errors import LineageError

_LONGEST = 1_000_000


class Unrendered(LineageError):
    """A template's text cannot be told from the repository. line: of the template, from 1."""

    def __init__(self, reason: str, line: int) -> None:
        super().__init__(reason, todo="add the compiled SQL (`dbt compile`)")
        self.reason = reason
        self.line = line


class Undecided(Exception):
    """A value that only a run of dbt knows: its warehouse, its profile, the day."""


@dataclass(frozen=True)
class NOT_HERE:
    """The place of a value that is not known; what is undecided about it."""

    what: str


def text_of(value: Any) -> str:
    """A value as Jinja prints it."""
    if value is None or isinstance(value, str | int | float):
        return str(value)
    raise Undecided("a list or mapping in the text")


def filtered(name: str, value: Any, args: Sequence[Any], line: int) -> Any:
    """What a filter makes of a value; those without effect on SQL pass it on."""
    if name in ("upper", "lower", "trim", "string") and not args:
        text = text_of(value)
        return {"upper": text.upper(), "lower": text.lower(), "trim": text.strip(), "string": text}[name]
    if name == "join" and isinstance(value, list):
        return (text_of(args[0]) if args else "").join(text_of(item) for item in value)
    if name == "length" and isinstance(value, list | str) and not args:
        return len(value)
    if name in ("list", "unique") and isinstance(value, list):
        return value if name == "list" else list(dict.fromkeys(value))
    if name == "default":
        return value
    if name == "as_bool":
        return value
    raise Unrendered(f"the filter `{name}` is not followed", line)


def operated(node: nodes.Node, value: Callable[[nodes.Node], Any]) -> Any:
    """The value of an operator's node. value: evaluates its operands."""
    if isinstance(node, nodes.Not):
        return not value(node.node)
    if isinstance(node, nodes.And | nodes.Or):
        left = value(node.left)
        return value(node.right) if bool(left) is isinstance(node, nodes.And) else left
    if isinstance(node, nodes.Concat):
        return _short("".join(text_of(value(part)) for part in node.nodes), node.lineno)
    if isinstance(node, nodes.Add | nodes.Sub):
        left, right = value(node.left), value(node.right)
        if isinstance(node, nodes.Add) and type(left) is type(right) and isinstance(left, str | list):
            return _short(left + right, node.lineno)
        if isinstance(left, int) and isinstance(right, int):
            return left + right if isinstance(node, nodes.Add) else left - right
    if isinstance(node, nodes.Compare) and len(node.ops) == 1:
        left, right = value(node.expr), value(node.ops[0].expr)
        if node.ops[0].op in ("eq", "ne"):
            return (left == right) is (node.ops[0].op == "eq")
        if node.ops[0].op in ("in", "notin") and isinstance(right, list | dict):
            return (left in right) is (node.ops[0].op == "in")
    if isinstance(node, nodes.Test) and node.name in ("none", "defined") and node.node is not None:
        found = value(node.node)
        return found is None if node.name == "none" else True
    raise Unrendered(f"`{type(node).__name__.lower()}` is not followed", node.lineno)


def _short(value: Any, line: int) -> Any:
    if len(value) > _LONGEST:
        raise Unrendered("a value becomes too long", line)
    return value
