"""Who asks Cloud Storage: Application Default Credentials (https://cloud.google.com/docs/authentication)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from pii_tracer.common.http import bearer
from pii_tracer.model.errors import EstateError

_SCOPE = "https://www.googleapis.com/auth/devstorage.full_control"
_LOCK = threading.Lock()


def no_credentials() -> Mapping[str, str]:
    """For emulators."""
    return {}


def default_credentials() -> Callable[[], Mapping[str, str]]:
    """Gives the header with a token that is still good, of the credentials that the environment has.

    Raises:
        EstateError: google-auth is not installed, or it finds no credentials.
    """
    try:
        import google.auth
        from google.auth.exceptions import GoogleAuthError
        from google.auth.transport.requests import Request
    except ImportError:
        raise EstateError(
            "places in Cloud Storage need google-auth", todo="run `pip install 'pii-tracer[gcp]'`"
        ) from None
    try:
        found: Any = google.auth.default(scopes=[_SCOPE])[0]
    except GoogleAuthError as error:
        raise _none(error) from None

    def headers() -> Mapping[str, str]:
        with _LOCK:
            try:
                if not found.valid:
                    found.refresh(Request())
            except GoogleAuthError as error:
                raise _none(error) from None
            return bearer(found.token)

    return headers


def _none(error: Exception) -> EstateError:
    # the library's messages can quote what it read
    return EstateError(
        f"no credentials for Cloud Storage were found ({type(error).__name__})",
        todo="set GOOGLE_APPLICATION_CREDENTIALS, or run `gcloud auth application-default login`",
    )
