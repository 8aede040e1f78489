"""A server that speaks vLLM's HTTP interface and really generates.

vLLM itself needs a GPU. Here a server answers the three calls that the engine makes: it loads the
adapter from the folder that it is told, by PEFT, and draws tokens with it.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from peft import PeftModel
from transformers import AutoModelForCausalLM

from watercolour.api.trainer import Decoding
from watercolour.train import engines


@dataclass
class Vllm:
    """What a server with ``--enable-lora`` does, one request at a time."""

    base: Path
    end: int
    loaded: dict[str, Any] = field(default_factory=dict[str, Any])
    calls: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])
    lock: threading.Lock = field(default_factory=threading.Lock)
    url: str = ""

    def answer(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        with self.lock:
            self.calls.append((path, body))
            name = body.get("lora_name")
            if path == "/v1/load_lora_adapter" and name in self.loaded:
                return 400, f"The lora adapter '{name}' has already been loaded."
            if path == "/v1/unload_lora_adapter" and name not in self.loaded:
                return 404, f"The lora adapter '{name}' cannot be found."
            if path == "/v1/load_lora_adapter":
                model: Any = AutoModelForCausalLM.from_pretrained(self.base)
                adapted = PeftModel.from_pretrained(model, body["lora_path"])
                self.loaded[body["lora_name"]] = adapted.eval()
                return 200, "loaded"
            if path == "/v1/unload_lora_adapter":
                del self.loaded[body["lora_name"]]
                return 200, "unloaded"
            if body["model"] not in self.loaded:
                return 404, {"error": f"The model {body['model']} does not exist."}
            return 200, {"choices": [self._complete(body)]}

    def _complete(self, body: dict[str, Any]) -> dict[str, Any]:
        drawn = Decoding(
            body["max_tokens"],
            body["temperature"],
            body["top_p"],
            max(0, body["top_k"]),
            tuple((int(token), bias) for token, bias in body["logit_bias"].items()),
        )
        ends = frozenset(body["stop_token_ids"])
        _, engine = engines.build("static", self.loaded[body["model"]], drawn, ends, pad=self.end)
        row = engine([body["prompt"]], [body["seed"]], lambda *_: None, lambda: None)[0]
        return {
            "token_ids": row.tokens,
            "logprobs": {"token_logprobs": row.log_probabilities},
            "finish_reason": "length" if row.truncated else "stop",
        }


@contextmanager
def serving(state: Vllm) -> Generator[Vllm]:
    """Answer on a free port of this machine; its address is in the state."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            code, reply = state.answer(self.path, body)
            raw = json.dumps(reply).encode()
            self.send_response(code)
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
