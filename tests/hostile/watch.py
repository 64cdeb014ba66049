"""What others see while a hostile request is served: `/healthz`, a stream and a background job that must lose nothing.

They live in a process of their own, so that the hostile client's work is not taken for the server's.
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
class Seen:
    """What was seen since it was last asked."""

    stall: float = 0.0
    """Seconds of the longest wait for `/healthz`, one that has not ended included."""
    probes: int = 0
    losses: list[str] = field(default_factory=list)
    """In what a victim was hurt."""
    streams: int = 0
    jobs: int = 0
    """Victims that came to their end whole."""


class Watched:
    """The victims, run by threads; `take` gives what they saw."""

    def __init__(self, port: int, *, key: str, tokens: int, slow: float, count: int = 1) -> None:
        self.port, self.tokens, self.slow = port, tokens, slow
        self.headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
        self.is_over = threading.Event()
        self._lock = threading.Lock()
        self._seen = Seen()
        self._probing_since = time.monotonic()
        self.threads = [
            threading.Thread(target=self._forever, args=(work,), daemon=True)
            for work in (self._probe, *(count * [self._stream, self._job]))
        ]

    def start(self) -> None:
        for thread in self.threads:
            thread.start()

    def finish(self) -> Seen:
        """Let the victims come to their end."""
        self.is_over.set()
        for thread in self.threads:
            thread.join(60 + 3 * self.tokens * self.slow)
            if thread.is_alive():
                self._lose("a victim did not come to its end")
        return self.take()

    def take(self) -> Seen:
        with self._lock:
            seen, self._seen = self._seen, Seen()
            now = time.monotonic()
            if self._probing_since:
                seen.stall = max(seen.stall, now - self._probing_since)
                self._probing_since = now
            return seen

    def _forever(self, work: Any) -> None:
        while not self.is_over.is_set():
            try:
                work()
            except Exception as error:  # whatever it is, a victim was hurt
                self._lose(f"{work.__name__[1:]}: {error!r}"[:300])
                time.sleep(0.2)

    def _lose(self, what: str) -> None:
        with self._lock:
            self._seen.losses.append(what)

    def _probe(self) -> None:
        with self._connected(PROBE_TIMEOUT) as connection:
            while not self.is_over.is_set():
                began = time.monotonic()
                with self._lock:
                    self._probing_since = began
                connection.request("GET", "/healthz")
                answer = connection.getresponse()
                answer.read()
                with self._lock:
                    waited = time.monotonic() - self._probing_since
                    self._probing_since = 0.0
                    self._seen.stall = max(self._seen.stall, waited)
                    self._seen.probes += 1
                if answer.status != 200:
                    raise AssertionError(f"/healthz answered {answer.status}")
                time.sleep(max(0.0, began + PROBE_SECONDS - time.monotonic()))

    def _stream(self) -> None:
        body = {**self._asked(), "stream": True}
        with self._connected(60) as connection:
            events = list(self._events(connection, "POST", "/v1/responses", body))
        check_events(events, self.tokens)
        with self._lock:
            self._seen.streams += 1

    def _job(self) -> None:
        with self._connected(60) as connection:
            job = self._json(connection, "POST", "/v1/responses", {**self._asked(), "background": True})
            path = f"/v1/responses/{job['id']}"
            while (state := self._json(connection, "GET", path))["status"] in ("queued", "in_progress"):
                time.sleep(0.5)
            text = "".join(part["text"] for item in state["output"] for part in item["content"])
            if (state["status"], text) != ("completed", counted(self.tokens)):
                raise AssertionError(f"the job is {state['status']}: {state['error']}, {text[-40:]!r}")
            check_events(list(self._events(connection, "GET", f"{path}?stream=true", None)), self.tokens)
        with self._lock:
            self._seen.jobs += 1

    def _asked(self) -> dict[str, Any]:
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
            raise AssertionError(f"{method} answered {answer.status}: {text[:200]!r}")
        return json.loads(text)

    def _events(
        self, connection: http.client.HTTPConnection, method: str, path: str, body: Any
    ) -> Iterator[Mapping[str, Any]]:
        connection.request(method, path, json.dumps(body) if body else None, self.headers)
        answer = connection.getresponse()
        if answer.status != 200:
            raise AssertionError(f"{method} answered {answer.status}: {answer.read()[:200]!r}")
        for line in answer:
            if line.startswith(b"data: {"):
                yield json.loads(line[6:])


def counted(tokens: int) -> str:
    """What `[[tokens: N]]` says."""
    return " ".join(str(number) for number in range(1, tokens + 1))


def check_events(events: list[Mapping[str, Any]], tokens: int) -> None:
    """They are numbered without gaps, say the whole text, and end well."""
    # `in_progress` comes again after silence, with the number of the event before it.
    numbers = [event["sequence_number"] for event in events]
    if sorted(set(numbers)) != list(range(numbers[-1] + 1 if numbers else 0)) or numbers != sorted(numbers):
        raise AssertionError(f"the events' numbers have gaps: {numbers[:5]} … {numbers[-5:]}")
    if not events or events[-1]["type"] != "response.completed":
        raise AssertionError(f"the stream ends with {events[-1] if events else 'nothing'}"[:300])
    text = "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta")
    if text != counted(tokens):
        raise AssertionError(f"the stream says {text[:40]!r} … {text[-40:]!r}")


def _serve(pipe: Connection, port: int, key: str, tokens: int, slow: float, count: int) -> None:
    watched = Watched(port, key=key, tokens=tokens, slow=slow, count=count)
    watched.start()
    while pipe.recv() == "take":
        pipe.send(watched.take())
    pipe.send(watched.finish())


class Watch:
    """The watching process, with `count` victims of each kind: answers of so many tokens, each of `slow` seconds."""

    def __init__(self, port: int, *, key: str, tokens: int, slow: float, count: int = 1) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, port, key, tokens, slow, count), daemon=True)
        self._process.start()
        self.whole = 0
        """Victims that came to their end whole."""

    def take(self) -> Seen:
        """What was seen since the last time."""
        return self._ask("take")

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()
        self._process.join()
        self._process.close()
        self._pipe.close()

    def finish(self) -> Seen:
        """Wait until the victims have ended."""
        return self._ask("finish")

    def _ask(self, what: str) -> Seen:
        self._pipe.send(what)
        seen: Seen = self._pipe.recv()
        self.whole += seen.streams + seen.jobs
        return seen
