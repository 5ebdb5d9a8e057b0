"""The SQL that a dbt template becomes, for the part of Jinja whose outcome a repository alone decides.

Jinja parses the template; nothing of it is compiled or run. The tree is interpreted here, with a budget: constants,
`ref`, `source`, `var` with a known value, `config`, macros of the project, loops over constant lists, conditions.
Of a condition that only the warehouse or the profile decides, both branches are taken, each in a text of its own.
Everything else ends as `Unrendered`. Functions: https://docs.getdbt.com/reference/dbt-jinja-functions
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from jinja2 import Environment, nodes
from jinja2.exceptions import TemplateError

from pii_tracer.lineage.projects.jinja_operations import NOT_HERE, Undecided, Unrendered, filtered, operated, text_of

MOST_TEXTS = 16
"""Texts of one model, by the conditions that nobody decides here."""
_MOST_STEPS = 50_000
_MOST_CHARACTERS = 2_000_000
_DEEPEST = 20
_MACRO = re.compile(r"\{%-?\s*(?:macro\s+(\w+)|endmacro\s*-?%\})")
_SNAPSHOT = re.compile(r"\{%-?\s*(?:snapshot\s+(\w+)|endsnapshot)\s*-?%\}")
_SURROGATE = "_dbt_utils_surrogate_key_null_"
"""What dbt_utils.generate_surrogate_key puts in the place of NULL (dbt-utils 1.x)."""


@dataclass(frozen=True)
class Text:
    """One text that a template can become. lines: by its lines, the template's line (from 1)."""

    sql: str
    lines: tuple[int, ...]

    def line_of(self, line: int) -> int:
        """The template's line of a line of the text (from 1)."""
        return self.lines[min(max(line, 1), len(self.lines)) - 1] if self.lines else 1


@dataclass(frozen=True)
class Rendered:
    """A template's texts, and what it said on the way. refs: names of models and sources. macros: those it called."""

    texts: tuple[Text, ...]
    config: Mapping[str, Any]
    refs: tuple[str, ...]
    macros: frozenset[str]


@dataclass(frozen=True)
class Surroundings:
    """What a template may ask. relation: of `ref` and `source`, by their arguments; None where there is none."""

    macros: Mapping[str, str]
    variables: Mapping[str, Any]
    relation: Callable[[str, tuple[str, ...]], str | None]
    this: str
    project: str = ""
    incremental: bool = False


def macros_of(text: str) -> dict[str, str]:
    """The macros of a file, each by its name."""
    found, name, start = {}, "", 0
    for mark in _MACRO.finditer(text):
        if mark[1]:
            name, start = mark[1], mark.start()
        elif name:
            found[name], name = text[start : mark.end()], ""
    return found


def snapshots_of(text: str) -> list[tuple[str, str]]:
    """Name and template of each snapshot block of a file; lines before it stay, as blanks."""
    found, name, start = [], "", 0
    for mark in _SNAPSHOT.finditer(text):
        if mark[1]:
            name, start = mark[1], mark.end()
        elif name:
            found.append((name, "\n" * text.count("\n", 0, start) + text[start : mark.start()]))
            name = ""
    return found


def render(template: str, around: Surroundings) -> Rendered:
    """Every text that a template can become.

    Raises:
        Unrendered: a part of it is not of the kind that can be told from the repository.
    """
    tree = _tree(template)
    texts: dict[str, Text] = {}
    waiting: list[dict[str, bool]] = [{}]
    last = _Renderer(around, {})
    tried = 0
    while waiting:
        tried += 1
        if tried > MOST_TEXTS:
            raise Unrendered(f"its conditions have more than {MOST_TEXTS} outcomes", 1)
        decisions = waiting.pop()
        one = _Renderer(around, decisions)
        one.block(tree.body)
        text = one.text()
        texts.setdefault(text.sql, text)
        last.take(one)
        asked = list(one.asked)
        for number, condition in enumerate(asked):
            if condition not in decisions:  # the other outcome; those before it as they were
                waiting.append({**{c: one.asked[c] for c in asked[:number]}, condition: not one.asked[condition]})
    return Rendered(tuple(texts.values()), last.config, tuple(last.refs), frozenset(last.called))


@lru_cache(maxsize=4096)
def _tree(template: str) -> nodes.Template:
    try:
        return _JINJA.parse(template)
    except TemplateError as error:
        raise Unrendered("the template does not parse", getattr(error, "lineno", 1) or 1) from None
    except (RecursionError, ValueError):
        raise Unrendered("the template cannot be read", 1) from None


_JINJA = Environment(  # noqa: S701 - it only parses: the tree becomes SQL, never HTML
    extensions=["jinja2.ext.do"], keep_trailing_newline=True
)


@dataclass
class _Renderer:
    around: Surroundings
    decisions: Mapping[str, bool]
    asked: dict[str, bool] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    refs: dict[str, None] = field(default_factory=dict)
    called: set[str] = field(default_factory=set)
    pieces: list[tuple[str, int, bool]] = field(default_factory=list)
    """Text, the template's line, and whether it stands there as it is."""
    scopes: list[dict[str, Any]] = field(default_factory=lambda: [{}])
    local: dict[str, nodes.Macro] = field(default_factory=dict)
    steps: int = 0
    size: int = 0
    depth: int = 0

    def take(self, other: _Renderer) -> None:
        """What another one of the same template met."""
        self.config.update(other.config)
        self.refs.update(other.refs)
        self.called |= other.called

    def text(self) -> Text:
        lines = [self.pieces[0][1] if self.pieces else 1]
        for text, line, written in self.pieces:
            lines += [line + n if written else line for n in range(1, text.count("\n") + 1)]
        return Text("".join(text for text, _, _ in self.pieces), tuple(lines))

    def block(self, body: Sequence[nodes.Node]) -> None:
        for node in body:
            self._step(node)
            if isinstance(node, nodes.Output):
                for part in node.nodes:
                    written = isinstance(part, nodes.TemplateData)
                    self._emit(
                        part.data if isinstance(part, nodes.TemplateData) else self._shown(part), part.lineno, written
                    )
            elif isinstance(node, nodes.If):
                self.block(self._branch(node))
            elif isinstance(node, nodes.For):
                self._loop(node)
            elif isinstance(node, nodes.Assign) and isinstance(node.target, nodes.Name):
                self.scopes[-1][node.target.name] = self._late(node.node)
            elif isinstance(node, nodes.Macro):
                self.local[node.name] = node
            elif isinstance(node, nodes.ExprStmt):
                self._value(node.node)
            else:
                raise Unrendered(f"`{type(node).__name__.lower()}` is not followed", node.lineno)

    def _step(self, node: nodes.Node) -> None:
        self.steps += 1
        if self.steps > _MOST_STEPS:
            raise Unrendered("it takes too many steps", node.lineno)

    def _emit(self, text: str, line: int, written: bool) -> None:
        self.size += len(text)
        if self.size > _MOST_CHARACTERS:
            raise Unrendered("it becomes too long", line)
        self.pieces.append((text, line, written))

    def _shown(self, node: nodes.Node) -> str:
        try:
            return text_of(self._value(node))
        except Undecided as unknown:
            raise Unrendered(f"{unknown} is known only at the run of dbt", node.lineno) from None

    def _late(self, node: nodes.Node) -> Any:
        """A value that may not be known: it fails where it is used."""
        try:
            return self._value(node)
        except Undecided as unknown:
            return NOT_HERE(str(unknown))

    def _branch(self, node: nodes.If) -> Sequence[nodes.Node]:
        for test, body in [(node.test, node.body), *((e.test, e.body) for e in node.elif_)]:
            if self._truth(test):
                return body
        return node.else_

    def _truth(self, test: nodes.Node) -> bool:
        try:
            return bool(self._value(test))
        except Undecided:
            condition = repr(test)
            return self.asked.setdefault(condition, self.decisions.get(condition, True))

    def _loop(self, node: nodes.For) -> None:
        try:
            items = self._value(node.iter)
        except Undecided as unknown:
            raise Unrendered(
                f"a loop goes over {unknown}, which is known only at the run of dbt", node.lineno
            ) from None
        names = [node.target] if isinstance(node.target, nodes.Name) else getattr(node.target, "items", [])
        if not isinstance(items, list | tuple) or node.recursive or not names:
            raise Unrendered("a loop goes over a value that is not a list", node.lineno)
        kept = [item for item in items if node.test is None or self._with(names, [item], node.test)]
        for number, item in enumerate(kept):
            loop = {"index": number + 1, "index0": number, "first": number == 0, "last": number + 1 == len(kept),
                    "length": len(kept)}  # fmt: skip
            self.scopes.append({**self._named(names, item, node), "loop": loop})
            self.block(node.body)
            self.scopes.pop()
        if not kept:
            self.block(node.else_)

    def _with(self, names: Sequence[Any], item: Sequence[Any], test: nodes.Node) -> bool:
        self.scopes.append(self._named(names, item[0], test))
        try:
            return self._truth(test)
        finally:
            self.scopes.pop()

    def _named(self, names: Sequence[Any], item: Any, node: nodes.Node) -> dict[str, Any]:
        if len(names) == 1:
            return {names[0].name: item}
        if not isinstance(item, list | tuple) or len(item) != len(names):
            raise Unrendered("a loop's names and values differ in number", node.lineno)
        return {name.name: value for name, value in zip(names, item, strict=True)}

    def _value(self, node: nodes.Node) -> Any:
        self._step(node)
        if isinstance(node, nodes.Const):
            return node.value
        if isinstance(node, nodes.TemplateData):
            return node.data
        if isinstance(node, nodes.List | nodes.Tuple):
            return [self._value(item) for item in node.items]
        if isinstance(node, nodes.Dict):
            return {self._value(pair.key): self._value(pair.value) for pair in node.items}
        if isinstance(node, nodes.Name):
            return self._name(node)
        if isinstance(node, nodes.Call):
            return self._call(node)
        if isinstance(node, nodes.CondExpr):
            chosen = node.expr1 if self._truth(node.test) else node.expr2
            return self._value(chosen) if chosen is not None else ""
        if isinstance(node, nodes.Getattr | nodes.Getitem):
            return self._member(node)
        if isinstance(node, nodes.Filter) and node.node is not None and not node.kwargs:
            return filtered(node.name, self._value(node.node), [self._value(a) for a in node.args], node.lineno)
        return operated(node, self._value)

    def _name(self, node: nodes.Name) -> Any:
        for scope in reversed(self.scopes):
            if node.name in scope:
                value = scope[node.name]
                if isinstance(value, NOT_HERE):
                    raise Undecided(value.what)
                return value
        if node.name == "this":
            return self.around.this
        raise Undecided(f"`{node.name}`")

    def _member(self, node: nodes.Getattr | nodes.Getitem) -> Any:
        owner = self._value(node.node)
        name: Any = node.attr if isinstance(node, nodes.Getattr) else self._value(node.arg)
        try:
            if isinstance(owner, dict) or (isinstance(owner, list) and isinstance(name, int)):
                return owner[name]
        except (KeyError, IndexError):
            pass
        raise Undecided(f"`{name}`")

    def _call(self, node: nodes.Call) -> Any:
        if node.dyn_args is not None or node.dyn_kwargs is not None:
            raise Unrendered("a call with `*` is not followed", node.lineno)
        owner, name = _called(node.node)
        named = {pair.key: pair.value for pair in node.kwargs}
        if owner in ("", self.around.project) and name in {**self.around.macros, **self.local}:
            return self._macro(name, node, named)
        if owner == "dbt_utils" and name in ("generate_surrogate_key", "surrogate_key"):
            return self._surrogate([self._value(arg) for arg in node.args], node)
        if owner:
            raise Unrendered(f"`{owner}.{name}` is not a macro of this project", node.lineno)
        if name == "config":
            self.config.update({key: self._late(value) for key, value in named.items()})
            return ""
        if name in ("ref", "source"):
            return self._relation(name, node)
        if name == "is_incremental" and not self.around.incremental:
            return False
        if name == "var" and node.args:
            asked = self._value(node.args[0])
            if asked in self.around.variables:
                return self.around.variables[asked]
            raise Undecided(f"the variable `{asked}`")
        if name == "return" and len(node.args) == 1:
            return self._value(node.args[0])
        if name in ("is_incremental", "env_var", "var"):
            raise Undecided(f"`{name}`")
        raise Unrendered(f"`{name}` is not a macro of this project", node.lineno)

    def _relation(self, kind: str, node: nodes.Call) -> str:
        given = [self._value(arg) for arg in node.args]
        version = next((self._value(p.value) for p in node.kwargs if p.key in ("v", "version")), None)
        if not given or not all(isinstance(part, str) for part in given):
            raise Unrendered(f"`{kind}` is not known", node.lineno)
        if kind == "ref" and version is not None:
            given[-1] = f"{given[-1]}_v{version}"
        found = self.around.relation(kind, tuple(given))
        if found is None:
            raise Unrendered(f"{kind}({', '.join(given)}) is not in this project", node.lineno)
        self.refs[found] = None
        return found

    def _surrogate(self, given: Sequence[Any], node: nodes.Call) -> str:
        columns = given[0] if len(given) == 1 and isinstance(given[0], list) else given
        if not columns or not all(isinstance(c, str) for c in columns):
            raise Unrendered("the columns of a surrogate key are not known", node.lineno)
        parts = [f"coalesce(cast({c} as string), '{_SURROGATE}')" for c in columns]
        return f"md5({parts[0]})" if len(parts) == 1 else "md5(concat(" + ", '-', ".join(parts) + "))"

    def _macro(self, name: str, node: nodes.Call, named: Mapping[str, nodes.Node]) -> str:
        self.called.add(name)
        if self.depth >= _DEEPEST:
            raise Unrendered(f"the macro `{name}` calls itself too deeply", node.lineno)
        made = self.local.get(name) or _macro_tree(self.around.macros[name], name)
        names = [arg.name for arg in made.args]
        if len(node.args) > len(names) or not named.keys() <= set(names):
            raise Unrendered(f"the arguments of the macro `{name}` differ", node.lineno)
        first = len(names) - len(made.defaults)
        given = {names[first + n]: self._late(default) for n, default in enumerate(made.defaults)}
        given |= {names[n]: self._late(arg) for n, arg in enumerate(node.args)}
        given |= {key: self._late(value) for key, value in named.items()}
        outer, scopes = self.pieces, self.scopes
        self.pieces, self.scopes, self.depth = [], [given], self.depth + 1
        try:
            self.block(made.body)
            return "".join(text for text, _, _ in self.pieces)
        except Unrendered as problem:
            raise Unrendered(f"in the macro `{name}`: {problem.reason}", node.lineno) from None
        finally:
            self.pieces, self.scopes, self.depth = outer, scopes, self.depth - 1


def _called(node: nodes.Node) -> tuple[str, str]:
    """`package.macro` or `macro`, as its parts."""
    if isinstance(node, nodes.Name):
        return "", node.name
    if isinstance(node, nodes.Getattr) and isinstance(node.node, nodes.Name):
        return node.node.name, node.attr
    raise Unrendered("a call is not followed", node.lineno)


def _macro_tree(text: str, name: str) -> nodes.Macro:
    for node in _tree(text).body:
        if isinstance(node, nodes.Macro) and node.name == name:
            return node
    raise Unrendered(f"the macro `{name}` does not parse", 1)
