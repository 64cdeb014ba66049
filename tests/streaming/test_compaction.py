"""The end of a `/responses/compact` request: one event, and nothing of the content in what is stored."""

import pytest

from responses_api.protocol.objects import ResponseError
from responses_api.streaming.compaction import CompactionBuilder

BASE = {"id": "cmp_1", "output": ["kept"]}
ERROR: ResponseError = {"code": "server_error", "message": "It broke."}


def test_its_answer_comes_with_the_usage() -> None:
    builder = CompactionBuilder(BASE)
    assert builder.start() == []
    (event,) = builder.finish("completed", usage=None, error=ERROR)
    assert (event["type"], event["response"]) == ("response.compacted", {**BASE, "usage": None})
    assert builder.snapshot() == {"status": "completed", "output": []}


@pytest.mark.parametrize(
    "end", [lambda it: it.finish("failed", usage=None, error=ERROR), lambda it: it.fail_instead(ERROR)]
)
def test_a_failure_says_why_and_has_no_output(end) -> None:
    builder = CompactionBuilder(BASE)
    (event,) = end(builder)
    assert (event["type"], event["response"]) == ("response.failed", {"status": "failed", "error": ERROR})
    assert builder.snapshot() == {"status": "failed", "output": []}
