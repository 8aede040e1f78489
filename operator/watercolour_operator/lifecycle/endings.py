"""How an attempt of the trainer ended, and whether that is its own fault. Pure.

Three kinds of death are told apart, because only two of them count against maxRestarts: an error of
the trainer's own, too little memory, and a disruption, when the cluster took the pod away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from watercolour.api.reasons import Reason
from watercolour_operator.lifecycle import words
from watercolour_operator.lifecycle.words import Words
from watercolour_operator.observed import Pod

#: The trainer's exit codes after a signal that asked it to stop: it wrote a checkpoint.
STOPPED = (143, 130)
#: SIGKILL: by the kubelet when the grace was over, or by the kernel.
KILLED = 137

#: Ends after which another attempt would end in the same way.
FINAL = frozenset(
    {
        Reason.INVALID_SPEC,
        Reason.INVALID_INPUT,
        Reason.UNKNOWN_RECIPE,
        Reason.INVALID_POOL,
        Reason.RUN_EXISTS,
        Reason.POLICY_TOO_WEAK,
        Reason.POLICY_COLLAPSED,
        Reason.LOSS_NOT_FINITE,
        Reason.GPU_OUT_OF_MEMORY,
        Reason.VERSION_SKEW,
    }
)
#: Reasons in a trainer's last words that say no more than its exit code does.
UNSPECIFIC = frozenset({Reason.INTERNAL_ERROR, Reason.INTERRUPTED, Reason.SUCCEEDED})
#: Ends that the cluster brought about.
DISRUPTIONS = frozenset({Reason.TRAINER_DISRUPTED, Reason.NODE_LOST})
#: Ends that were wanted: by the training itself, by a person or by the operator.
WANTED = frozenset(
    {
        Reason.SUCCEEDED,
        Reason.RUN_SUSPENDED,
        Reason.STARTUP_DEADLINE_EXCEEDED,
        Reason.ACTIVE_DEADLINE_EXCEEDED,
    }
)
#: How far two machines' clocks may be apart before an end counts as earlier than a deletion.
SKEW = timedelta(seconds=2)


@dataclass(frozen=True, slots=True)
class Ending:
    """Why an attempt ended."""

    reason: Reason
    #: What happened, for a person, without a full stop.
    fact: str
    pod: Pod | None = None
    words: Words = field(default_factory=Words)

    @property
    def own_fault(self) -> bool:
        """Whether the trainer itself failed: an error, or too little memory."""
        return self.reason not in DISRUPTIONS | WANTED


def of(pods: Sequence[Pod], *, complete: bool, sign: Reason | None) -> Ending:
    """The end of an attempt whose pods are all over or gone.

    Args:
        pods: its pods that can still be seen; none of them runs.
        complete: every pod that the attempt needed has succeeded.
        sign: a disruption or a stop that was seen before the pods were gone.
    """
    if complete:
        pod = pods[0] if pods else None
        return Ending(Reason.SUCCEEDED, "All steps are done", pod, _words(pod))
    pod = _culprit(pods)
    if sign is not None and sign in WANTED:
        return Ending(sign, "The operator stopped the trainer", pod, _words(pod))
    if pod is None:
        return Ending(sign or Reason.TRAINER_DISRUPTED, _gone(sign))
    said = _words(pod)
    if pod.ended_reason == "OOMKilled":
        return Ending(Reason.TRAINER_OOM_KILLED, "The trainer ran out of memory", pod, said)
    if sign is Reason.NODE_LOST or pod.node_lost:
        return Ending(Reason.NODE_LOST, _gone(Reason.NODE_LOST), pod, said)
    if sign is Reason.TRAINER_DISRUPTED or disrupted(pod):
        return Ending(Reason.TRAINER_DISRUPTED, _taken(pod), pod, said)
    if pod.exit_code is None:
        fact = "The kubelet ended the trainer's pod" + _because(pod)
        return Ending(Reason.TRAINER_DISRUPTED, fact, pod, said)
    if pod.exit_code in STOPPED:
        fact = f"Something stopped the trainer by a signal (exit code {pod.exit_code})"
        return Ending(Reason.TRAINER_DISRUPTED, fact, pod, said)
    reason = Reason.TRAINER_FAILED if said.reason in UNSPECIFIC else said.reason
    return Ending(reason or Reason.TRAINER_FAILED, _failed(pod, said), pod, said)


def disrupted(pod: Pod) -> bool:
    """Whether the cluster asked the pod to go before it ended by itself."""
    if pod.disrupted:
        return True
    return pod.deleting is not None and (pod.ended is None or pod.ended >= pod.deleting - SKEW)


def _culprit(pods: Sequence[Pod]) -> Pod | None:
    """The pod that ended first and not well: the others were stopped because of it."""
    failed = [pod for pod in pods if pod.phase != "Succeeded"]
    return min(failed, key=lambda pod: (pod.ended or pod.created, pod.name), default=None)


def _words(pod: Pod | None) -> Words:
    return words.of(pod.message) if pod else Words()


def _gone(sign: Reason | None) -> str:
    if sign is Reason.NODE_LOST:
        return "The trainer's node is gone"
    return "The trainer's pod was taken away"


def _taken(pod: Pod) -> str:
    # A disrupted pod's own words are the log of its last moments, not the cause.
    where = f" from {pod.node}" if pod.node else ""
    return f"The trainer's pod was taken away{where} by eviction, preemption or deletion"


def _because(pod: Pod) -> str:
    said = words.last_line(pod.message)
    return f": {said.rstrip('.')}" if said else ""


def _failed(pod: Pod, said: Words) -> str:
    if pod.exit_code == KILLED:
        return "The trainer was killed by SIGKILL (exit code 137), and not for its memory"
    told = words.last_line(said.text).rstrip(".")
    return f"The trainer ended with exit code {pod.exit_code}" + (f": {told}" if told else "")
