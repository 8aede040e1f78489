"""A run on the node, as it is watched: its status, its steps, its pods."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import yaml
from tests.cluster.ground import processes
from tests.cluster.node.cluster import ROOT
from tests.node.conftest import Json, Space

#: Seconds for whatever a run does, on a machine that others use too.
PATIENCE = 1200.0


@dataclass(frozen=True)
class Run:
    """A run of a name in a namespace."""

    space: Space
    name: str

    def apply(self, steps: int, *, every: int = 0, **spec: Any) -> None:
        """The tiny example with so many steps, and a checkpoint every so many; else as given."""
        manifest = yaml.safe_load((ROOT / "examples" / "cluster-tiny.yaml").read_text())
        manifest["metadata"]["name"] = self.name
        manifest["spec"]["trainer"] |= {"steps": steps, "checkpointEvery": every or steps}
        manifest["spec"]["startupDeadlineSeconds"] = 3600
        for name, value in spec.items():
            part = manifest["spec"].get(name)
            manifest["spec"][name] = part | value if isinstance(part, dict) else value
        self.space.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(manifest))

    def status(self) -> Json:
        """The run's status; empty before the operator has seen it."""
        return self.space.get("wcr", self.name).get("status", {})

    def until(self, what: str, holds: Callable[[Json], object]) -> Json:
        """Look at the run until something holds of its status; the end of the run ends the wait."""
        seen: list[Json] = [{}]

        def look() -> bool:
            seen[0] = self.status()
            return bool(holds(seen[0])) or seen[0].get("phase") in {"Failed", "Succeeded"}

        processes.wait_until(look, PATIENCE)
        assert holds(seen[0]), f"{self.name} is not {what}:\n{yaml.safe_dump(seen[0])}"
        return seen[0]

    def pods(self, component: str) -> list[Json]:
        """The pods of a part of the run that are not about to go."""
        selector = f"watercolour.dev/run={self.name},watercolour.dev/component={component}"
        listed = self.space.get("pods", "", "-l", selector)["items"]
        return [each for each in listed if not each["metadata"].get("deletionTimestamp")]


def step(status: Json) -> int:
    """Steps done."""
    return status.get("progress", {}).get("step", 0)


def ready(pod: Json) -> bool:
    """Whether a pod is ready."""
    conditions = pod["status"].get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
