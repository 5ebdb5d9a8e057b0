"""Ports for servers of tests: no connection of the system's takes one, and no other test process is given it."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.servers import free_ports


def test_ports_are_not_those_that_connections_take() -> None:
    first, last = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    assert [port for port in free_ports(20) if first <= port <= last] == []


def test_no_two_at_a_time_are_given_the_same() -> None:
    with ThreadPoolExecutor(8) as pool:
        given = [port for ports in pool.map(free_ports, [5] * 40) for port in ports]
    assert len(given) == len(set(given)) == 200


def test_a_port_on_which_somebody_listens_is_passed_over() -> None:
    [first] = free_ports(1)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", first + 1))
        taken.listen()
        assert first + 1 not in free_ports(3)
