"""What AWS's services have in common: how their refusals are told."""

from __future__ import annotations

from collections.abc import Mapping

_REFUSED = frozenset({"403", "AccessDenied", "AccessDeniedException", "UnauthorizedException"})
_INVALID = frozenset(
    {
        "InvalidAccessKeyId",
        "InvalidClientTokenId",
        "InvalidToken",
        "NoCredentialsError",
        "RequestExpired",
        "SignatureDoesNotMatch",
        "TokenRefreshRequired",
        "UnrecognizedClientException",
    }
)

_FAILED = frozenset(
    {"InternalError", "InternalFailure", "InternalServerError", "InternalServiceException", "NotImplemented",
     "ServiceUnavailable", "UnknownOperationException"}
)  # fmt: skip


def error_code(error: Exception) -> str:
    """The code of a refusal alone, or the kind of a failure without an answer: messages can repeat outside values.

    Only botocore's `ClientError` has an answer that is a mapping.
    """
    answer = getattr(error, "response", None)
    if isinstance(answer, Mapping):
        return str(answer.get("Error", {}).get("Code") or "unknown")
    return type(error).__name__


def is_refusal(code: str) -> bool:
    """Whether an account lacks a right. Other failures have other causes."""
    return code in _REFUSED


def remedy(code: str, rights: str) -> str:
    """What the owner does about a refusal, behind a colon; nothing for other failures. rights: that are needed."""
    if is_refusal(code):
        return f": grant the account {rights}"
    if code.startswith("Expired") or code in _INVALID:
        return ": its credentials are not valid, or not any more; get new ones and run the command again"
    if "Throttl" in code or code in ("RequestLimitExceeded", "SlowDown"):
        return ": AWS rejects requests because there are too many; run the command again later"
    if code == "OtherKindOfBucket":
        return ": it is a table bucket or a directory bucket, to which no request is sent"
    if code in _FAILED or (code.isdigit() and code.startswith("5")):
        return ": the server does not answer this call, and rights are not the cause; ask its administrator"
    return ""
