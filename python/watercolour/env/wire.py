"""The rollout record as JSON and back: the one mapping that server and client share.

Pure, and free of OpenEnv's imports, which take seconds that a client need not spend.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from watercolour.api.errors import InfrastructureError
from watercolour.api.reasons import Reason
from watercolour.api.rollout import Rollout

#: The record's fields that the environment fills and an observation carries as they are.
CARRIED = (
    "seed",
    "hues",
    "references",
    "reference_strengths",
    "draw_strength",
    "mean_draw_strength",
    "sketch",
    "violations",
    "gate_passed",
    "paint_fraction",
    "pigment_share",
    "shapes",
    "heaviest_shape",
    "js_errors",
    "votes",
    "terms",
    "weights",
    "mu",
    "marks",
    "reward",
    "reward_adjusted",
    "unscored_reason",
    "unscored_detail",
    "attempts",
    "timings",
    "versions",
)


def fields(rollout: Rollout, *, with_painting: bool) -> dict[str, Any]:
    """The carried fields as plain JSON values, and the painting as base64 when asked for."""
    carried = rollout.model_dump(mode="json", include=set(CARRIED))
    if with_painting and rollout.painting is not None:
        carried["painting"] = base64.b64encode(rollout.painting).decode("ascii")
    return carried


def fill(rollout: Rollout, observation: Mapping[str, Any], reward: float | None) -> Rollout:
    """A fuller copy of a client's rollout from what the server observed.

    Args:
        rollout: with what the client knows: run, step, group, index, subject, completion.
        observation: the observation's fields; OpenEnv sends the reward beside it.
        reward: the step's reward, None when unscored.

    Raises:
        InfrastructureError: the observation is not one of ours (EnvUnavailable).
    """
    known = rollout.model_dump()
    known.update({name: observation[name] for name in CARRIED if name in observation})
    known["reward"] = reward
    try:
        picture = observation.get("painting")
        known["painting"] = None if picture is None else base64.b64decode(picture, validate=True)
        return Rollout.model_validate(known)
    except (ValidationError, binascii.Error, TypeError) as error:
        raise InfrastructureError(
            Reason.ENV_UNAVAILABLE, f"the environment's observation cannot be read: {error}"
        ) from error
