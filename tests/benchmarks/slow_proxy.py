"""A TCP proxy that gives a server on loopback the latency of a remote one: what a client sends arrives so much later.

python -m tests.benchmarks.slow_proxy LISTEN_PORT SERVER_PORT MILLISECONDS
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.servers import free_ports

_CHUNK = 1 << 18


async def _later(source: asyncio.StreamReader, target: asyncio.StreamWriter, delay: float) -> None:
    """Every piece so much later than it came: the pace of many pieces stays as it was."""
    waiting: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

    async def read() -> None:
        data = b"-"
        while data:
            data = await source.read(_CHUNK)
            waiting.put_nowait((time.monotonic() + delay, data))

    reading = asyncio.create_task(read())
    try:
        while True:
            due, data = await waiting.get()
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            if not data:
                break
            target.write(data)
            await target.drain()
    finally:
        reading.cancel()
        with suppress(OSError):
            target.close()


async def _serve(port: int, server: int, delay: float) -> None:
    async def joined(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            answers, requests = await asyncio.open_connection("127.0.0.1", server)
            # a client that waits for an answer before it sends its last piece must not wait for the system's timers
            for side in (writer, requests):
                side.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await asyncio.gather(_later(reader, requests, delay), _later(answers, writer, 0.0), return_exceptions=True)

    async with await asyncio.start_server(joined, "127.0.0.1", port) as listening:
        await listening.serve_forever()


@contextmanager
def slow(server: int, milliseconds: float) -> Iterator[int]:
    """The proxy as a process, in front of a port of loopback; gives its own port."""
    [port] = free_ports(1)
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.benchmarks.slow_proxy", str(port), str(server), str(milliseconds)],
        cwd=Path(__file__).parents[2],
        env=dict(os.environ),
    )
    try:
        while process.poll() is None:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.05)
        yield port
    finally:
        process.terminate()
        process.wait()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]) / 1000))
