"""Two runs at once in one namespace, which share a scorer that goes with the last of them.

And one whose judge is a pod of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.cluster.node.cluster import Cluster
from tests.node.conftest import Json, Space, restricted
from tests.node.lives import Run, step

SCORERS = "watercolour.dev/component=scorer"


@pytest.fixture
def garden(release: Cluster) -> Iterator[Space]:
    """The namespace of both."""
    yield from restricted(release)


def scorers(garden: Space) -> list[Json]:
    """The scorers' pods that are not about to go."""
    listed = garden.get("pods", "", "-l", SCORERS)["items"]
    return [pod for pod in listed if not pod["metadata"].get("deletionTimestamp")]


def test_shared_scorer_outlives_the_first_and_goes_with_the_last(garden: Space) -> None:
    short, long = Run(garden, "short"), Run(garden, "long")
    small = {"resources": {"requests": {"cpu": "100m", "memory": "1536Mi"}}}
    for each, steps in ((short, 2), (long, 5)):
        each.apply(
            steps,
            scorer={"sharing": "Namespace"},
            trainer={"steps": steps, **small},
            renderers={"scaling": {"min": 1, "max": 1}},
        )
    for each in (short, long):
        found = each.until("making steps", lambda found: step(found) >= 1)
        assert found["progress"]["unscoredRate"] < 1, found
    (pod,) = scorers(garden)
    assert {owner["name"] for owner in owners(garden)} == {"short", "long"}
    short.until("succeeded", lambda found: found["phase"] == "Succeeded")
    if step(long.status()) < 5:
        (kept,) = scorers(garden)
        assert kept["metadata"]["uid"] == pod["metadata"]["uid"]
    long.until("succeeded", lambda found: found["phase"] in {"Completing", "Succeeded"})
    gone = ["wait", "pod", "-l", SCORERS, "--for=delete", "--timeout=10s"]
    assert "timed out" not in garden.kubectl(*gone, check=False)
    for each in (short, long):
        found = each.until("succeeded", lambda found: found["phase"] == "Succeeded")
        assert found["progress"]["unscoredRate"] < 1, "the shared scorer answered nobody"


def test_judge_of_a_runs_own_goes_at_once_when_it_ends(garden: Space) -> None:
    """Without a scorer the embedded judge has nobody whose process it could share."""
    story = Run(garden, "judged")
    story.apply(
        2,
        recipe={"name": "own", "weights": {"gate": 0.1, "judge": 0.9}},
        scorer={"backend": "none"},
        renderers={"scaling": {"min": 1, "max": 1}},
    )
    found = story.until("making a step", lambda found: step(found) >= 1)
    assert found["progress"]["unscoredRate"] < 1, found
    assert story.pods("judge")
    assert scorers(garden) == []
    story.until("succeeded", lambda found: found["phase"] in {"Completing", "Succeeded"})
    gone = ["wait", "pod", "-l", "watercolour.dev/component=judge", "--for=delete"]
    assert "timed out" not in garden.kubectl(*gone, "--timeout=10s", check=False)
    story.until("succeeded", lambda found: found["phase"] == "Succeeded")


def owners(garden: Space) -> list[Json]:
    """Who owns the scorer's Deployment."""
    (found,) = garden.get("deployments", "", "-l", SCORERS)["items"]
    return found["metadata"]["ownerReferences"]
