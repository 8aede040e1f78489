"""Generation by a vLLM server with GPUs of its own, through its own HTTP interface.

Before each rollout the adapter alone is written to storage that both mount, and loaded there under
a name that no other trainer and no earlier attempt has used; the one before is then unloaded, and
so is what an earlier attempt of the run has left. No weights of the base travel, so nothing can
drift, and the trainer needs no vLLM in its environment, with whose transformers that could not
share it.
The server draws by its own random numbers; seeds are passed on.
"""

from __future__ import annotations

import shutil
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import httpx

from watercolour import logs
from watercolour.api.errors import InfrastructureError
from watercolour.api.reasons import Reason
from watercolour.api.trainer import Decoding, Vllm
from watercolour.train import policy
from watercolour.train.sampling import OnRow, Row, Stop

log = logs.get(__name__)
Value = TypeVar("Value")

#: Folder of the adapters, within the run's.
FOLDER = "generation-adapters"
#: Seconds for a whole group's longest row, for an adapter, and between looks at the stop flag.
ROW_SECONDS, ADAPTER_SECONDS, LOOK_SECONDS = 1800.0, 60.0, 0.2
#: Tries of a request that does not reach the server, and seconds between them, doubled each time.
TRIES, AGAIN_SECONDS = 5, 1.0


@dataclass
class Server:
    """One trainer's way to the server; an engine by its ``generate``."""

    spec: Vllm
    run_folder: Path
    model: Any
    sampling: Decoding
    ends: frozenset[int]
    rank: int = 0
    _calls: int = 0
    _loaded: str | None = None
    _own: str = field(default_factory=lambda: uuid.uuid4().hex[:8])
    _http: httpx.Client = field(
        default_factory=lambda: httpx.Client(timeout=ROW_SECONDS, trust_env=False)
    )

    def generate(
        self, prompts: Sequence[Sequence[int]], seeds: Sequence[int], on_row: OnRow, stop: Stop
    ) -> list[Row]:
        """Complete every prompt with the adapter as it is now.

        Raises:
            InfrastructureError: the server is away or refuses (EngineUnavailable).
        """
        name = self._load(stop)
        done: dict[int, Row] = {}
        waiting = {
            _begun(self._complete, name, prompt, seed): number
            for number, (prompt, seed) in enumerate(zip(prompts, seeds, strict=True))
        }
        while waiting:
            ended = wait(waiting, timeout=LOOK_SECONDS, return_when=FIRST_COMPLETED).done
            stop()
            for future in ended:
                number = waiting.pop(future)
                done[number] = future.result()
                on_row(number, done[number])
        return [done[number] for number in range(len(prompts))]

    def _load(self, stop: Stop) -> str:
        """Write the adapter, have it loaded and what was before unloaded; its name."""
        self._calls += 1
        name = f"rank{self.rank}-{self._own}-{self._calls}"
        folders = self.run_folder / FOLDER
        if self._loaded is None:
            before = [folder.name for folder in folders.glob(f"rank{self.rank}-*")]
        else:
            before = [self._loaded]
        folder = folders / name
        self.model.save_pretrained(
            folder,
            selected_adapters=[policy.TRAINED],
            state_dict=policy.adapter_of(self.model),
        )
        there = Path(self.spec.run_folder or self.run_folder) / FOLDER / name
        _heard(_begun(self._adapter, "load", {"lora_name": name, "lora_path": str(there)}), stop)
        self._loaded = name
        for old in before:
            try:
                _heard(_begun(self._adapter, "unload", {"lora_name": old}), stop)
            except InfrastructureError as error:
                # A server that was started anew has never heard of it.
                log.info("adapter %s is not unloaded: %s", old, error.message)
            shutil.rmtree(folders / old, ignore_errors=True)
        return name

    def _adapter(self, what: str, body: dict[str, Any]) -> None:
        try:
            self._post(f"/v1/{what}_lora_adapter", body, ADAPTER_SECONDS)
        except InfrastructureError as error:
            # The name is nobody else's: the reply to the first try was lost.
            if what != "load" or "already been loaded" not in error.message:
                raise

    def _complete(self, name: str, prompt: Sequence[int], seed: int) -> Row:
        drawn = self.sampling
        reply = self._post(
            "/v1/completions",
            {
                "model": name,
                "prompt": list(prompt),
                "max_tokens": drawn.max_completion_tokens,
                "temperature": drawn.temperature,
                "top_p": drawn.top_p,
                "top_k": drawn.top_k or -1,
                "seed": seed,
                "logit_bias": {str(token): value for token, value in drawn.bias},
                "logprobs": 0,
                "stop_token_ids": sorted(self.ends),
                "return_token_ids": True,
                "skip_special_tokens": False,
            },
        )
        try:
            choice = reply.json()["choices"][0]
            logs: list[float] = choice["logprobs"]["token_logprobs"]
            return Row(tuple(choice["token_ids"]), tuple(logs), choice["finish_reason"] == "length")
        except (ValueError, LookupError, TypeError) as error:
            raise self._unavailable("/v1/completions", f"no completion ({error!r})") from error

    def _post(
        self, path: str, body: dict[str, Any], seconds: float = ROW_SECONDS
    ) -> httpx.Response:
        url = f"{self.spec.endpoint.rstrip('/')}{path}"
        for attempt in range(1, TRIES + 1):
            try:
                reply = self._http.post(url, json=body, timeout=seconds)
            except httpx.TransportError as error:
                # A server that has had its time would only be asked for the same again.
                if attempt == TRIES or isinstance(error, httpx.ReadTimeout):
                    raise self._unavailable(path, type(error).__name__) from error
                time.sleep(AGAIN_SECONDS * 2 ** (attempt - 1))
                continue
            if reply.is_success:
                return reply
            raise self._unavailable(path, f"{reply.status_code} {reply.text[:300]}")
        raise AssertionError("unreachable")

    def _unavailable(self, path: str, fault: str) -> InfrastructureError:
        return InfrastructureError(
            Reason.ENGINE_UNAVAILABLE,
            f"spec.trainer.vllm.endpoint={self.spec.endpoint}: {path}: {fault}.",
            remedy="Start vLLM with --enable-lora, --max-lora-rank and "
            "VLLM_ALLOW_RUNTIME_LORA_UPDATING=1, on storage that holds the run's folder.",
        )


def _begun(call: Callable[..., Value], *arguments: Any) -> Future[Value]:
    """Call on a thread of its own, for which nobody waits when the process ends."""
    future: Future[Value] = Future()

    def work() -> None:
        try:
            future.set_result(call(*arguments))
        except Exception as error:
            future.set_exception(error)

    threading.Thread(target=work, name="vllm", daemon=True).start()
    return future


def _heard(future: Future[Value], stop: Stop) -> Value:
    """What a call comes to; the stop flag is looked at meanwhile."""
    while wait([future], timeout=LOOK_SECONDS).not_done:
        stop()
    return future.result()
