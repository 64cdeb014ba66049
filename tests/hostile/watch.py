"""Clients beside hostile requests: a probe of `/healthz`, and victims, whose streams and jobs must be complete.

They run in a separate process, so that the hostile client doesn't delay them.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import multiprocessing
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

from . import MODEL

PROBE_SECONDS = 0.02
PROBE_TIMEOUT = 60.0
TERMINAL = ("response.completed", "response.incomplete", "response.failed", "error")


@dataclass(slots=True)
class Observations:
    """What the clients observed in a period."""

    stall: float = 0.0
    """Seconds of the longest request to `/healthz`, including one that has not ended."""
    probes: int = 0
    failures: list[str] = field(default_factory=list)
    """The errors of victims."""
    completed: int = 0
    """Streams and jobs of victims that were complete."""


class Clients:
    """The probe and the victims, on threads. `collect` returns their observations."""

    def __init__(self, port: int, *, key: str, tokens: int, slow: float, count: int = 1) -> None:
        self.port, self.tokens, self.slow = port, tokens, slow
        self.headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
        self.is_finished = threading.Event()
        self._lock = threading.Lock()
        self._observations = Observations()
        self._probing_since = time.monotonic()
        self.threads = [
            threading.Thread(target=self._forever, args=(client,), daemon=True)
            for client in (self._probe, *(count * [self._stream, self._job]))
        ]

    def start(self) -> None:
        for thread in self.threads:
            thread.start()

    def finish(self) -> Observations:
        """Wait until the victims have ended."""
        self.is_finished.set()
        for thread in self.threads:
            thread.join(60 + 3 * self.tokens * self.slow)
            if thread.is_alive():
                self._fail("a victim did not end")
        return self.collect()

    def collect(self) -> Observations:
        with self._lock:
            observations, self._observations = self._observations, Observations()
            now = time.monotonic()
            if self._probing_since:
                observations.stall = max(observations.stall, now - self._probing_since)
                self._probing_since = now
            return observations

    def _forever(self, client: Any) -> None:
        while not self.is_finished.is_set():
            try:
                client()
            except Exception as error:  # any error is a victim's failure
                self._fail(f"{client.__name__[1:]}: {error!r}"[:300])
                time.sleep(0.2)

    def _fail(self, error: str) -> None:
        with self._lock:
            self._observations.failures.append(error)

    def _probe(self) -> None:
        with self._connected(PROBE_TIMEOUT) as connection:
            while not self.is_finished.is_set():
                began = time.monotonic()
                with self._lock:
                    self._probing_since = began
                connection.request("GET", "/healthz")
                answer = connection.getresponse()
                answer.read()
                with self._lock:
                    waited = time.monotonic() - self._probing_since
                    self._probing_since = 0.0
                    self._observations.stall = max(self._observations.stall, waited)
                    self._observations.probes += 1
                if answer.status != 200:
                    raise AssertionError(f"/healthz returned {answer.status}")
                time.sleep(max(0.0, began + PROBE_SECONDS - time.monotonic()))

    def _stream(self) -> None:
        body = {**self._payload(), "stream": True}
        with self._connected(60) as connection:
            events = list(self._events(connection, "POST", "/v1/responses", body))
        check_events(events, self.tokens)
        with self._lock:
            self._observations.completed += 1

    def _job(self) -> None:
        with self._connected(60) as connection:
            job = self._json(connection, "POST", "/v1/responses", {**self._payload(), "background": True})
            path = f"/v1/responses/{job['id']}"
            while (state := self._json(connection, "GET", path))["status"] in ("queued", "in_progress"):
                time.sleep(0.5)
            text = "".join(part["text"] for item in state["output"] for part in item["content"])
            if (state["status"], text) != ("completed", scripted_text(self.tokens)):
                raise AssertionError(f"the job is {state['status']}: {state['error']}, {text[-40:]!r}")
            check_events(list(self._events(connection, "GET", f"{path}?stream=true", None)), self.tokens)
        with self._lock:
            self._observations.completed += 1

    def _payload(self) -> dict[str, Any]:
        return {"model": MODEL, "input": f"[[tokens: {self.tokens}]][[slow: {self.slow}]]"}

    @contextlib.contextmanager
    def _connected(self, timeout: float) -> Iterator[http.client.HTTPConnection]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        with contextlib.closing(connection):
            yield connection

    def _json(self, connection: http.client.HTTPConnection, method: str, path: str, body: Any = None) -> Any:
        connection.request(method, path, json.dumps(body) if body else None, self.headers)
        answer = connection.getresponse()
        text = answer.read()
        if answer.status != 200:
            raise AssertionError(f"{method} {path} returned {answer.status}: {text[:200]!r}")
        return json.loads(text)

    def _events(
        self, connection: http.client.HTTPConnection, method: str, path: str, body: Any
    ) -> Iterator[Mapping[str, Any]]:
        connection.request(method, path, json.dumps(body) if body else None, self.headers)
        answer = connection.getresponse()
        if answer.status != 200:
            raise AssertionError(f"{method} {path} returned {answer.status}: {answer.read()[:200]!r}")
        for line in answer:
            if line.startswith(b"data: {"):
                yield json.loads(line[6:])


def scripted_text(tokens: int) -> str:
    """The text of `[[tokens: N]]`."""
    return " ".join(str(number) for number in range(1, tokens + 1))


def check_events(events: list[Mapping[str, Any]], tokens: int) -> None:
    """Check that events are numbered without gaps, have the whole text, and end with `response.completed`."""
    # `in_progress` is repeated when nothing else is sent, with the number of the event before it.
    numbers = [event["sequence_number"] for event in events]
    if sorted(set(numbers)) != list(range(numbers[-1] + 1 if numbers else 0)) or numbers != sorted(numbers):
        raise AssertionError(f"the events' numbers have gaps: {numbers[:5]} … {numbers[-5:]}")
    if not events or events[-1]["type"] != "response.completed":
        raise AssertionError(f"the stream ends with {events[-1] if events else 'nothing'}"[:300])
    text = "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta")
    if text != scripted_text(tokens):
        raise AssertionError(f"the stream has the text {text[:40]!r} … {text[-40:]!r}")


def _serve(pipe: Connection, port: int, key: str, tokens: int, slow: float, count: int) -> None:
    clients = Clients(port, key=key, tokens=tokens, slow=slow, count=count)
    clients.start()
    while pipe.recv() == "collect":
        pipe.send(clients.collect())
    pipe.send(clients.finish())


class Observer:
    """The process of the clients: ``count`` victims of each kind, with ``tokens`` tokens of ``slow`` seconds each."""

    def __init__(self, port: int, *, key: str, tokens: int, slow: float, count: int = 1) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, other_end = context.Pipe()
        self._process = context.Process(target=_serve, args=(other_end, port, key, tokens, slow, count), daemon=True)
        self._process.start()
        self.completed = 0
        """Streams and jobs of victims that were complete."""

    def collect(self) -> Observations:
        """The observations since the last call."""
        return self._request("collect")

    def kill(self) -> None:
        """Kill the process."""
        self._process.kill()
        self._process.join()
        self._process.close()
        self._pipe.close()

    def finish(self) -> Observations:
        """Wait until the victims have ended."""
        return self._request("finish")

    def _request(self, command: str) -> Observations:
        self._pipe.send(command)
        observations: Observations = self._pipe.recv()
        self.completed += observations.completed
        return observations
