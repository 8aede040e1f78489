"""What stays the same of a pod's status when the same life is lived twice."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

Json = dict[str, Any]
TIMES = {"startedAt", "finishedAt", "containerID"}


def shape(status: Json) -> Json:
    """A status without times, addresses and identities; whether they are there is kept."""
    return {
        "phase": status["phase"],
        "reason": status.get("reason"),
        "message": status.get("message"),
        "hostIP": bool(status.get("hostIP")),
        "podIP": bool(status.get("podIP")),
        "startTime": bool(status.get("startTime")),
        "observedGeneration": bool(status.get("observedGeneration")),
        "conditions": {
            each["type"]: [each["status"], each.get("reason"), each.get("message")]
            for each in status["conditions"]
            if each["type"] != "PodScheduled"  # the scheduler's
        },
        "initContainers": [_container(each) for each in status.get("initContainerStatuses", [])],
        "containers": [_container(each) for each in status.get("containerStatuses", [])],
    }


def shapes(statuses: Iterable[Json]) -> list[Json]:
    """The shapes of the statuses that a kubelet wrote, without repetitions."""
    found: list[Json] = []
    for status in statuses:
        if "hostIP" in status and (not found or found[-1] != shape(status)):
            found.append(shape(status))
    return found


def _container(container: Json) -> Json:
    return {
        "name": container["name"],
        "state": _state(container["state"]),
        "lastState": _state(container.get("lastState", {})),
        "ready": container["ready"],
        "started": container.get("started"),
        "restartCount": container["restartCount"],
        "imageID": bool(container["imageID"]),
        "containerID": bool(container.get("containerID")),
        "resources": "resources" in container,
    }


def _state(state: Json) -> Json:
    return {
        kind: {
            key: re.sub(r"pod=\S+", "pod=…", value) if isinstance(value, str) else value
            for key, value in fields.items()
            if key not in TIMES
        }
        for kind, fields in state.items()
    }
