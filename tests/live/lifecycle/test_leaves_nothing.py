"""Responses with `store: false` leave no trace on the disk."""

from pathlib import Path
from typing import Any

from openai import OpenAI

from tests.live.client import eventually
from tests.live.server import embedded

MODEL = "smollm2-135m"
MARKER = "a-secret-that-nobody-may-find"


def traces(directory: Path) -> list[str]:
    """The files that contain the marker."""
    return [str(path) for path in directory.rglob("*") if path.is_file() and MARKER.encode() in path.read_bytes()]


def ask_everything(client: OpenAI) -> None:
    """Send content with `store: false` in every way: answered, streamed, cut, failed, abandoned, counted, compacted."""
    messages: Any = [{"role": "user", "content": f"{number} {MARKER}"} for number in range(5)]
    unstored: Any = {"model": MODEL, "store": False, "input": messages}
    assert MARKER in client.responses.create(**unstored, instructions=MARKER).output_text
    with client.responses.stream(**unstored) as stream:
        stream.until_done()
    client.responses.create(**{**unstored, "input": f"{MARKER} {MARKER} {MARKER}"}, max_output_tokens=2)
    failed = client.with_options(max_retries=0)
    with failed.responses.stream(model=MODEL, store=False, input=f"[[fail: it broke]] {MARKER}") as stream:
        assert [event.type for event in stream][-1] == "response.failed"
    with client.responses.stream(model=MODEL, store=False, input=f"[[slow: 0.2]] [[tokens: 99]] {MARKER}") as stream:
        next(iter(stream))
    client.responses.input_tokens.count(model=MODEL, input=messages)
    client.responses.compact(model=MODEL, input=messages, extra_body={"keep_tokens": 1})


def test_nothing_is_left_on_the_disk(tmp_path: Path) -> None:
    """Neither in a table, nor in freed pages, nor in a log. A stored response is found, so the search works."""
    server = embedded(tmp_path, RESPONSES_LOG_LEVEL="debug")
    server.start()
    ask_everything(server.client())
    # Even while it runs: the write-ahead log is emptied soon.
    assert eventually(lambda: not traces(tmp_path)), traces(tmp_path)
    assert server.stop() == 0
    assert traces(tmp_path) == []
    server.start()
    server.client().responses.create(model=MODEL, input=MARKER)
    assert server.stop() == 0
    assert len(traces(tmp_path)) == 1
