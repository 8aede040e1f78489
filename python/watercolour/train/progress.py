"""How far the training is: GET /progress, /metrics and /livez from a thread of their own.

The standard library's server is enough for that and imports in no time: the trainer answers
before its heavy libraries are loaded.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median
from typing import Any

from watercolour import service
from watercolour.reward import alarms
from watercolour.reward.alarms import Alarm

#: Steps whose median duration gives the time left.
RECENT = 20
#: Numbers of /progress about the newest step: the column of metrics.csv of each, and its help.
OF_STEP = {
    "rewardMean": ("reward", "Mean reward of the newest step."),
    "rewardMedian": ("reward_median", "Median reward of the newest step."),
    "rewardAdjusted": (
        "reward_adjusted",
        "Mean reward of the newest step with the draw's difficulty taken out.",
    ),
    "gatePassRate": ("gate_pass", "Share of the newest step that the gate admitted."),
    "gateStaticRate": (
        "gate_static",
        "Share of the newest step that the gate let be painted.",
    ),
    "gatePaintedRate": (
        "gate_painted",
        "Share of the newest step's paintings that the gate admitted.",
    ),
    "pigmentShare": (
        "pigment_share",
        "Share of the newest step's pigment in its subjects' colours.",
    ),
    "lastStepSeconds": ("step_time", "Duration of the newest step."),
    "kl": (
        "kl",
        "KL divergence from the policy before the first step, a token, of the newest step.",
    ),
    "tokensPerSecond": ("tokens_per_second", "Generated tokens a second of the newest step."),
    "mismatchMean": (
        "mismatch_mean",
        "Mean distance of log-probabilities between sampler and training.",
    ),
    "mismatchMax": (
        "mismatch_max",
        "Greatest distance of log-probabilities between sampler and training.",
    ),
    "secondsGenerate": ("seconds_generate", "Seconds of the newest step that rows grew."),
    "secondsWait": (
        "seconds_wait",
        "Seconds of the newest step that only paintings were awaited.",
    ),
    "secondsUpdate": ("seconds_update", "Seconds of the newest step that the policy learnt."),
    "secondsRender": ("seconds_render", "Mean seconds of a rollout in a page, newest step."),
    "secondsScore": (
        "seconds_score",
        "Mean seconds of a rollout at the scorer, newest step.",
    ),
    "secondsJudge": ("seconds_judge", "Mean seconds of a rollout at the judge, newest step."),
    "gpuMemoryBytes": (
        "gpu_memory_bytes",
        "Most bytes that a process held in its GPU in the newest step.",
    ),
}
#: Numbers of /progress that are gauges of /metrics, with their help.
GAUGES = {
    "step": "Optimizer steps done.",
    "steps": "Optimizer steps wanted.",
    "lastCheckpointStep": "Step of the newest whole checkpoint.",
    "etaSeconds": "Seconds left, by the median of recent steps.",
    "rewardBest": "Best reward of the run.",
    "unscoredRate": "Share of rollouts without a value, so far.",
    **{name: text for name, (_, text) in OF_STEP.items()},
}


@dataclass
class Progress:
    """The newest figures; written by the trainer, read by the server's threads."""

    run: str
    steps: int
    phase: str = "starting"
    step: int = 0
    figures: dict[str, Any] = field(default_factory=dict[str, Any])
    rollouts: int = 0
    unscored: int = 0
    best: float | None = None
    #: Step of the newest whole checkpoint, and its folder.
    checkpoint: tuple[int, Path] | None = None
    alarms: tuple[Alarm, ...] = ()
    _durations: deque[float] = field(default_factory=lambda: deque[float](maxlen=RECENT))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def enter(self, phase: str, **figures: Any) -> None:
        """Name the phase that begins, with figures to show."""
        with self._lock:
            self.phase = phase
            self.figures |= figures

    def saved(self, step: int, folder: Path) -> None:
        """There is a whole checkpoint of so many steps."""
        with self._lock:
            self.checkpoint = (step, folder)

    def resumed(self, step: int) -> None:
        """So many steps were done by earlier attempts."""
        with self._lock:
            self.step = step

    def step_done(self, row: Mapping[str, Any], rollouts: int) -> None:
        """Take in a row of metrics.csv."""
        with self._lock:
            self.step = int(row["step"]) + 1
            if row["step_time"] is not None:
                self._durations.append(row["step_time"])
            self.rollouts += rollouts
            self.unscored += round((row["unscored"] or 0) * rollouts)
            known = [value for value in (self.best, row["reward_best"]) if value is not None]
            self.best = max(known, default=None)
            self.figures |= {name: row[column] for name, (column, _) in OF_STEP.items()}

    def alarmed(self, alarms: tuple[Alarm, ...]) -> None:
        """These alarms stand now, and no others."""
        with self._lock:
            self.alarms = alarms

    def reply(self) -> dict[str, Any]:
        """The body of /progress: the shape of ``status.progress`` and more."""
        with self._lock:
            left = median(self._durations) * (self.steps - self.step) if self._durations else None
            figures = self.figures
            saved, folder = self.checkpoint or (None, None)
            return {
                "run": self.run,
                "phase": self.phase,
                "step": self.step,
                "steps": self.steps,
                "lastCheckpointStep": saved,
                "checkpoint": None if folder is None else str(folder),
                "etaSeconds": left,
                "unscoredRate": self.unscored / self.rollouts if self.rollouts else None,
                "rewardBest": self.best,
                "alarms": [asdict(alarm) for alarm in self.alarms],
                **figures,
                "reward": {
                    "mean": figures.get("rewardMean"),
                    "median": figures.get("rewardMedian"),
                    "adjusted": figures.get("rewardAdjusted"),
                    "best": self.best,
                },
            }


def exposition(reply: Mapping[str, Any]) -> str:
    """The body of /metrics, in Prometheus' text format; an unknown value has no line."""
    lines: list[str] = []
    for name, text in GAUGES.items():
        value = reply.get(name)
        metric = "watercolour_trainer_" + "".join(
            f"_{letter.lower()}" if letter.isupper() else letter for letter in name
        )
        lines += [f"# HELP {metric} {text}", f"# TYPE {metric} gauge"]
        if value is not None:
            lines.append(f'{metric}{{run="{reply["run"]}"}} {float(value)!r}')
    standing = {alarm["name"] for alarm in reply["alarms"]}
    metric = "watercolour_trainer_alarm"
    lines += [f"# HELP {metric} 1 while the alarm stands.", f"# TYPE {metric} gauge"]
    lines += [
        f'{metric}{{run="{reply["run"]}",alarm="{name}"}} {int(name in standing)}'
        for name in alarms.NAMES
    ]
    return "\n".join(lines) + "\n"


@contextmanager
def served(progress: Progress, host: str, port: int, announce: Path | None) -> Generator[str]:
    """Serve inside the block; the address.

    Raises:
        InputError: the port is taken (PortInUse).
    """
    bound = service.listen(host, port)
    server = ThreadingHTTPServer((host, port), _handler(progress), bind_and_activate=False)
    server.socket.close()
    server.socket = bound
    server.server_activate()
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, name="progress", daemon=True)
    thread.start()
    address = f"[{host}]" if ":" in host else host
    url = f"http://{address}:{bound.getsockname()[1]}"
    if announce is not None:
        service.announce(announce, url)
    try:
        yield url
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(progress: Progress) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/progress":
                self._send(json.dumps(progress.reply()), "application/json")
            elif self.path == "/metrics":
                self._send(exposition(progress.reply()), "text/plain; version=0.0.4")
            elif self.path in ("/livez", "/readyz"):
                self._send('{"status": "ok"}', "application/json")
            else:
                self.send_error(404)

        def _send(self, text: str, kind: str) -> None:
            body = text.encode()
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """One line a request tells nothing that the figures do not."""

    return Handler
