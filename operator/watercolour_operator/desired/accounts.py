"""A ServiceAccount a part, so that roles can be told apart; none of them has a token. Pure."""

from __future__ import annotations

from watercolour_operator.desired.run import Identity, Manifest


def account(who: Identity) -> Manifest:
    """The ServiceAccount of one part's pods."""
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": who.metadata(),
        "automountServiceAccountToken": False,
    }
