"""The lives of pods as a test scripts them. What a kubelet writes at each step is in kubelet.py."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Creating:
    """Bound to a node; volumes are mounted, images pulled. Containers wait: ContainerCreating."""

    after: float = 0.0


@dataclass(frozen=True)
class Waiting:
    """The first container cannot start, for a reason as the kubelet words it; phase Pending."""

    reason: str
    message: str
    after: float = 0.0


@dataclass(frozen=True)
class Running:
    """Every container runs, after the init containers have.

    With `ready` False the readiness probe has not passed. Ends a back-off, as a restart.
    """

    ready: bool = True
    after: float = 0.0


@dataclass(frozen=True)
class Exited:
    """A container ends: the named one, or the first.

    Where the restart policy forbids another start, the pod is Succeeded or Failed once all its
    containers have ended. Where it allows one, the container is started again at once after its
    first end, and waits in CrashLoopBackOff after every later one.
    """

    code: int = 0
    reason: str = ""  # Completed, Error or OOMKilled; from the code when empty
    message: str = ""  # the termination message
    container: str = ""
    after: float = 0.0


@dataclass(frozen=True)
class Evicted:
    """The kubelet ends the pod to relieve its node; a disruption, not the program's fault."""

    message: str = "The node was low on resource: memory."
    after: float = 0.0


Step = Creating | Waiting | Running | Exited | Evicted


@dataclass(frozen=True)
class Life:
    """Steps, each so many seconds after the one before, and what becomes of the pod on SIGTERM.

    On SIGTERM the first container goes on for `stop_after` seconds and then exits with `stop_code`
    (143 as a program that ends on SIGTERM; 0 as one that ends well). None: it ignores SIGTERM and
    is killed when the grace period is over, with 137.
    """

    steps: tuple[Step, ...]
    stop_after: float | None = 0.0
    stop_code: int = 143
    stop_message: str = ""


READY = Life((Creating(), Running()))
UNREADY = Life((Creating(), Running(ready=False)))
NEVER_STARTS = Life((Creating(),))


def finishes(code: int = 0, *, after: float = 0.0, message: str = "", reason: str = "") -> Life:
    """Runs for `after` seconds and exits with `code`."""
    return Life((Creating(), Running(), Exited(code, reason, message, after=after)))


def out_of_memory(*, after: float = 0.0) -> Life:
    """Runs for `after` seconds and is killed by the kernel for its memory."""
    return finishes(137, after=after, reason="OOMKilled")


def crash_loops(code: int = 1, *, reason: str = "", message: str = "") -> Life:
    """Ends at once, is started again, ends again, and waits in CrashLoopBackOff."""
    end = Exited(code, reason, message)
    return Life((Creating(), Running(), end, end))


def cannot_pull(image: str = "registry.example/absent:1", fault: str = "not found") -> Life:
    """The image cannot be pulled: ErrImagePull, then ImagePullBackOff."""
    text = (
        f'failed to pull and unpack image "{image}": failed to resolve reference "{image}": {fault}'
    )
    back_off = f'Back-off pulling image "{image}": ErrImagePull: {text}'
    return Life(
        (
            Creating(),
            Waiting("ErrImagePull", text),
            Waiting("ImagePullBackOff", back_off, after=0.05),
        )
    )


def cannot_configure(message: str = 'secret "absent" not found') -> Life:
    """A Secret or ConfigMap that the container refers to is missing."""
    return Life((Creating(), Waiting("CreateContainerConfigError", message)))
