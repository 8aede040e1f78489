"""All hostile sketches, by kind."""

from __future__ import annotations

from tests.security.attack import Attack
from tests.security.burning import BURNING
from tests.security.escapes import ESCAPES
from tests.security.network import NETWORK
from tests.security.probing import PROBES
from tests.security.sources import SOURCES
from tests.security.storage import STORAGE
from tests.security.tampering import TAMPERINGS

ATTACKS: tuple[Attack, ...] = (
    *NETWORK,
    *BURNING,
    *SOURCES,
    *TAMPERINGS,
    *STORAGE,
    *ESCAPES,
    *PROBES,
)


def label(attack: Attack) -> str:
    """Its name for a test report."""
    return f"{attack.kind}: {attack.name}"
