"""Which names of hosts could be one machine, or one cluster, by how the names are made."""

from __future__ import annotations

import ipaddress
import re

_PORT = re.compile(r":(\d+)$")
_DIGITS = re.compile(r"\d+")
_LOCATOR = re.compile(r"^[a-z]{2,3}\d{5}(?:\.|$)")
_CLUSTERS = frozenset(("kafka", "hive", "cassandra", "mongodb", "trino", "clickhouse"))
"""Systems of several machines, of which each answers for all."""


def one_host(host: str) -> str:
    """This machine by one name."""
    name, at = without_port(host), port(host)
    return (f"localhost:{at}" if at else "localhost") if name in ("127.0.0.1", "[::1]") else host


def port(host: str) -> str:
    """The port in a host's name; empty where it has none."""
    found = _PORT.search(host)
    return found[1] if found else ""


def without_port(host: str) -> str:
    """A host's name without its port."""
    return _PORT.sub("", host)


def may_be_one_host(system: str, one: str, other: str) -> bool:
    """Whether two hosts of one system may be one.

    A port, a domain or the region of an account may be in one name alone; one may be an address. Machines of a cluster
    differ in a number, and lists of brokers have some in common.
    """
    one, other = one.lower(), other.lower()
    if one == other:
        return True
    if system == "snowflake":
        return one.startswith(f"{other}.") or other.startswith(f"{one}.") or _is_locator(one) != _is_locator(other)
    if system == "kafka" and ("," in one or "," in other):
        return any(may_be_one_host(system, a, b) for a in one.split(",") for b in other.split(","))
    here, there = without_port(one), without_port(other)
    if port(one) and port(other) and port(one) != port(other):
        return system == "clickhouse" and here == there  # it listens at several
    if not (here and there):
        return False
    short = here.partition(".")[0] == there.partition(".")[0] and ("." in here) != ("." in there)
    numbered = system in _CLUSTERS and _DIGITS.sub("", here) == _DIGITS.sub("", there)
    return here == there or short or numbered or _is_address(here) != _is_address(there)


def _is_locator(account: str) -> bool:
    """Whether an account of Snowflake is called by its locator, and not by organisation and name."""
    return _LOCATOR.match(account) is not None and "-" not in account.partition(".")[0]


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True
