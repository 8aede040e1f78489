"""Whose fault it is that a painting came to nothing; pure.

A sketch is blamed for what nobody else can have done; whatever cannot be told is the
infrastructure's. Bytes of a process are resident ones.
"""

from __future__ import annotations

from watercolour.api.errors import InfrastructureError
from watercolour.api.reasons import Reason, ViolationCode
from watercolour.api.rollout import Violation
from watercolour.render.cgroup import Memory
from watercolour.render.result import SketchFault

#: Bytes beyond which a sketch is out of memory: of its page's process, without what earlier
#: sketches left there, and of what the shared ones have grown by since it began.
MEMORY_LIMIT = 900 * 2**20

#: Bytes that a print may use beyond that. One of 4096 by 4096 pixels used 2.0 GiB more than the
#: same sketch unenlarged, in equal parts in its page, in the graphics and on its way out.
PRINT_BYTES = 2304 * 2**20

#: Upper bound of V8's heap, in MiB; typed arrays lie outside it.
HEAP_MIB = 512

#: Share of it, on top of a warm page, from which a crash counts as out of memory.
HEAP_SHARE = 0.6


def limit(scale: int) -> int:
    """Bytes that a sketch may use which is drawn at a scale."""
    return MEMORY_LIMIT + PRINT_BYTES * (scale > 1)


def of_memory(
    own: int, shared: int, *, allowed: int, together: int, company: int
) -> SketchFault | InfrastructureError | None:
    """What to raise about memory that is used; None while it is within bounds.

    Args:
        own: bytes that the sketch has in its page's process.
        shared: bytes by which the shared processes have grown since it began.
        allowed: bytes that the sketch may use.
        together: bytes that all may use who paint now.
        company: others that have painted at any time since it began.
    """
    if own > allowed:
        return out_of_memory(own)
    if own + shared <= together:
        return None
    if company == 0:
        return out_of_memory(own + shared)
    return InfrastructureError(
        Reason.BROWSER_CRASHED,
        f"{company + 1} sketches used {(own + shared) // 2**20} MiB of memory.",
    )


def of_death(how: str, grown: int, peak: int) -> SketchFault | InfrastructureError:
    """What to raise about the death of the page's process.

    A sketch must not get away by crashing its page; but nothing in a page can kill it.

    Args:
        how: the browser's word for it; ``crashed`` and ``oom`` are what ran in it.
        grown: bytes that the process had gained since it was warm.
        peak: the most bytes that it had.
    """
    if how == "oom" or (how == "crashed" and grown > HEAP_SHARE * HEAP_MIB * 2**20):
        return out_of_memory(peak)
    if how == "crashed":
        return render_failed("The sketch crashed the page that painted it.")
    return InfrastructureError(
        Reason.BROWSER_CRASHED, f"the page's process died while it painted ({how})."
    )


def of_kernel(
    before: Memory | None, after: Memory | None, *, allowed: int, company: int
) -> SketchFault | InfrastructureError | None:
    """What to raise if the kernel has killed for want of memory meanwhile; None if it has not.

    The group's limit is no sketch's. But when it is reached, all that has come on top of what was
    used before is the work of those who painted; of a single one more than its own limit is
    enough. What the kernel may drop, such as files that it holds, is in the use before and not in
    the use at the limit, so a sketch is held to have used less rather than more.

    Args:
        before, after: of the browser's group, when the sketch began and now.
        allowed: bytes that the sketch may use.
        company: other sketches that have painted at any time since it began.
    """
    if before is None or after is None or after.kills == before.kills:
        return None
    used = after.limit - before.used
    full = after.full > before.full
    if full and company == 0 and used > allowed:
        return out_of_memory(used)
    if full:
        return InfrastructureError(
            Reason.BROWSER_CRASHED,
            f"the browser used all of its {after.limit // 2**20} MiB of memory, and whose sketch "
            "has cannot be told.",
            remedy="Give the renderer more memory or fewer slots.",
        )
    return InfrastructureError(
        Reason.BROWSER_CRASHED,
        "the kernel ended a process of the browser because the machine ran out of memory.",
        remedy="Leave the renderer more memory.",
    )


def out_of_memory(used: int) -> SketchFault:
    """It used so many bytes."""
    return _fault(
        ViolationCode.SKETCH_OOM,
        f"The sketch used {used // 2**20} MiB of memory and was stopped.",
    )


def timeout(cpu: float, budget: float) -> SketchFault:
    """It used so many CPU seconds of its budget."""
    return _fault(
        ViolationCode.SKETCH_TIMEOUT,
        f"The sketch used {cpu:.1f} CPU seconds; its budget is {budget:g}.",
    )


def render_failed(message: str) -> SketchFault:
    """It failed in a way that has no code of its own."""
    return _fault(ViolationCode.RENDER_FAILED, message)


def without_graphics() -> InfrastructureError:
    """The process that holds everybody's graphics has ended."""
    return InfrastructureError(
        Reason.BROWSER_CRASHED, "the GPU process went away while the sketch was painted."
    )


def past_deadline(deadline_s: float, cpu: float, budget: float) -> InfrastructureError:
    """The deadline passed after so many CPU seconds of the budget."""
    return InfrastructureError(
        Reason.RENDER_DEADLINE,
        f"the deadline of {deadline_s:g} s passed after {cpu:.1f} of {budget:g} CPU seconds.",
        remedy="The machine is overloaded: lower the slots or raise the deadline.",
    )


def _fault(code: ViolationCode, message: str) -> SketchFault:
    return SketchFault(Violation(code=code, message=message))
