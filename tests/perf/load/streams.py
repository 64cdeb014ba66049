"""A fast client: many streams on one thread, on plain sockets, with the time of each delta.

It supports the Responses API and, for other servers, chat completions. Times are those of `time.perf_counter`, which is
the same clock in all processes on Linux and macOS.
"""

import json
import re
import selectors
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urlsplit

Api = Literal["responses", "chat"]
TIMEOUT_SECONDS = 300.0

_DELTA = re.compile(rb'"delta":\s*"((?:[^"\\]|\\.)*)"')
_ID = re.compile(rb'"id":\s*"(resp_[^"]*)"')
_INCOMPLETE = "the stream ended before its last event"


@dataclass(frozen=True, slots=True)
class Target:
    """The server and endpoint of requests."""

    url: str
    """The base URL, which ends with `/v1`."""
    key: str = ""
    api: Api = "responses"
    model: str = ""
    """Empty for the server's default."""

    @property
    def path(self) -> str:
        """The path of the endpoint."""
        return "/responses" if self.api == "responses" else "/chat/completions"

    def body(
        self, messages: Sequence[dict[str, str]], *, tokens: int, stream: bool = True, **more: Any
    ) -> dict[str, Any]:
        """The body of a greedy request for ``tokens`` tokens."""
        body: dict[str, Any] = {"temperature": 0, "stream": stream, **more}
        if self.model:
            body["model"] = self.model
        if self.api == "responses":
            return body | {"input": list(messages), "max_output_tokens": tokens}
        if stream:
            body["stream_options"] = {"include_usage": True}
        return body | {"messages": list(messages), "max_tokens": tokens}

    def request(self, body: dict[str, Any]) -> bytes:
        """A whole HTTP request."""
        parts = urlsplit(self.url)
        content = json.dumps(body).encode()
        authorization = f"Authorization: Bearer {self.key}\r\n" if self.key else ""
        head = (
            f"POST {parts.path}{self.path} HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(content)}\r\nConnection: close\r\n{authorization}\r\n"
        )
        return head.encode() + content

    @property
    def address(self) -> tuple[str, int]:
        """Host and port."""
        parts = urlsplit(self.url)
        assert parts.hostname
        assert parts.port
        return parts.hostname, parts.port


@dataclass(slots=True)
class Stream:
    """One answer: its deltas and their times."""

    sent: float
    times: list[float] = field(default_factory=list)
    """The arrival time of each delta with text."""
    pieces: list[bytes] = field(default_factory=list)
    """The text of these deltas as escaped JSON."""
    id: str = ""
    end: float = 0.0
    usage: dict[str, Any] = field(default_factory=dict)
    error: str = ""

    @property
    def first(self) -> float:
        """Seconds to the first delta."""
        return self.times[0] - self.sent

    @property
    def output_tokens(self) -> int:
        """The tokens by usage; without usage, the number of deltas."""
        count = self.usage.get("output_tokens", self.usage.get("completion_tokens"))
        return int(count) if count else len(self.times)

    @property
    def cached_tokens(self) -> int:
        """The cached tokens of the prompt, by usage."""
        details = self.usage.get("input_tokens_details") or self.usage.get("prompt_tokens_details") or {}
        return int(details.get("cached_tokens") or 0)

    @property
    def text(self) -> str:
        """The whole text."""
        return str(json.loads(b'"' + b"".join(self.pieces) + b'"'))


class RequestFailed(Exception):
    """A request failed."""


def run_streams(target: Target, bodies: Sequence[dict[str, Any]], *, stagger: float = 0.0) -> list[Stream]:
    """Send all requests concurrently, or ``stagger`` seconds apart, and read their streams. Raises RequestFailed."""
    reader = StreamReader()
    for number, body in enumerate(bodies):
        if number and stagger:
            reader.read(until=time.perf_counter() + stagger)
        reader.send(target, body)
    return reader.finish()


class StreamReader:
    """Reads several streams. Requests can be sent while streams are read."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._readers: list[_AnswerParser] = []
        self._open = 0

    def send(self, target: Target, body: dict[str, Any]) -> Stream:
        """Send a request. Its stream is filled by ``read``."""
        reader = _AnswerParser(target, body)
        self._readers.append(reader)
        self._selector.register(reader.socket, selectors.EVENT_READ, reader)
        self._open += 1
        return reader.stream

    def read(self, *, until: float | None = None, count: int | None = None) -> None:
        """Read until the time ``until``, until ``count`` streams have their first delta, or until all have ended."""
        deadline = time.perf_counter() + TIMEOUT_SECONDS
        while self._open or until is not None:
            now = time.perf_counter()
            if until is not None and now >= until:
                return
            if count is not None and sum(bool(reader.stream.times) for reader in self._readers) >= count:
                return
            if now >= deadline:
                raise RequestFailed("the server took too long")
            wait = min(deadline, until or deadline) - now
            for key, _ in self._selector.select(max(0.0, wait)):
                self._receive(key.data)

    def finish(self) -> list[Stream]:
        """Read all streams to the end. Raises RequestFailed unless all requests have succeeded."""
        try:
            self.read()
        finally:
            self.close()
        for reader in self._readers:
            if reader.stream.error:
                raise RequestFailed(reader.stream.error)
        return [reader.stream for reader in self._readers]

    def close(self) -> None:
        """Close the streams that have not ended."""
        for reader in self._readers:
            reader.socket.close()
        self._selector.close()

    def _receive(self, reader: "_AnswerParser") -> None:
        data = reader.socket.recv(1 << 18)
        reader.feed(data, time.perf_counter())
        if not data:
            self._selector.unregister(reader.socket)
            self._open -= 1


class _AnswerParser:
    """Parses one answer: the head, the chunks of the transfer, the events."""

    def __init__(self, target: Target, body: dict[str, Any]) -> None:
        self._api = target.api
        request = target.request(body)
        self.stream = Stream(sent=time.perf_counter())
        self.socket = socket.create_connection(target.address, TIMEOUT_SECONDS)
        self.socket.sendall(request)
        self._head: bytes | None = None
        self._raw = b""
        self._body = b""
        self._is_chunked = False
        self._has_ended = False

    def feed(self, data: bytes, now: float) -> None:
        """Parse received bytes. Empty bytes are the end of the answer."""
        stream = self.stream
        self._raw += data
        if self._head is None:
            head, separator, rest = self._raw.partition(b"\r\n\r\n")
            if separator:
                self._head, self._raw = head, rest
                self._is_chunked = b"transfer-encoding: chunked" in head.lower()
        if self._head is not None:
            self._parse_body()
            *events, self._body = self._body.split(b"\n\n")
            for event in events:
                self._parse_event(event, now)
        if data:
            return
        stream.end = stream.end or now
        if self._head is not None and b" 200 " not in self._head.partition(b"\r\n")[0]:
            stream.error = (self._head.partition(b"\r\n")[0] + b": " + self._body[:300]).decode(errors="replace")
        elif not stream.error and not self._has_ended:
            stream.error = _INCOMPLETE

    def _parse_body(self) -> None:
        if not self._is_chunked:
            self._body += self._raw
            self._raw = b""
            return
        index = 0
        parts = []
        while (line := self._raw.find(b"\r\n", index)) >= 0:
            size = int(self._raw[index:line].split(b";")[0], 16)
            begin = line + 2
            if len(self._raw) < begin + size + 2:
                break
            parts.append(self._raw[begin : begin + size])
            index = begin + size + 2
        self._raw = self._raw[index:]
        self._body += b"".join(parts)

    def _parse_event(self, event: bytes, now: float) -> None:
        if self._api == "responses":
            self._parse_response_event(event, now)
        elif event.startswith(b"data: {"):
            self._parse_completion(json.loads(event[6:]), now)
        elif event == b"data: [DONE]":
            self._end(now)

    def _parse_response_event(self, event: bytes, now: float) -> None:
        stream = self.stream
        kind = event[: event.find(b"\n")]
        if kind.endswith(b".delta"):
            match = _DELTA.search(event)
            if match is not None and match[1]:
                stream.times.append(now)
                stream.pieces.append(match[1])
        elif kind == b"event: response.created":
            match = _ID.search(event)
            stream.id = match[1].decode() if match is not None else ""
        elif kind in (b"event: response.completed", b"event: response.incomplete"):
            stream.usage = json.loads(event.partition(b"data: ")[2])["response"]["usage"] or {}
            self._end(now)
        elif kind in (b"event: response.failed", b"event: error"):
            stream.error = event.decode(errors="replace")[:500]

    def _parse_completion(self, chunk: dict[str, Any], now: float) -> None:
        stream = self.stream
        stream.usage = chunk.get("usage") or stream.usage
        for choice in chunk.get("choices") or []:
            text = (choice.get("delta") or {}).get("content")
            if text:
                stream.times.append(now)
                stream.pieces.append(json.dumps(text).encode()[1:-1])
            if choice.get("finish_reason"):
                self._end(now)

    def _end(self, now: float) -> None:
        self._has_ended = True
        self.stream.end = now
