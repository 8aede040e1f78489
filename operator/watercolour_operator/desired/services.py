"""How the parts of a run find one another by name. Pure."""

from __future__ import annotations

from watercolour_operator.desired.run import Identity, Manifest
from watercolour_operator.names import PORTS, Component

#: Name of every part's port, in pods and Services.
PORT_NAME = "http"

#: Their pods are found one by one: the environment chooses the renderer, and the pods of one
#: training know each other by name.
HEADLESS = frozenset({Component.RENDERERS, Component.TRAINER})
#: They have to find each other before any of them is ready.
FOUND_UNREADY = frozenset({Component.TRAINER})


def service(who: Identity) -> Manifest:
    """The Service in front of one part's pods."""
    port = {"name": PORT_NAME, "port": PORTS[who.component], "targetPort": PORT_NAME}
    spec = {
        "type": "ClusterIP",
        "selector": dict(who.selector),
        "ports": [{**port, "protocol": "TCP"}],
        "publishNotReadyAddresses": who.component in FOUND_UNREADY,
    }
    if who.component in HEADLESS:
        spec["clusterIP"] = "None"
    return {"apiVersion": "v1", "kind": "Service", "metadata": who.metadata(), "spec": spec}


def url(who: Identity) -> str:
    """The base URL of one part, for pods of the same namespace."""
    return f"http://{who.name}:{PORTS[who.component]}"
