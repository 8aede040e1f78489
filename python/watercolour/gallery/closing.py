"""The report that a trainer leaves in its run's folder: made by a process that can harm no run.

python -m watercolour.gallery.closing --out runs/NAME
"""

from __future__ import annotations

import argparse
import resource
import sys
from collections.abc import Sequence
from pathlib import Path

from watercolour import logs
from watercolour.api.errors import WatercolourError

log = logs.get(__name__)

#: Bytes of memory: enough for some 10,000 rollouts (0.08 MiB each were measured). It shares its
#: limit with the trainer, whose end must not fail for a page.
MOST_BYTES = 1 << 30
REMEDY = "Make it of a copy of the folder: watercolour report FOLDER."


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; 0 with a report, 3 without."""
    parser = argparse.ArgumentParser(description="Write report.html of a run that has ended.")
    parser.add_argument("--out", type=Path, required=True, help="the run's folder")
    args = parser.parse_args(arguments)
    logs.setup("report")
    try:
        _step_back()
        from watercolour.gallery import record, report

        log.info("%s", report.write(record.read(args.out)))
    except WatercolourError as error:
        log.info("no report: %s", error)
    except MemoryError:
        log.warning("no report: it takes more than %d MiB. %s", MOST_BYTES >> 20, REMEDY)
    except OSError as error:
        log.warning("no report: %s. %s", error, REMEDY)
    else:
        return 0
    return 3


def _step_back() -> None:
    """Take no memory from the trainer: bounded, and the first to go where it is short."""
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    least = MOST_BYTES if hard == resource.RLIM_INFINITY else min(MOST_BYTES, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (least, hard))
    Path("/proc/self/oom_score_adj").write_text("1000")


if __name__ == "__main__":
    sys.exit(main())
