"""Panics of libraries in Rust (hudi-rs, delta-rs): they come as no `Exception`, and would end the whole program."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

_PANIC = "PanicException"
"""Of PyO3, in a module that cannot be imported (https://docs.rs/pyo3/latest/pyo3/panic/struct.PanicException.html)."""


class NativePanicError(RuntimeError):
    """A native library gave up on what it was given."""


@contextmanager
def panics_as_errors() -> Iterator[None]:
    """Inside, a panic is an error as any other; its text may quote data, and is not kept.

    Raises:
        NativePanicError: a library panicked.
    """
    try:
        yield
    except Exception:
        raise
    except BaseException as error:
        if type(error).__name__ != _PANIC:
            raise
        raise NativePanicError("a native library panicked") from None
