"""One rule in CEL for the API server, and how its message is made."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

#: An expression in a message.
_EXPRESSION = re.compile(r"\{([^{}]+)\}")


@dataclass(frozen=True, slots=True)
class Rule:
    """One entry of ``x-kubernetes-validations``."""

    expression: str
    #: Field and value, fault and remedy; ``{…}`` holds a CEL expression.
    message: str
    #: The field at fault, relative to the schema that has the rule.
    field: str = ""

    def as_dict(self) -> dict[str, str]:
        """The entry as the API server reads it.

        The message is made by one ``format``: the API server counts a sum of texts that holds a
        number's text as endlessly long.
        """
        entry = {"rule": self.expression, "message": _EXPRESSION.sub("…", self.message)}
        values = _EXPRESSION.findall(self.message)
        if values:
            form = _EXPRESSION.sub("%s", self.message.replace("%", "%%"))
            entry["messageExpression"] = f"{text(form)}.format([{', '.join(values)}])"
        if self.field:
            entry["fieldPath"] = self.field
        return entry


def text(value: str) -> str:
    """A CEL string."""
    return json.dumps(value, ensure_ascii=False)
