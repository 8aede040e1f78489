"""What importing the API costs beside pydantic, which it is built on.

Ours is a fresh interpreter that imports ``watercolour.api.load`` and has the specification's models
ready to be built; theirs imports what any pydantic model needs. Both in CPU seconds less those of
an interpreter that imports nothing, taking turns.
"""

from __future__ import annotations

import json
import platform
import resource
import statistics
import subprocess
import sys

ROUNDS = 15
STATEMENTS = {
    "nothing": "pass",
    "errors": "from watercolour.api import InputError",
    "pydantic": "from pydantic import BaseModel, ConfigDict, Field, model_validator",
    "api": "import watercolour.api.load",
    "first run": "from watercolour.api import load; load.from_dict({'metadata': {'name': 'a'}})",
}


def cpu_seconds(statement: str) -> float:
    """CPU seconds, user and system, of an interpreter that runs a statement."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", statement], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print the table and the line of JSON."""
    for statement in STATEMENTS.values():
        cpu_seconds(statement)
    rounds: dict[str, list[float]] = {name: [] for name in STATEMENTS}
    for _ in range(ROUNDS):
        for name, statement in STATEMENTS.items():
            rounds[name].append(cpu_seconds(statement))
    base = statistics.median(rounds["nothing"])
    cost = {name: statistics.median(taken) - base for name, taken in rounds.items()}
    print(f"{'import':12} CPU ms (median of {ROUNDS})")
    for name in STATEMENTS:
        print(f"{name:12} {1000 * cost[name]:6.1f}")
    summary = {
        "bench": "import_api",
        "ours": round(cost["api"], 4),
        "theirs": round(cost["pydantic"], 4),
        "ratio": round(cost["pydantic"] / cost["api"], 3),
        "unit": "CPU seconds",
        "n": ROUNDS,
        "conditions": f"Python {platform.python_version()}, warm files, interpreter subtracted",
    }
    print(json.dumps(summary))


if __name__ == "__main__":
    main()
