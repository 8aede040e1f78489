"""Tell trackio the figures of a run: a process of its own beside the trainer, which it cannot harm.

    python -m watercolour.train.track --spec run.yaml --out runs/NAME

It follows metrics.csv and sends the rows that the tracker does not have yet, so that file is the
buffer: while a server is away nothing is lost, and what an attempt could not send the next one
does, or this command by hand. It ends when its standard input does, after one more look.

Without a server the figures go into ``trackio/`` of the run's folder, where ``trackio show`` finds
them by ``TRACKIO_DIR``.
"""

from __future__ import annotations

import argparse
import csv
import io
import os
import sys
import tempfile
import warnings
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

import httpx

from watercolour import logs
from watercolour.api import dump, load
from watercolour.api.lifecycle import Trackio
from watercolour.api.spec import WatercolourRun
from watercolour.following import looks

log = logs.get(__name__)

FOLDER = "trackio"
#: Says, in the run's folder, that the tracker has a curve of this run already.
BEGUN = ".tracked"
#: Seconds between two looks at metrics.csv, and that a server may take to answer.
LOOK_SECONDS, ANSWER_SECONDS = 1.0, 5.0
#: What would send the figures elsewhere than the specification says.
ELSEWHERE = ("TRACKIO_SPACE_ID", "TRACKIO_SERVER_URL", "TRACKIO_BUCKET_ID", "TRACKIO_DATASET_ID")
TOKEN = "TRACKIO_WRITE_TOKEN"

Row = dict[str, float]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; always 0, because nobody's run hangs on it."""
    args = _parser().parse_args(arguments)
    logs.setup("tracker")
    wanted = load.run(args.spec)
    with logs.bind(run=wanted.metadata.name), redirect_stdout(io.StringIO()):
        # trackio chats on standard output.
        try:
            _track(wanted, args.out, anew=args.anew)
        except ImportError as error:
            log.warning("no figures go to trackio: %s. Install watercolour[tracking].", error)
        except Exception as error:
            # The boundary that keeps a tracker's fault from looking like the run's.
            log.warning("no more figures go to trackio: %s: %s", type(error).__name__, error)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Send a run's figures to trackio.")
    parser.add_argument("--spec", type=Path, required=True, help="the run's specification")
    parser.add_argument("--out", type=Path, required=True, help="the run's folder")
    parser.add_argument(
        "--anew", action="store_true", help="begin another curve, whatever the tracker has"
    )
    return parser


def _track(wanted: WatercolourRun, out: Path, *, anew: bool) -> None:
    spec = wanted.spec.tracking.trackio or Trackio()
    for name in ELSEWHERE:
        os.environ.pop(name, None)
    # The hub has no part in this, not even for a name.
    os.environ["HF_HUB_OFFLINE"] = "1"
    endpoint = spec.endpoint
    if endpoint and not os.environ.get(TOKEN):
        log.warning(
            "spec.tracking.trackio.endpoint=%s: no write token; the figures go to %s instead. "
            "Set %s, in a cluster by spec.tracking.trackio.secretRef.",
            endpoint,
            out / FOLDER,
            TOKEN,
        )
        endpoint = None
    with _storage(out, endpoint) as folder:
        os.environ["TRACKIO_DIR"] = str(folder)
        if anew:
            (out / BEGUN).unlink(missing_ok=True)
        follow(out, _Curve(wanted, spec.project, endpoint, out / BEGUN), looks(LOOK_SECONDS))


@contextmanager
def _storage(out: Path, endpoint: str | None) -> Generator[Path]:
    """Where trackio keeps its files; beside a server they are needed by nobody."""
    if endpoint is None:
        yield out / FOLDER
        return
    with tempfile.TemporaryDirectory(prefix="watercolour-") as folder:
        yield Path(folder)


class _Curve:
    """The run as the tracker has it; begun when there is something to tell and someone to hear."""

    def __init__(
        self, wanted: WatercolourRun, project: str, endpoint: str | None, begun: Path
    ) -> None:
        self.wanted, self.project, self.endpoint, self.begun = wanted, project, endpoint, begun
        self.run: Any = None
        #: The newest step that the tracker has.
        self.last = -1
        self._warned = False

    def tell(self, rows: Sequence[Row]) -> None:
        """Send the rows that the tracker does not have, unless its server is away just now."""
        if not any(row["step"] > self.last for row in rows) or not self._answers():
            return
        run = self.run = self.run or self._begin()
        for row in rows:
            if row["step"] > self.last:
                self.last = int(row["step"])
                figures = {name: value for name, value in row.items() if name != "step"}
                run.log(figures, step=self.last)

    def close(self) -> None:
        """Wait until what was told has arrived, for half a minute at most."""
        if self.run is not None:
            import trackio

            trackio.finish()

    def _begin(self) -> Any:
        """Begin the curve, or go on with it."""
        warnings.showwarning = self._warn
        # Another run of that name, in another folder, is another curve.
        resumed = self.begun.exists()
        import trackio

        run: Any = trackio.init(
            self.project,
            name=self.wanted.metadata.name,
            server_url=self.endpoint,
            config=dump.to_dict(self.wanted),
            resume="allow" if resumed else "never",
            embed=False,
            auto_log_gpu=False,
            auto_log_cpu=False,
        )
        self.last = self._newest_step(trackio, run) if resumed else -1
        self.begun.touch()
        return run

    def _newest_step(self, trackio: Any, run: Any) -> int:
        """What earlier attempts have told; -1 if nothing."""
        if self.endpoint is None:
            found = trackio.SQLiteStorage.get_max_step_for_run(
                self.project, self.wanted.metadata.name, run_id=run.id
            )
        else:
            server = trackio.RemoteClient(self.endpoint, write_token=os.environ[TOKEN])
            found = server.predict(
                project=self.project, run_id=run.id, api_name="/get_run_summary"
            ).get("last_step")
        return -1 if found is None else int(found)

    def _answers(self) -> bool:
        if self.endpoint is None:
            return True
        try:
            address = f"{self.endpoint.rstrip('/')}/version"
            httpx.get(address, timeout=ANSWER_SECONDS).raise_for_status()
        except httpx.HTTPError as error:
            self._warn(f"{self.endpoint} does not answer ({type(error).__name__})")
            return False
        return True

    def _warn(self, message: object, *_: object) -> None:
        """Say once that something is wrong; trackio says everything by warnings."""
        if not self._warned:
            self._warned = True
            log.warning("trackio: %s. metrics.csv keeps the figures until they are sent.", message)


def follow(out: Path, curve: _Curve, looks: Iterable[bool]) -> None:
    """Tell the rows as they come; at the last look wait until they have arrived."""
    path, seen = out / "metrics.csv", 0.0
    for more in looks:
        # A server that was away is asked again only when there is something new, or at the end.
        stamp = path.stat().st_mtime if path.exists() else 0.0
        if stamp != seen or not more:
            seen = stamp
            curve.tell(rows(path))
    curve.close()


def rows(path: Path) -> list[Row]:
    """The rows of a metrics.csv; an empty cell is a value that does not exist, and stays away."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [
            {name: float(cell) for name, cell in line.items() if cell != ""}
            for line in csv.DictReader(file)
        ]


if __name__ == "__main__":
    sys.exit(main())
