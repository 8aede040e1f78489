"""The sketch that every new page paints before it is given work, and what has to come of it.

It needs every part of the harness once: fill with bleed and texture, wash, stroke. It compiles the
shaders, and it tells a page that paints from one that only answers.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from watercolour.api.errors import InfrastructureError
from watercolour.api.reasons import Reason
from watercolour.render import paint
from watercolour.render.page import Drawn
from watercolour.render.result import Job

HARNESS = Path(__file__).parent / "harness"
SKETCH = HARNESS / "warmup.js"

#: What it has to look like; ``watercolour render`` paints it anew, with ``--no-gate``.
PAINTING = HARNESS / "warmup.png"

#: Least likeness to it, in dB: rasterisers differ by 46, a missing shape by less than 20.
LIKENESS = 30.0

#: Limits are generous: the first page of a browser compiles its shaders, and a machine that is too
#: busy for that only gets busier by a browser that is started again.
JOB = Job(SKETCH.read_text(encoding="utf-8"), seed=1, deadline_s=600, cpu_budget_s=60)


def check(drawn: Drawn) -> str:
    """A digest of the pixels, once they are what they have to be.

    Raises:
        InfrastructureError: they are not (RendererUnavailable).
    """
    found = paint.from_framebuffer(drawn.data, drawn.width, drawn.height)
    wanted = paint.decode(PAINTING.read_bytes())
    if drawn.js_errors or found.shape != wanted.shape or paint.likeness(found, wanted) < LIKENESS:
        raise InfrastructureError(
            Reason.RENDERER_UNAVAILABLE,
            f"a new page paints the warm-up sketch wrongly {' '.join(drawn.js_errors)}".rstrip()
            + ".",
            remedy="Compare the versions in /readyz with those of a renderer that works.",
        )
    return hashlib.sha256(drawn.data).hexdigest()
