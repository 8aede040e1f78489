"""The project's exceptions. Each crosses one boundary and carries a stable reason."""

from __future__ import annotations

from typing import Any

from watercolour.api.reasons import Reason


class WatercolourError(Exception):
    """Something that a person or the caller has to deal with.

    Attributes:
        reason: the stable word for it; see :class:`watercolour.api.reasons.Reason`.
        remedy: what to do about it, as one imperative sentence, or an empty string.
    """

    #: The command line's exit code: 1 the input is at fault, 3 the infrastructure is.
    exit_code = 3

    def __init__(self, reason: Reason, message: str, *, remedy: str = "") -> None:
        super().__init__(f"{message} {remedy}".strip())
        self.reason = reason
        self.message = message
        self.remedy = remedy


class InputError(WatercolourError):
    """The input is at fault: a specification, a file, an argument's value."""

    exit_code = 1

    def __init__(
        self, reason: Reason, message: str, *, remedy: str = "", field: str = "", value: Any = None
    ) -> None:
        super().__init__(reason, message, remedy=remedy)
        self.field = field
        self.value = value


class InfrastructureError(WatercolourError):
    """The surroundings are at fault: a server, a browser, the disk. Worth a retry."""


class InterruptedRun(WatercolourError):
    """The run was stopped after a checkpoint and can be resumed."""

    exit_code = 130
