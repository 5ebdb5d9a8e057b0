from __future__ import annotations

import pytest

from pii_tracer.lake.keys.envelope.key_wrapping import Wrapper
from pii_tracer.model.errors import ShredError
from tests.kmssupport import StrictKms


def test_kms_is_asked_once_for_many_persons_and_again_after_the_lifetime(kms: StrictKms):
    time = [0.0]
    key = kms.key()
    made = Wrapper(kms.source(key), 60, lambda: time[0])
    wrapped = {f"p{n}": made.new_key(f"p{n}") for n in range(50)}
    reader = Wrapper(kms.source(key), 60, lambda: time[0])
    assert len({reader.unwrap(p, w) for p, w in wrapped.items()}) == 50
    kms.client().disable_key(KeyId=key)
    assert reader.unwrap("p0", wrapped["p0"])  # the opened KEK is still in memory
    time[0] = 60.0
    with pytest.raises(ShredError, match="DisabledException"):
        reader.unwrap("p0", wrapped["p0"])


def test_a_key_pending_deletion_wraps_and_opens_nothing(kms: StrictKms):
    key = kms.key()
    wrapped = Wrapper(kms.source(key), 60).new_key("p")
    kms.client().schedule_key_deletion(KeyId=key, PendingWindowInDays=7)
    for act in (lambda w: w.unwrap("p", wrapped), lambda w: w.new_key("p")):
        with pytest.raises(ShredError, match="KMSInvalidStateException"):
            act(Wrapper(kms.source(key), 60))
    kms.client().cancel_key_deletion(KeyId=key)
    kms.client().enable_key(KeyId=key)
    assert Wrapper(kms.source(key), 60).unwrap("p", wrapped)  # cancelled: everything is readable again
