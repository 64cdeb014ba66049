"""Background jobs through the real SDK, in both shapes."""

import threading
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import httpx
import openai
import pytest
from openai.types.responses import Response

from tests.live.launch import SHAPES, Launch
from tests.live.server import LiveServer
from tests.streaming.streams import check_grammar, check_items, fold

MODEL = "smollm2-135m"
SLOW = "[[slow: 0.02]]"
FOREVER = f"[[tokens: 100000]]{SLOW}"


def ended(server: LiveServer, job: Response, *, web: int = 0) -> Response:
    """The job when it has ended, by polling."""
    deadline = time.monotonic() + 30
    while (found := server.client(web=web).responses.retrieve(job.id)).status in ("queued", "in_progress"):
        assert found.output == []
        assert found.usage is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found


def create(server: LiveServer, text: str, **fields: Any) -> Response:
    """A background job."""
    found: Response = server.client().responses.create(model=MODEL, input=text, background=True, **fields)
    return found


def events_of(server: LiveServer, job: Response, *, after: int | None = None, web: int = 0) -> list[dict[str, Any]]:
    """The job's stream to its end, from any point on."""
    place: dict[str, Any] = {} if after is None else {"starting_after": after}
    with server.client(web=web).responses.retrieve(job.id, stream=True, **place) as stream:
        return [event.to_dict(mode="json") for event in stream]


def test_a_job_is_answered_at_once_and_polled_to_its_end(server: LiveServer) -> None:
    """Queued and empty first; then complete on every web process, and equal to its stream."""
    job = create(server, f"[[tokens: 20]]{SLOW}", metadata={"a": "b"})
    assert (job.status, job.background, job.output, job.usage) == ("queued", True, [], None)
    done = ended(server, job, web=server.web - 1)
    assert done.status == "completed"
    assert done.output_text.endswith(" 20")
    assert done.usage is not None
    assert done.usage.output_tokens == 20
    assert done.metadata == {"a": "b"}
    events = events_of(server, job)
    check_grammar(events)
    check_items(events)
    assert [event["type"] for event in events[:3]] == ["response.created", "response.queued", "response.in_progress"]
    assert events[0]["response"]["status"] == events[1]["response"]["status"] == "queued"
    assert events[-1]["response"] == done.to_dict(mode="json")
    assert fold(events)["output"] == done.to_dict(mode="json")["output"]


def test_a_stream_resumes_from_any_event(server: LiveServer) -> None:
    """On any web process it gives the rest without a gap."""
    job = create(server, f"[[think: hm]][[tokens: 40]]{SLOW}")
    live = events_of(server, job)
    check_grammar(live)
    for after in (0, 1, 2, 17, len(live) - 2, len(live) - 1):
        assert events_of(server, job, after=int(after), web=server.web - 1) == live[after + 1 :]


def test_an_attached_reader_may_leave(server: LiveServer) -> None:
    """Leaving cancels nothing; the reader can resume the stream where it was."""
    with server.client().responses.create(
        model=MODEL, input=f"[[tokens: 60]]{SLOW}", background=True, stream=True
    ) as s:
        seen: list[dict[str, Any]] = []
        for event in s:
            seen.append(dict(event.to_dict(mode="json")))
            if len(seen) == 12:
                break
    job = server.client().responses.retrieve(seen[0]["response"]["id"])
    events = seen + events_of(server, job, after=seen[-1]["sequence_number"])
    check_grammar(events)
    assert events[-1]["type"] == "response.completed"
    assert fold(events)["output"][0]["content"][0]["text"].endswith(" 60")


def test_many_readers_of_one_job_see_the_same(server: LiveServer) -> None:
    """Each from its first event, on all web processes."""
    job = create(server, f"[[tokens: 80]]{SLOW}")
    results: list[list[dict[str, Any]]] = [[] for _ in range(4)]

    def read(place: int) -> None:
        results[place] = events_of(server, job, web=place % server.web)

    threads = [threading.Thread(target=read, args=(place,)) for place in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check_grammar(results[0])
    assert all(result == results[0] for result in results)


def test_a_running_job_is_cancelled(server: LiveServer) -> None:
    """Within the call. Its reader's stream ends in an error event, the object keeps the partial output."""
    job = create(server, FOREVER)
    reader: list[dict[str, Any]] = []
    thread = threading.Thread(target=lambda: reader.extend(events_of(server, job, web=server.web - 1)))
    thread.start()
    while len(reader_text(server, job)) < 3:
        time.sleep(0.02)
    cancelled = server.client().responses.cancel(job.id)
    assert cancelled.status == "cancelled"
    thread.join()
    check_grammar(reader)
    check_items(reader)
    assert reader[-1]["type"] == "error"
    assert reader[-1]["code"] == "response_cancelled"
    assert reader[-2]["item"]["status"] == "incomplete"
    assert [item.to_dict(mode="json") for item in cancelled.output] == [reader[-2]["item"]]
    again = server.client(web=server.web - 1).responses.cancel(job.id)
    assert again.to_dict() == cancelled.to_dict()
    assert server.client().responses.retrieve(job.id).to_dict() == cancelled.to_dict()
    with pytest.raises(openai.BadRequestError, match="cancelled"):
        server.client().responses.create(model=MODEL, input="go on", previous_response_id=job.id)


def reader_text(server: LiveServer, job: Response) -> list[str]:
    """The deltas so far, from a stream that is then abandoned."""
    with server.client().responses.retrieve(job.id, stream=True) as stream:
        deltas = []
        for event in stream:
            if event.type == "response.output_text.delta":
                deltas.append(event.delta)
            if len(deltas) >= 3:
                break
        return deltas


def test_responses_that_cannot_be_cancelled_or_streamed(server: LiveServer) -> None:
    """A foreground response is 400 and 409, a finished job is returned, an unknown id is 404, streamed or not."""
    client = server.client()
    foreground = client.responses.create(model=MODEL, input="hello")
    with pytest.raises(openai.BadRequestError, match="background"):
        client.responses.cancel(foreground.id)
    with pytest.raises(openai.ConflictError) as conflict:
        client.responses.retrieve(foreground.id, stream=True)
    assert conflict.value.code == "stream_not_available"
    done = ended(server, create(server, "hello"))
    assert client.responses.cancel(done.id).to_dict() == done.to_dict()
    for attempt in (
        lambda: client.responses.cancel("resp_unknown"),
        lambda: client.responses.retrieve("resp_unknown", stream=True),
    ):
        with pytest.raises(openai.NotFoundError, match="resp_unknown"):
            attempt()
    with pytest.raises(openai.BadRequestError, match="starting_after"):
        client.responses.retrieve(done.id, stream=True, starting_after=1000)


def test_a_running_job_is_not_deleted_or_continued(server: LiveServer) -> None:
    """409 without a retry. Once it has ended, it is deleted with its events."""
    client = server.client()
    job = create(server, FOREVER)
    with pytest.raises(openai.ConflictError) as conflict:
        client.responses.delete(job.id)
    assert conflict.value.response.headers["x-should-retry"] == "false"
    with pytest.raises(openai.ConflictError):
        client.responses.create(model=MODEL, input="go on", previous_response_id=job.id)
    (item,) = client.responses.input_items.list(job.id).data
    client.responses.cancel(job.id)
    assert [found.id for found in client.responses.input_items.list(job.id).data] == [item.id]
    client.responses.delete(job.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(job.id, stream=True)


def test_jobs_are_chained_and_go_into_conversations(server: LiveServer) -> None:
    """The history is read at creation, the turn appended at the end."""
    client = server.client()
    first = ended(server, create(server, "my name is Ada"))
    second = ended(server, create(server, "[[show-prompt]]", previous_response_id=first.id))
    assert "You said: my name is Ada" in second.output_text
    conversation = client.conversations.create()
    ended(server, create(server, "I like sums", conversation=conversation.id))
    cut = create(server, FOREVER, conversation=conversation.id)
    client.responses.cancel(cut.id)
    items = [item.to_dict() for item in client.conversations.items.list(conversation.id, order="asc")]
    texts = [item["content"][0]["text"] for item in items]  # type: ignore[index]
    assert texts == ["I like sums", "You said: I like sums"]


def test_a_prompt_that_the_worker_refuses_fails_the_job(server: LiveServer) -> None:
    """`invalid_prompt`, in the stream too; an error of the engine is `server_error`."""
    job = create(server, "word " * 140_000)
    failed = ended(server, job)
    assert failed.status == "failed"
    assert failed.error is not None
    assert failed.error.code == "invalid_prompt"
    events = events_of(server, job)
    check_grammar(events)
    assert events[-1]["response"] == failed.to_dict(mode="json")
    broken = ended(server, create(server, "[[say: so far]][[fail: The model broke.]]"))
    assert broken.error is not None
    assert broken.error.code == "server_error"


def test_an_unstored_job_is_readable_and_not_chainable(server: LiveServer) -> None:
    """It can be read for a while, but not continued."""
    job = create(server, "hello", store=False)
    done = ended(server, job)
    assert (done.output_text, done.to_dict()["store"]) == ("You said: hello", False)
    assert events_of(server, job)[-1]["type"] == "response.completed"
    with pytest.raises(openai.BadRequestError) as error:
        server.client().responses.create(model=MODEL, input="go on", previous_response_id=job.id)
    assert error.value.code == "previous_response_not_found"
    (item,) = server.client().responses.input_items.list(job.id).data
    for item_id in (item.id, done.output[0].id):
        with pytest.raises(openai.NotFoundError) as unknown:
            server.client().responses.create(model=MODEL, input=[{"type": "item_reference", "id": str(item_id)}])
        assert unknown.value.param == "input[0].id"


def test_compaction_happens_in_the_job(server: LiveServer) -> None:
    """Its item and its events are in the stream, which opens long before."""
    long = [{"role": "user", "content": f"[[say: fine]] {number} " + "word " * 60} for number in range(6)]
    job = server.client().responses.create(
        model=MODEL,
        input=long,  # type: ignore[arg-type]
        background=True,
        context_management=[{"type": "compaction", "compact_threshold": 200}],
    )
    done = ended(server, job)
    assert [item.type for item in done.output] == ["compaction", "message"]
    events = events_of(server, job)
    check_grammar(events)
    assert events[3]["type"] == "mlx.compaction.started"
    assert events[-1]["response"] == done.to_dict(mode="json")


@pytest.fixture(scope="module", params=SHAPES)
def small_server(request: pytest.FixtureRequest, launch: Launch) -> Iterator[LiveServer]:
    """A server with low limits."""
    with launch(
        request.param,
        RESPONSES_BATCH_SIZE="1",
        RESPONSES_BACKGROUND_MAX_JOBS="3",
        RESPONSES_BACKGROUND_MAX_JOBS_PER_KEY="2",
        RESPONSES_BACKGROUND_INPUT_MAX_BYTES="20000",
        RESPONSES_BACKGROUND_EPHEMERAL_TTL_SECONDS="1",
        RESPONSES_EVENTS_MAX_COUNT="30",
        RESPONSES_STREAM_READERS_PER_KEY="1",
        RESPONSES_LEASE_SECONDS="2",
    ) as server:
        yield server


@pytest.fixture(scope="module")
def keys(small_server: LiveServer) -> list[str]:
    """Keys of two projects."""
    return small_server.make_keys("one", "two")


def test_jobs_are_limited_in_total_and_by_key(small_server: LiveServer, keys: list[str]) -> None:
    """429 that names the setting and says when to retry; a queued job that is cancelled never starts."""
    first, second = (small_server.client(key=key).responses for key in keys)
    ask: dict[str, Any] = {"model": MODEL, "background": True}
    jobs = [first.create(input=FOREVER, **ask) for _ in range(2)]
    with pytest.raises(openai.RateLimitError, match="PER_KEY") as limited:
        first.create(input="hello", **ask)
    assert int(limited.value.response.headers["retry-after"]) >= 1
    jobs.append(second.create(input="hello", **ask))
    with pytest.raises(openai.RateLimitError, match="MAX_JOBS"):
        second.create(input="hello", **ask)
    if small_server.web == 1:  # and one slot, so that the second waits for as long as the first runs
        while first.retrieve(jobs[0].id).status == "queued":
            time.sleep(0.02)
        assert first.cancel(jobs[1].id).status == "cancelled"
        assert [event.type for event in first.retrieve(jobs[1].id, stream=True)] == [
            "response.created",
            "response.queued",
            "error",
        ]
    for job in jobs[:2]:
        assert first.cancel(job.id).status == "cancelled"
    deadline = time.monotonic() + 10
    while second.retrieve(jobs[2].id).status != "completed":
        assert time.monotonic() < deadline
        time.sleep(0.05)
    with pytest.raises(openai.APIStatusError) as large:
        first.create(input="x" * 20_000, **ask)
    assert (large.value.status_code, large.value.code) == (413, "request_too_large")


def test_jobs_are_private_to_their_project(small_server: LiveServer, keys: list[str]) -> None:
    """Another project's key finds neither the job nor its stream, and can't cancel it."""
    mine, theirs = (small_server.client(key=key).responses for key in keys)
    job = mine.create(model=MODEL, input=FOREVER, background=True)
    for attempt in (
        lambda: theirs.retrieve(job.id),
        lambda: theirs.retrieve(job.id, stream=True),
        lambda: theirs.cancel(job.id),
        lambda: theirs.input_items.list(job.id),
    ):
        with pytest.raises(openai.NotFoundError):
            attempt()
    assert mine.cancel(job.id).status == "cancelled"


def test_readers_and_stored_events_are_limited(small_server: LiveServer, keys: list[str]) -> None:
    """A second reader of a key is 429 on the same process, a cursor before the stored events 410."""
    mine = small_server.client(key=keys[0]).responses
    job = mine.create(model=MODEL, input=f"[[tokens: 100]]{SLOW}", background=True)
    with closing(mine.retrieve(job.id, stream=True)) as stream:
        next(iter(stream))
        with pytest.raises(openai.RateLimitError, match="STREAM_READERS_PER_KEY"):
            mine.retrieve(job.id, stream=True)
    while mine.retrieve(job.id).status != "completed":
        time.sleep(0.05)
    wait_for_place(small_server, keys[0], job)
    with pytest.raises(openai.APIStatusError) as gone:
        mine.retrieve(job.id, stream=True, starting_after=5)
    assert (gone.value.status_code, gone.value.code) == (410, "cursor_expired")
    last = [event.sequence_number for event in mine.retrieve(job.id, stream=True, starting_after=100)][-1]
    assert last == 108


def wait_for_place(server: LiveServer, key: str, job: Response) -> None:
    """Wait until the process has noticed that a reader has left."""
    deadline = time.monotonic() + 5
    while True:
        answer = httpx.get(
            f"{server.url}/responses/{job.id}",
            params={"stream": "true", "starting_after": 1000},
            headers={"authorization": f"Bearer {key}"},
        )
        if answer.status_code != 429:
            return
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_an_unstored_job_expires(small_server: LiveServer, keys: list[str]) -> None:
    """With its object, its stream and its input."""
    mine = small_server.client(key=keys[0]).responses
    job = mine.create(model=MODEL, input="hello", background=True, store=False)
    deadline = time.monotonic() + 15
    while True:
        try:
            assert mine.retrieve(job.id).status != "failed"
        except openai.NotFoundError:
            break
        assert time.monotonic() < deadline
        time.sleep(0.1)
    with pytest.raises(openai.NotFoundError):
        mine.retrieve(job.id, stream=True)


def test_an_interactive_request_needs_no_free_slot(small_server: LiveServer, keys: list[str]) -> None:
    """A job is preempted for it, and resumes afterwards without a gap."""
    client = small_server.client(key=keys[0]).responses
    jobs = [client.create(model=MODEL, input=f"[[tokens: 150]]{SLOW}", background=True) for _ in range(1)]
    time.sleep(0.5)
    assert client.create(model=MODEL, input="quick").output_text == "You said: quick"
    assert client.retrieve(jobs[0].id).status == "in_progress"
    deadline = time.monotonic() + 20
    while (done := client.retrieve(jobs[0].id)).status != "completed":
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert done.output_text == " ".join(str(number) for number in range(1, 151))


def test_a_job_resumes_after_a_restart(launch: Launch) -> None:
    """A server that stops breaks off the stream without an end; after a restart the job resumes by itself."""
    with launch("embedded", RESPONSES_LEASE_SECONDS="2") as server:
        job = create(server, f"[[think: hé]][[tokens: 100]]{SLOW}", include=["reasoning.encrypted_content"])
        seen: list[dict[str, Any]] = []
        for event in server.client().responses.retrieve(job.id, stream=True):
            seen.append(dict(event.to_dict(mode="json")))
            if len(seen) == 40:
                assert server.process is not None
                server.process.terminate()
        assert seen[-1]["type"] == "response.output_text.delta"
        assert server.stop() == 0
        server.start()
        events = seen + events_of(server, job, after=seen[-1]["sequence_number"])
        check_grammar(events)
        done = ended(server, job).to_dict(mode="json")
        assert events[-1]["response"] == done
        assert fold(events)["output"] == done["output"]
        assert events_of(server, job) == events
