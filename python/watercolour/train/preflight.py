"""Before any time is spent: can the starting policy pass the gate, and does the judge discriminate?

GRPO learns from differences. A policy that nearly always fails the gate gives none; nor does a
pool against which it never wins, or always.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from watercolour import logs
from watercolour.api.errors import InfrastructureError, InputError
from watercolour.api.reasons import Reason
from watercolour.api.rollout import Rollout
from watercolour.api.spec import Guards
from watercolour.train import thinking
from watercolour.train.metrics import mean, share
from watercolour.train.rollouts import Group, Painter

log = logs.get(__name__)

#: The share of comparisons that an untrained policy should win, for a judge to teach anything.
WINS = (0.25, 0.75)
#: The step of a probe in its record.
STEP = -1


@dataclass(frozen=True)
class Findings:
    """What the probes showed; None is unknown."""

    probes: int
    gate_pass_rate: float | None
    reward: float | None
    wins: float | None
    thinking: float | None = None
    """The share that begins with a thought."""


def probe(
    painter: Painter, groups: Sequence[Group], guards: Guards, *, silent: bool = False
) -> Findings:
    """Paint one sketch a group with the starting policy and judge the outcome.

    Args:
        painter: generates and evaluates.
        groups: one prompt each.
        guards: the least that is asked for.
        silent: the policy was asked not to think aloud.

    Raises:
        InputError: too few pass the gate (PolicyTooWeak), or most think although they were asked
            not to (InvalidSpec).
        InfrastructureError: none could be evaluated; the reason is the probes' own.
    """
    rollouts = painter.paint(STEP, groups, 1).rollouts
    findings = Findings(
        probes=len(rollouts),
        gate_pass_rate=share(rollout.gate_passed for rollout in rollouts),
        reward=mean(rollout.reward for rollout in rollouts),
        wins=mean(rollout.terms.get("judge") for rollout in rollouts if rollout.gate_passed),
        thinking=thinking.share_of(rollout.completion for rollout in rollouts),
    )
    if silent:
        thinking.require_rare(findings.thinking, findings.probes)
    require(findings, rollouts, guards)
    return findings


def require(findings: Findings, rollouts: Sequence[Rollout], guards: Guards) -> None:
    """Refuse a policy or an infrastructure with which training would be for nothing.

    Raises:
        InputError, InfrastructureError: see :func:`probe`.
    """
    rate = findings.gate_pass_rate
    if rate is None:
        why = next(rollout for rollout in rollouts if rollout.gate_passed is None)
        raise InfrastructureError(
            why.unscored_reason or Reason.INFRASTRUCTURE_DEGRADED,
            f"none of {findings.probes} probes could be evaluated ({why.unscored_detail}).",
            remedy="See the environment's log.",
        )
    log.info("preflight: gate pass rate %.2f over %d probes", rate, findings.probes)
    if rate < guards.min_gate_pass_rate:
        raise InputError(
            Reason.POLICY_TOO_WEAK,
            f"spec.model.id: {rate:.0%} of {findings.probes} probes pass the gate, must be "
            f"{guards.min_gate_pass_rate:.0%}.",
            remedy="Fine-tune the policy on sketches first (watercolour sft), or lower "
            "spec.trainer.guards.minGatePassRate.",
            field="spec.trainer.guards.minGatePassRate",
            value=guards.min_gate_pass_rate,
        )
    if findings.wins is not None and not WINS[0] <= findings.wins <= WINS[1]:
        log.warning(
            "preflight: the starting policy wins %.0f %% of its comparisons; outside %.0f to "
            "%.0f %% the judge teaches little. Change spec.references.tierShares.",
            *(100 * value for value in (findings.wins, *WINS)),
        )
