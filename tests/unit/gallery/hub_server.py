"""The hub as huggingface_hub calls it to make a repository and to commit files to it."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Repository:
    """What the hub holds of one."""

    private: bool
    commits: list[tuple[str, dict[str, bytes]]] = field(
        default_factory=list[tuple[str, dict[str, bytes]]]
    )


@dataclass
class Hub:
    """Its state, and how it is to behave."""

    token: str = "hf_writes"
    #: Statuses that the next requests get instead of an answer.
    faults: list[int] = field(default_factory=list[int])
    repositories: dict[str, Repository] = field(default_factory=dict[str, Repository])
    objects: dict[str, bytes] = field(default_factory=dict[str, bytes])
    requests: list[str] = field(default_factory=list[str])
    address: str = ""

    def answer(self, method: str, path: str, token: str, body: bytes) -> tuple[int, Any]:
        """Status and JSON of a request."""
        self.requests.append(f"{method} {path}")
        if self.faults:
            return self.faults.pop(0), {"error": "not now"}
        if path.startswith("/lfs/"):
            self.objects[path.removeprefix("/lfs/")] = body
            return 200, {}
        if token != f"Bearer {self.token}":
            return 401, {"error": "Invalid credentials"}
        if path == "/api/repos/create":
            return self._create(json.loads(body))
        if path == "/api/validate-yaml":
            return 200, {"errors": [], "warnings": []}
        owner, _, rest = path.removeprefix("/api/models/").lstrip("/").partition("/")
        name, _, call = rest.partition("/")
        repo = self.repositories.get(f"{owner}/{name.removesuffix('.git')}")
        if repo is None:
            return 404, {"error": "Repository not found"}
        if call == "preupload/main":
            return 200, {"files": [_mode(file) for file in json.loads(body)["files"]]}
        if call == "info/lfs/objects/batch":
            return 200, {"objects": [self._upload(one) for one in json.loads(body)["objects"]]}
        if call == "commit/main":
            return self._commit(f"{owner}/{name}", repo, body)
        return 404, {"error": f"no such call: {path}"}

    def _create(self, wanted: dict[str, Any]) -> tuple[int, Any]:
        name = f"{wanted['organization']}/{wanted['name']}"
        if name in self.repositories:
            return 409, {"error": "You already created this model repo"}
        self.repositories[name] = Repository(wanted.get("visibility") == "private")
        return 200, {"url": f"{self.address}/{name}", "name": name}

    def _upload(self, one: dict[str, Any]) -> dict[str, Any]:
        href = f"{self.address}/lfs/{one['oid']}"
        return {**one, "actions": {"upload": {"href": href, "header": {}}}}

    def _commit(self, name: str, repo: Repository, body: bytes) -> tuple[int, Any]:
        files: dict[str, bytes] = {}
        message = ""
        for line in body.splitlines():
            entry = json.loads(line)
            value = entry["value"]
            if entry["key"] == "header":
                message = value["summary"]
            elif entry["key"] == "lfsFile":
                files[value["path"]] = self.objects[value["oid"]]
                assert hashlib.sha256(files[value["path"]]).hexdigest() == value["oid"]
            else:
                files[value["path"]] = base64.b64decode(value["content"])
        repo.commits.append((message, files))
        number = f"{len(repo.commits):040x}"
        return 200, {"commitUrl": f"{self.address}/{name}/commit/{number}", "commitOid": number}


def _mode(file: dict[str, Any]) -> dict[str, Any]:
    large = file["path"].endswith((".safetensors", ".png"))
    mode = "lfs" if large else "regular"
    return {"path": file["path"], "uploadMode": mode, "shouldIgnore": False}


@contextmanager
def served() -> Generator[Hub]:
    """A hub at an address of its own."""
    hub = Hub()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self._answer("POST")

        def do_PUT(self) -> None:
            self._answer("PUT")

        def _answer(self, method: str) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            token = self.headers.get("Authorization") or ""
            status, found = hub.answer(method, self.path, token, body)
            data = json.dumps(found).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hub.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
