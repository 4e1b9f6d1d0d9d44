"""A stand-in for the Hugging Face hub: its HTTP interface for uploads of a folder."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOKEN = "hf_of_the_tests"
OWNER = "somebody"


class Hub(ThreadingHTTPServer):
    """Repositories by name, and the requests. refusal: HTTP status with which uploads are refused, if any."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.repositories: dict[str, dict[str, bytes]] = {}
        self.private: dict[str, bool] = {}
        self.messages: list[str] = []
        self.objects: dict[str, bytes] = {}
        self.refusal: int | None = None
        self.url = f"http://127.0.0.1:{self.server_port}"


@contextmanager
def running_hub() -> Iterator[Hub]:
    """A hub that serves until the end of the block."""
    with Hub() as hub:
        thread = threading.Thread(target=hub.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield hub
        finally:
            hub.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    server: Hub

    def log_message(self, *_: Any) -> None:
        """Print no log."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self.answer({"error": "Invalid credentials"}, 401)
        if self.path == "/api/repos/create":
            return self.create(json.loads(body))
        if self.server.refusal:
            return self.answer({"error": "No"}, self.server.refusal)
        if self.path == "/api/validate-yaml":  # checks the model card
            return self.answer({"errors": [], "warnings": []})
        if "/preupload/" in self.path:
            return self.say_how(json.loads(body))
        if self.path.endswith("/info/lfs/objects/batch"):
            return self.say_where(json.loads(body))
        return self.commit([json.loads(line) for line in body.splitlines()])

    def do_PUT(self) -> None:
        oid = self.path.removeprefix("/objects/")
        self.server.objects[oid] = self.rfile.read(int(self.headers["Content-Length"]))
        self.answer({})

    def create(self, asked: dict[str, Any]) -> None:
        name = f"{asked['organization'] or OWNER}/{asked['name']}"
        known = name in self.server.repositories
        if not known:
            self.server.repositories[name] = {}
            self.server.private[name] = asked.get("visibility") == "private" or asked.get("private") is True
        self.answer({"url": f"{self.server.url}/{name}"}, 409 if known else 200)

    def say_how(self, asked: dict[str, Any]) -> None:
        """Answer that weights go to the store of large files, and all other files into the commit."""
        modes = {True: "lfs", False: "regular"}
        files = [
            {"path": file["path"], "uploadMode": modes[file["path"].endswith(".safetensors")], "shouldIgnore": False}
            for file in asked["files"]
        ]
        self.answer({"files": files})

    def say_where(self, asked: dict[str, Any]) -> None:
        objects = [
            {**one, "actions": {"upload": {"href": f"{self.server.url}/objects/{one['oid']}"}}}
            for one in asked["objects"]
        ]
        self.answer({"transfer": "basic", "objects": objects}, kind="application/vnd.git-lfs+json")

    def commit(self, lines: list[dict[str, Any]]) -> None:
        name = self.path.removeprefix("/api/models/").split("/commit/")[0]
        files = self.server.repositories[name]
        for line in lines:
            value = line["value"]
            if line["key"] == "header":
                self.server.messages.append(value["summary"])
            elif line["key"] == "lfsFile":
                files[value["path"]] = self.server.objects[value["oid"]]
            else:
                files[value["path"]] = base64.b64decode(value["content"])
        url = f"{self.server.url}/{name}/commit/{len(self.server.messages):040x}"
        self.answer({"commitUrl": url, "commitOid": url[-40:], "success": True})

    def answer(self, content: dict[str, Any], status: int = 200, kind: str = "application/json") -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
