"""Under which licences a picture may be used, and what each asks for."""

from __future__ import annotations

import re
from dataclasses import dataclass

from watercolour.api.errors import InputError
from watercolour.api.reasons import Reason

#: One's own work, or another's by agreement: used here, and not to be published.
OWN = "own"


@dataclass(frozen=True)
class Licence:
    """What a licence allows.

    Attributes:
        name: as records spell it: an SPDX identifier, or ``own``.
        names_author: whoever shows the picture has to name its author.
        may_publish: a pool with it may be published: copies, and changed ones, may be shared.
    """

    name: str
    names_author: bool
    may_publish: bool


def _known() -> dict[str, Licence]:
    found = [
        Licence(OWN, names_author=False, may_publish=False),
        Licence("CC0-1.0", names_author=False, may_publish=True),
        Licence("Public-Domain", names_author=False, may_publish=True),
        Licence("Apache-2.0", names_author=False, may_publish=True),
        Licence("MIT", names_author=False, may_publish=True),
    ]
    for version in ("2.0", "2.5", "3.0", "4.0"):
        # A picture that was cut and scaled is an adaptation, and ND allows none to be shared.
        found += [
            Licence(f"CC-{kind}-{version}", names_author=True, may_publish="ND" not in kind)
            for kind in ("BY", "BY-SA", "BY-NC", "BY-NC-SA", "BY-ND", "BY-NC-ND")
        ]
    return {licence.name.lower(): licence for licence in found}


KNOWN = _known()

#: Other spellings that people and archives use.
_ALIASES = {
    "cc0": "cc0-1.0",
    "pd": "public-domain",
    "pdm": "public-domain",
    "public domain": "public-domain",
    "cc-by": "cc-by-4.0",
    "cc-by-sa": "cc-by-sa-4.0",
    "cc-by-nc": "cc-by-nc-4.0",
    "cc-by-nc-sa": "cc-by-nc-sa-4.0",
    "cc-by-nd": "cc-by-nd-4.0",
    "cc-by-nc-nd": "cc-by-nc-nd-4.0",
}


def find(text: str, *, field: str = "licence") -> Licence:
    """The licence that a text names.

    Raises:
        InputError: it is none that is known (InvalidInput).
    """
    plain = re.sub(r"\s+", " ", text.strip().lower())
    plain = re.sub(r"^cc[ _]", "cc-", plain).replace("_", "-")
    if plain.startswith("cc-"):
        plain = plain.replace(" ", "-")
    found = KNOWN.get(_ALIASES.get(plain, plain))
    if found is None:
        shown = ", ".join(licence.name for licence in KNOWN.values() if "-N" not in licence.name)
        raise InputError(
            Reason.INVALID_INPUT,
            f"{field}={text!r}: this licence is not known.",
            remedy=f"Give one of {shown} (or an NC or ND one of Creative Commons); "
            "with none, the picture cannot be used.",
            field=field,
            value=text,
        )
    return found


def check(name: str, attribution: str, *, where: str) -> Licence:
    """The licence, if what it asks for is there.

    Raises:
        InputError: it is not known, or its author is not named (InvalidInput).
    """
    licence = find(name, field=f"licence of {where}")
    if licence.names_author and not attribution.strip():
        raise InputError(
            Reason.INVALID_INPUT,
            f"{where}: {licence.name} wants its author named, and no attribution is given.",
            remedy="Give --attribution 'NAME, TITLE', or an attribution column in the metadata.",
            field="attribution",
            value="",
        )
    return licence
