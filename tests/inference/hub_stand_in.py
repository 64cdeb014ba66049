"""A local fake of the Hugging Face hub: one repository of files, served as huggingface-hub requests them."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import cast

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Hub:
    """`requests` lists method, path and range of each request. After `breaks_after` bytes of a file it answers 503."""

    def __init__(self, repo_id: str, files: Path) -> None:
        self.repo_id, self.files = repo_id, files
        self.requests: list[tuple[str, str, str]] = []
        self.breaks_after: int | None = None
        self.broken = False
        self.endpoint = ""

    @contextmanager
    def serving(self) -> Iterator["Hub"]:
        server = _Server(self)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        self.endpoint = f"http://127.0.0.1:{server.server_port}"
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()
            thread.join()

    def info(self) -> dict[str, object]:
        siblings = [{"rfilename": file.name, "size": file.stat().st_size} for file in self.files.iterdir()]
        return {"id": self.repo_id, "modelId": self.repo_id, "sha": COMMIT, "siblings": siblings, "tags": []}


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        hub = cast(_Server, self.server).hub
        path, wanted = self.path.partition("?")[0], self.headers.get("Range", "")
        hub.requests.append((self.command, path, wanted))
        if hub.broken:
            self._send(503, b"", {})
        elif path.startswith(f"/api/models/{hub.repo_id}"):
            self._send(200, json.dumps(hub.info()).encode(), {"Content-Type": "application/json"})
        elif path.startswith(f"/{hub.repo_id}/resolve/{COMMIT}/"):
            self._send_file(hub, (hub.files / path.rpartition("/")[2]).read_bytes(), wanted)
        else:
            self._send(404, b'{"error": "Repository not found"}', {"X-Error-Code": "RepoNotFound"})

    def _send_file(self, hub: Hub, content: bytes, wanted: str) -> None:
        first = int(wanted.removeprefix("bytes=").partition("-")[0]) if wanted else 0
        headers = {"Content-Range": f"bytes {first}-{len(content) - 1}/{len(content)}"} if first else {}
        body = content[first:]
        hub.broken = hub.breaks_after is not None and len(body) > hub.breaks_after
        self._send(206 if first else 200, body, headers, only=hub.breaks_after if hub.broken else None)

    def _send(self, status: int, body: bytes, headers: dict[str, str], *, only: int | None = None) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[:only])

    def log_message(self, *arguments: object) -> None:
        pass
