"""Statements that move no data of any table, each with the reason. Whatever is not listed here is not understood."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sqlglot import exp

from pii_tracer.lineage.sql.accounting.administration import ANOTHER, words_of

_MOVES = re.compile(
    r"\b(?:SELECT|INSERT|UPDATE|DELETE|MERGE|COPY|UNLOAD|EXPORT|IMPORT|CALL|EXEC(?:UTE)?)\b", re.IGNORECASE
)

_COMMANDS: Mapping[str, frozenset[str]] = {
    "the engine lays out the same rows again, or removes old files": frozenset(
        {"OPTIMIZE", "VACUUM", "MSCK", "ZORDER", "REORG", "FSCK", "REFRESH", "ANALYZE"}
    ),
    "it describes tables": frozenset({"SHOW", "DESCRIBE", "DESC", "LIST", "EXPLAIN"}),
    "a setting of the session": frozenset({"SET", "RESET", "USE", "ADD", "UNCACHE", "CLEAR"}),
    "who may do what": frozenset({"GRANT", "REVOKE", "DENY"}),
    "a description": frozenset({"COMMENT"}),
    "the borders of a transaction": frozenset({"BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT"}),
}
"""First words of statements that the parser does not read further."""
_SPEAKS_OF_VERBS = frozenset({"GRANT", "REVOKE", "DENY", "COMMENT", "DESCRIBE", "DESC"})
"""Those that name kinds of statements, or quote them, and run none."""

_VERBS = rf"(?:SELECT|INSERT|UPDATE|DELETE|MERGE|COPY|UNLOAD|CALL|EXEC(?:UTE)?)\b|{ANOTHER}"
_RIGHTS = frozenset({"GRANT", "REVOKE", "DENY"})
_BEHIND_RIGHTS = re.compile(rf"\b(?:TO|FROM)\b.*\b(?:{_VERBS})")
_SHOWN = re.compile(r"(?:CREATE|GRANTS)\b")
"""What SHOW shows: a verb that begins nothing."""
_ANOTHER = re.compile(rf"\b(?:{_VERBS})")
"""How a statement begins that has no semicolon before it."""

_NODES: Mapping[str, tuple[type[exp.Expression], ...]] = {
    "a setting of the session": (exp.Use, exp.Set, exp.Pragma, exp.Uncache),
    "it describes tables": (exp.Describe, exp.Show, exp.Analyze),
    "the same rows are read again": (exp.Refresh,),
    "rows go, and nothing comes": (exp.TruncateTable,),
    "a description": (exp.Comment,),
    "the borders of a transaction": (exp.Transaction, exp.Commit, exp.Rollback),
    "who may do what": (exp.Grant, exp.Revoke),
}
DEFINITIONS: Mapping[str, frozenset[str]] = {
    "a name for tables to come": frozenset({"SCHEMA", "DATABASE", "CATALOG", "NAMESPACE"}),
    "a way to find rows of the same table": frozenset({"INDEX", "UNIQUE INDEX"}),
    "numbers that come from no table": frozenset({"SEQUENCE"}),
    "a type": frozenset({"TYPE", "DOMAIN"}),
    "who may do what": frozenset({"ROLE", "USER", "GROUP"}),
    "what the engine can use": frozenset({"WAREHOUSE", "TAG", "FILE_FORMAT", "FILE FORMAT", "STORAGE_INTEGRATION",
                                          "STORAGE INTEGRATION"}),
    "a name for a place: statements that read or write it are followed": frozenset({"STAGE"}),
    "a computation: a statement that calls it is taken to use all of its arguments": frozenset({"FUNCTION", "MACRO"}),
}  # fmt: skip
"""Kinds of CREATE that make no copy by themselves."""

_MODES = frozenset({"READ", "ISOLATION", "WITH", "DEFERRABLE", "NOT", "REPEATABLE", "SERIALIZABLE"})
"""How the modes of a transaction begin."""
_QUIET_NODES = tuple(kind for kinds in _NODES.values() for kind in kinds)
_QUIET_COMMANDS = frozenset().union(*_COMMANDS.values())
_QUIET_KINDS = frozenset().union(*DEFINITIONS.values())


def without_data(node: exp.Expression) -> bool:
    """Whether a parsed statement is of a kind that moves no data, and no part of it says otherwise."""
    if isinstance(node, exp.Command):
        words = node.name.split()
        word = words[0].upper() if words else ""
        given = node.args.get("expression") or ""
        rest = " ".join((given.name if isinstance(given, exp.Literal) else str(given), *words[1:]))
        if word == "EXPLAIN" and not re.search(r"\bANALY[ZS]E\b", rest, re.IGNORECASE):
            return True  # it shows how a statement would run
        if word == "VACUUM" and re.search(r"\bINTO\b", rest, re.IGNORECASE):
            return False  # SQLite: a copy of the database
        if word == "GRANT" and re.search(r"\bTO\s+(?:DATA)?SHARE\b", rest, re.IGNORECASE):
            return False  # it gives others the rows
        if _another(word, words_of(rest)):
            return False
        return word in _QUIET_COMMANDS and (word in _SPEAKS_OF_VERBS or not _MOVES.search(rest))
    if isinstance(node, exp.Describe):
        return str(node.args.get("style") or "").upper() not in ("ANALYZE", "ANALYSE")
    if isinstance(node, exp.Transaction):
        modes = (str(mode).split() for mode in node.args.get("modes") or ())
        return all(words and words[0].upper() in _MODES for words in modes)  # `START REPLICA` begins something else
    if isinstance(node, exp.Declare):
        return node.find(exp.Table, exp.Query) is None
    return isinstance(node, _QUIET_NODES) and node.find(exp.Query) is None


def _another(word: str, rest: str) -> bool:
    """Whether words that are no rights and no names begin a statement, which has no semicolon before it."""
    if word in _RIGHTS:
        return _BEHIND_RIGHTS.search(rest) is not None
    if word == "SHOW" and (its := _SHOWN.match(rest)) is not None:
        rest = rest[its.end() :]
    return _ANOTHER.search(rest) is not None


def defines_only(node: exp.Create) -> bool:
    """Whether a CREATE of something that is no table or view makes no copy of any table."""
    kind = str(node.args.get("kind") or "").upper()
    return kind in _QUIET_KINDS and node.args.get("clone") is None
