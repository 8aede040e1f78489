"""The renderer's own OpenAPI document, held against the renderer by schemathesis.

Every answer has a documented status, media type and schema; what the document allows is taken, what
it forbids is refused; nothing is answered with 500.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import pytest_asyncio
from tests.browser.conftest import start, stop
from tests.browser.test_survival import until_answer

CONFIG = Path(__file__).with_name("schemathesis.toml")

#: Random requests for each operation, beside those at every bound of every field. Nearly all of
#: their sketches are at fault, and each of those costs a new page.
EXAMPLES = 5

#: Seconds that one answer may take on a busy machine.
ANSWER_SECONDS = 120


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def url(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[str]:
    """A renderer of its own: it is drained and called back meanwhile."""
    running = start(tmp_path_factory.mktemp("fuzzed"), "--slots", "2")
    try:
        async with httpx.AsyncClient(base_url=running.url, timeout=60) as http:
            await until_answer(http, "/readyz", lambda answer: answer.status_code == 200)
        yield running.url
    finally:
        stop(running)


# A drained renderer refuses every sketch, so what drains is tried last.
@pytest.mark.parametrize("which", ["--exclude-path", "--include-path"])
def test_the_renderer_keeps_its_published_contract(url: str, which: str) -> None:
    command = [
        *(str(Path(sys.executable).with_name("schemathesis")), "--config-file", str(CONFIG)),
        *("run", f"{url}/openapi.json", which, "/v1/drain", "--no-color"),
        *("--phases", "examples,coverage,fuzzing", "--max-examples", str(EXAMPLES)),
        *("--seed", "1", "--request-timeout", str(ANSWER_SECONDS)),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-6000:]
    assert "generated" in done.stdout


async def test_it_painted_meanwhile_and_nothing_was_a_fault_of_ours(url: str) -> None:
    async with httpx.AsyncClient(base_url=url, timeout=60) as http:
        lines = (await http.get("/metrics")).text.splitlines()
    outcomes = {
        line.split('"')[1]: float(line.rpartition(" ")[2])
        for line in lines
        if line.startswith("watercolour_render_requests_total{")
    }
    assert {"painted", "malformed"} <= outcomes.keys()
    assert "InternalError" not in outcomes
