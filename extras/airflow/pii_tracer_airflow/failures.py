"""From errors of pii-tracer to Airflow's exceptions: which are tried again, and which words may be logged."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from airflow.sdk.exceptions import AirflowException, AirflowFailException

Result = TypeVar("Result")


def translated(work: Callable[[], Result]) -> Result:
    """Run some work. Its errors carry no trace and no words of an engine: both could quote a person's data.

    Raises:
        AirflowFailException: a second try would end in the same way; a person has to act.
        AirflowException: something may be different at the next try, or nobody foresaw the error.
    """
    failure: AirflowException
    try:
        return work()
    except AirflowException:
        raise
    except Exception as error:
        failure = _failure_of(error)
    raise failure  # outside of the handler: no trace of the first error comes along


def _failure_of(error: Exception) -> AirflowException:
    from pii_tracer.common.unexpected_errors import place_of
    from pii_tracer.model import errors

    if not isinstance(error, errors.PiiTracerError):
        return AirflowException(
            f"unexpected {type(error).__name__}\n  where: {place_of(error)}\n"
            "  next:  run the same command by hand with PII_TRACER_DEBUG=1: it shows the engine's words,"
            " which can hold data"
        )
    transient = (errors.EstateError, errors.LineageError, errors.RequestError, errors.RunError, errors.ScanError)
    again = isinstance(error, transient) and not isinstance(error, errors.JournalError)
    words = f"{error}\n  exit code: {int(error.exit_code)}"
    return AirflowException(words) if again else AirflowFailException(words)
