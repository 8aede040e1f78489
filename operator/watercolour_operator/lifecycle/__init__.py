"""What becomes of a run: phases, attempts, deadlines, suspension, teardown. Pure throughout.

One observation in, one plan out; the moment is ``observed.now``. Nothing is remembered but what
stands in the status, and nothing hangs on having seen an event.
"""

from watercolour_operator.lifecycle.decide import decide

__all__ = ["decide"]
