"""The end of a `/responses/compact` request: one event, and no content in the stored row."""

import pytest

from responses_api.protocol import usage
from responses_api.protocol.objects import ResponseError
from responses_api.protocol.objects.compaction import initial_compaction
from responses_api.streaming.compaction import CompactionBuilder

BASE = initial_compaction("cmp_1", created_at=1, model="m")
USAGE = usage(input_tokens=9, output_tokens=3, cached_tokens=0, cache_write_tokens=0)
ERROR: ResponseError = {"code": "server_error", "message": "It broke."}


def test_its_answer_comes_with_the_usage() -> None:
    builder = CompactionBuilder(BASE)
    assert builder.start() == []
    (event,) = builder.finish("completed", usage=USAGE, error=ERROR)
    assert (event["type"], event["response"]) == ("response.compacted", {**BASE, "usage": USAGE})
    assert dict(builder.snapshot()) == {"status": "completed", "output": []}


@pytest.mark.parametrize(
    "end", [lambda it: it.finish("failed", usage=None, error=ERROR), lambda it: it.fail_instead(ERROR)]
)
def test_a_failure_says_why_and_has_no_output(end) -> None:
    builder = CompactionBuilder(BASE)
    (event,) = end(builder)
    assert (event["type"], event["response"]) == ("response.failed", {"status": "failed", "error": ERROR})
    assert dict(builder.snapshot()) == {"status": "failed", "output": []}
