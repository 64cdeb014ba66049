"""What is not to be stored leaves no trace on the disk."""

from pathlib import Path
from typing import Any

from openai import OpenAI

from tests.live.client import eventually
from tests.live.server import embedded

MODEL = "smollm2-135m"
MARK = "a-secret-that-nobody-may-find"


def traces(directory: Path) -> list[str]:
    """The files that hold the mark."""
    return [str(path) for path in directory.rglob("*") if path.is_file() and MARK.encode() in path.read_bytes()]


def ask_everything(client: OpenAI) -> None:
    """Every way to send content that is not to be stored: answered, streamed, cut, failed, left, counted, compacted."""
    said: Any = [{"role": "user", "content": f"{number} {MARK}"} for number in range(5)]
    kept_not: Any = {"model": MODEL, "store": False, "input": said}
    assert MARK in client.responses.create(**kept_not, instructions=MARK).output_text
    with client.responses.stream(**kept_not) as stream:
        stream.until_done()
    client.responses.create(**{**kept_not, "input": f"{MARK} {MARK} {MARK}"}, max_output_tokens=2)
    failed = client.with_options(max_retries=0)
    with failed.responses.stream(model=MODEL, store=False, input=f"[[fail: it broke]] {MARK}") as stream:
        assert [event.type for event in stream][-1] == "response.failed"
    with client.responses.stream(model=MODEL, store=False, input=f"[[slow: 0.2]] [[tokens: 99]] {MARK}") as stream:
        next(iter(stream))
    client.responses.input_tokens.count(model=MODEL, input=said)
    client.responses.compact(model=MODEL, input=said, extra_body={"keep_tokens": 1})


def test_nothing_is_left_on_the_disk(tmp_path: Path) -> None:
    """Not in a table, nor where a table's row was, nor in a log. A stored one is found, so that the search can fail."""
    server = embedded(tmp_path, RESPONSES_LOG_LEVEL="debug")
    server.start()
    ask_everything(server.client())
    # While it runs, too: the database's log is emptied soon.
    assert eventually(lambda: not traces(tmp_path)), traces(tmp_path)
    assert server.stop() == 0
    assert traces(tmp_path) == []
    server.start()
    server.client().responses.create(model=MODEL, input=MARK)
    assert server.stop() == 0
    assert len(traces(tmp_path)) == 1
