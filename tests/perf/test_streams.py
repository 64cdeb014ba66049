"""The benchmark's client reads streams that arrive in pieces of any size."""

import json
import socket
import threading

import pytest

from tests.perf.load.rates import gaps, percentile, steps_per_second
from tests.perf.load.streams import RequestFailed, Stream, Target, run_streams

DELTA = 'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","delta":"%s"}\n\n'
EVENTS = (
    'event: response.created\ndata: {"type":"response.created","response":{"id":"resp_1"}}\n\n'
    + DELTA % " one"
    + DELTA % " t\\u0077o\\n"
    + 'event: response.completed\ndata: {"response":{"usage":{"output_tokens":5}}}\n\n'
).encode()
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"".join(
    b"%x\r\n%s\r\n" % (len(part), part) for part in (EVENTS[:70], EVENTS[70:300], EVENTS[300:])
)


def serve_once(parts: list[bytes]) -> Target:
    """Start a server that sends these parts to one client."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = listener.accept()
        with listener, connection:
            connection.recv(65536)
            for part in parts:
                connection.sendall(part)

    threading.Thread(target=serve, daemon=True).start()
    return Target(f"http://127.0.0.1:{listener.getsockname()[1]}/v1")


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_a_chunked_stream_is_read_in_pieces_of_any_size(size: int) -> None:
    """The deltas, id, usage and text are the same."""
    (stream,) = run_streams(serve_once([CHUNKED[start : start + size] for start in range(0, len(CHUNKED), size)]), [{}])
    assert (stream.id, stream.output_tokens, len(stream.times)) == ("resp_1", 5, 2)
    assert stream.text == " one two\n"


def test_chat_completions_are_read_too() -> None:
    """The text, usage and end, from a server that sends no chunks."""
    chunks = [
        {"choices": [{"delta": {"role": "assistant"}}]},
        {"choices": [{"delta": {"content": 'a "quote"'}}]},
        {"choices": [{"delta": {}, "finish_reason": "length"}]},
        {"choices": [], "usage": {"completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 2}}},
    ]
    body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
    plain = serve_once([b"HTTP/1.0 200 OK\r\n\r\n" + body.encode()])
    (stream,) = run_streams(Target(plain.url, api="chat"), [{}])
    assert (stream.text, stream.output_tokens, stream.cached_tokens) == ('a "quote"', 3, 2)


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ([CHUNKED[:-80]], "before its last event"),
        ([b"HTTP/1.1 429 Too Many Requests\r\n\r\n{}"], "429"),
        ([b'HTTP/1.1 200 OK\r\n\r\nevent: response.failed\ndata: {"response":{}}\n\n'], "response.failed"),
    ],
)
def test_a_request_that_fails_is_an_error(parts: list[bytes], sentence: str) -> None:
    """Otherwise failures would be measured as fast answers."""
    with pytest.raises(RequestFailed, match=sentence):
        run_streams(serve_once(parts), [{}])


def test_steps_are_counted_only_while_all_streams_run() -> None:
    """A token has four characters; a delta may have several tokens."""
    first = Stream(sent=0.0, times=[1.0, 2.0, 3.0, 4.0], pieces=[b" one", b" two", b" six ten", b" end"])
    second = Stream(sent=0.0, times=[2.0, 4.0, 5.0], pieces=[b" one", b" two six", b" end"])
    # From 2.0 to 4.0: three tokens of the first, two of the second.
    assert steps_per_second([first, second], characters_per_token=4) == pytest.approx(5 / 2 / 2)
    assert gaps([first], begin=1.5, end=3.0) == [1.0, 1.0, 1.0]
    assert percentile([1.0, 2.0, 3.0], 75) == 2.5
