"""What a policy may be told about its sketch before it tries again.

Only what a person could see in the code or on the sheet: never a score, never a reference, so
that a revision improves the painting and not its knowledge of the judge.
"""

from __future__ import annotations

from watercolour.api.rollout import Rollout

#: JavaScript errors and violations that are quoted; a broken loop can throw hundreds.
QUOTED = 5


def critique(rollout: Rollout) -> str:
    """A few sentences on what the gate and the renderer found."""
    if rollout.gate_passed is None:
        return "The sketch could not be painted for a reason outside of it. Send it again."
    if not rollout.gate_passed:
        lines = ["The sketch was refused:"]
        for violation in rollout.violations[:QUOTED]:
            place = f" (line {violation.line})" if violation.line is not None else ""
            lines.append(f"- {violation.code.value}{place}: {violation.message}")
        lines.append("Mend this and send the whole sketch again.")
        return "\n".join(lines)
    lines = [_seen(rollout)]
    if rollout.js_errors:
        lines.append("While it painted, JavaScript reported:")
        lines.extend(f"- {error}" for error in rollout.js_errors[:QUOTED])
    lines.append("Improve the painting and send the whole sketch again.")
    return "\n".join(lines)


def _seen(rollout: Rollout) -> str:
    parts: list[str] = []
    if rollout.shapes is not None:
        parts.append(f"{rollout.shapes} filled shapes")
    if rollout.paint_fraction is not None:
        parts.append(f"paint on {rollout.paint_fraction:.0%} of the sheet")
    return f"The sketch was painted: {' and '.join(parts)}." if parts else "The sketch was painted."
