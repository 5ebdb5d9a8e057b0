"""What holds for every test: a busy machine makes no property fail."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

if not os.environ.get("CI"):  # Hypothesis has a profile of its own for CI: the same and derandomised
    settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("patient")
