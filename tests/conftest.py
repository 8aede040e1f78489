"""What holds for every test."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# A busy machine is no fault of the code: no test judges by the time that an example takes.
settings.register_profile(
    "watercolour", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("watercolour")
