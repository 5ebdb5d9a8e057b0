"""A panic of a library in Rust is an error like any other, without its text."""

from __future__ import annotations

import pytest

from pii_tracer.common.native_panics import NativePanicError, panics_as_errors


class PanicException(BaseException):
    """As PyO3's, which is no `Exception`."""


def test_a_panic_is_an_error_without_its_text() -> None:
    with pytest.raises(NativePanicError) as told, panics_as_errors():
        raise PanicException("called `Result::unwrap()` on rao@x.example")
    assert "rao" not in str(told.value)


@pytest.mark.parametrize("other", [KeyboardInterrupt, SystemExit, ValueError])
def test_what_is_no_panic_stays_as_it_is(other: type[BaseException]) -> None:
    with pytest.raises(other), panics_as_errors():
        raise other
