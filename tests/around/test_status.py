"""`/v1/status` and `/metrics`: figures over all processes, without names of projects and keys."""

import os
import re
from datetime import timedelta
from typing import Any
from unittest.mock import patch

import pytest
from asgiref.sync import sync_to_async
from django.db import DatabaseError
from django.db.models.functions import Now
from django.test import Client, override_settings

from inference.types import CacheFigures, EngineLoad
from responses_api import counting
from responses_api.counting import DURATION, FAMILIES, JOBS_RECOVERED, OUTPUT_TOKENS, count, observe
from responses_api.errors import NotFound, Overloaded
from responses_api.models import Counter, EventBatch, Item, Process, Response, UsageRecord
from responses_api.selectors.models import resolve_model
from responses_api.services.accounts.authenticate import default_project
from responses_api.services.accounts.create_key import create_key
from responses_api.services.admission.create_response import create_response, new_response_id
from responses_api.services.jobs.end_job import end_unowned
from responses_api.services.jobs.event_log import LogCursor, all_batches, decode_batch, expire_event_logs
from responses_api.services.processes import publish_counts as publishing
from responses_api.services.processes.announce_process import Announcement, announce_process, forget_process
from responses_api.services.processes.count_caches import CacheCounts
from responses_api.services.processes.expire_responses import expire_responses
from responses_api.services.processes.publish_counts import publish_counts
from responses_api.services.store.delete_response import delete_response
from responses_api.services.store.open_response import open_response
from tests.factories import MODEL, make_announcement, make_project, start_response
from tests.turns import ApiUser

from .application import browser

pytestmark = pytest.mark.django_db

ANNOUNCEMENT = make_announcement()
SAMPLE = re.compile(r'([a-z_]+)(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? (\d+(\.\d+)?(e-?\d+)?)')


def status(client: Client) -> dict[str, Any]:
    answer = client.get("/v1/status")
    assert answer.status_code == 200
    value: dict[str, Any] = answer.json()
    return value


def metrics(client: Client) -> dict[str, float]:
    """Every sample by its series; each line has the format's form."""
    answer = client.get("/metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    found: dict[str, float] = {}
    for line in answer.content.decode().splitlines():
        if not line.startswith(("# HELP ", "# TYPE ")):
            sample = SAMPLE.fullmatch(line)
            assert sample is not None, line
            found[sample[1] + (sample[2] or "")] = float(sample[4])
    return found


def test_an_idle_server(client: Client, user: ApiUser, settings: Any) -> None:
    """Version, models, workers, dialects; zeros."""
    shown = status(client)
    assert shown["version"] == settings.RESPONSES_VERSION == "0.1.0"
    assert shown["dialects"] == ["responses", "chat_completions"]
    assert (shown["running"], shown["waiting"]) == (0, 0)
    assert set(shown["background"].values()) == {0}
    (model,) = shown["models"]
    assert (model["id"], model["aliases"]) == (MODEL, ["smollm2-135m"])
    (worker,) = shown["workers"]
    assert (worker["models"], worker["slots"], worker["running"]) == ([MODEL], 8, 0)
    assert worker["pid"] == os.getpid()
    assert shown["speculation"] == {"drafted_tokens": 0, "accepted_tokens": 0}
    assert set(shown["store"].values()) == {0}
    assert shown["uptime_seconds"] >= 0


def test_the_age_of_an_engine_s_current_step_is_shown(client: Client, user: ApiUser) -> None:
    """By each worker's last heartbeat; Prometheus gets the age of the oldest step."""
    assert metrics(client)["mlx_responses_step_seconds"] == 0
    Process.objects.filter(pk=user.worker).update(step_seconds=61.23456)
    announce_process(Announcement(id="other", kind=Process.Kind.WORKER, slots=1, step_seconds=2.0))
    assert [worker["step_seconds"] for worker in status(client)["workers"]] == [61.235, 2.0]
    assert metrics(client)["mlx_responses_step_seconds"] == 61.23456


def test_the_state_of_each_model_is_shown(client: Client) -> None:
    """That of the worker where it is most ready; the memory of all workers; a model that is too large is no choice."""
    too_large = make_announcement("large", state="too_large", refusal="It needs too much memory.")
    for worker, state, size in (("one", "unloaded", 0), ("two", "idle", 7), ("three", "loading", 5)):
        model = make_announcement(state=state, memory_bytes=size, is_pinned=worker == "one", is_new="ignored")
        announce_process(Announcement(id=worker, kind=Process.Kind.WORKER, slots=1, models=[model, too_large]))
    served, large = status(client)["models"]
    assert (large["id"], large["state"], large["memory_bytes"], large["pinned"]) == ("large", "too_large", 0, False)
    assert (served["id"], served["state"], served["memory_bytes"], served["pinned"]) == (MODEL, "idle", 12, True)
    assert all(worker["models"] == [MODEL] for worker in status(client)["workers"])
    (listed,) = client.get("/v1/models").json()["data"]
    assert (listed["id"], listed["state"]) == (MODEL, "idle")
    assert client.get("/v1/models/large").status_code == 404
    figures = metrics(client)
    assert (figures["mlx_responses_models_loaded"], figures["mlx_responses_model_memory_bytes"]) == (1, 12)
    with pytest.raises(Overloaded, match="It needs too much memory") as refused:
        resolve_model("large")
    assert refused.value.headers == {"x-should-retry": "false"}


def test_it_is_served_without_v1_too(client: Client, user: ApiUser) -> None:
    """Like every endpoint; other methods are refused."""
    assert client.get("/status").json()["object"] == "server.status"
    assert client.get("/v1/metrics").status_code == 200
    assert client.post("/status").status_code == 405


def test_both_need_a_key_once_there_is_one(client: Client) -> None:
    """The liveness check does not."""
    secret = create_key(project=default_project(), name="laptop")[1]
    for path in ("/v1/status", "/status", "/metrics"):
        assert client.get(path).status_code == 401
        assert client.get(path, headers={"x-api-key": secret}).status_code == 200
    assert client.get("/healthz").status_code == 200


def test_the_figures_of_the_store(client: Client, user: ApiUser) -> None:
    """Entries, exact bytes, writes, hits, misses, expiries."""
    first = user.turn("hällo")
    second = user.turn("again", previous=first)
    user.turn("forget this", store=False)
    store = status(client)["store"]
    texts = [*Item.objects.values_list("payload", flat=True), *Response.objects.values_list("body", flat=True)]
    assert store["bytes"] == sum(len(text.encode()) for text in texts)
    assert (store["entries"], store["writes"], store["hits"], store["misses"]) == (2, 2, 1, 0)
    open_response(caller=user.caller, response_id=first)
    with pytest.raises(NotFound):
        open_response(caller=user.caller, response_id="resp_unknown")
    delete_response(caller=user.caller, response_id=first)
    Response.objects.filter(public_id=second).update(expires_at=Now() - timedelta(seconds=1))
    with pytest.raises(NotFound):
        open_response(caller=user.caller, response_id=second)
    assert expire_responses() == 1
    store = status(client)["store"]
    assert (store["entries"], store["bytes"], store["hits"], store["misses"]) == (0, 0, 2, 2)
    assert (store["writes"], store["expiries"], store["evictions"], store["refusals"]) == (2, 1, 0, 0)


def test_running_and_waiting_are_summed_over_workers(client: Client, user: ApiUser) -> None:
    """Up to its slots a worker's jobs run. The rest wait, as do unowned jobs and those of a dead worker."""
    project = make_project()
    announce_process(Announcement(id="small", kind=Process.Kind.WORKER, slots=1, models=[ANNOUNCEMENT]))
    announce_process(Announcement(id="gone", kind=Process.Kind.WORKER, slots=9, models=[ANNOUNCEMENT]))
    Process.objects.filter(pk="gone").update(heartbeat_at=Now() - timedelta(hours=1))
    for worker in (user.worker, user.worker, "small", "small", "small", "gone", ""):
        row = start_response("hi", project=project)
        Response.objects.filter(pk=row.pk).update(status="queued", worker=worker)
    shown = status(client)
    assert (shown["running"], shown["waiting"]) == (3, 4)
    assert sorted((entry["running"], entry["waiting"]) for entry in shown["workers"]) == [(1, 2), (2, 0)]
    figures = metrics(client)
    assert (figures["mlx_responses_running"], figures["mlx_responses_waiting"]) == (3, 4)
    assert (figures["mlx_responses_slots"], figures["mlx_responses_workers"]) == (9, 2)


def test_background_jobs_are_shown_apart(client: Client, user: ApiUser) -> None:
    """They run in the slots that interactive requests leave; unowned jobs and those of a dead worker wait."""
    project = make_project()
    announce_process(Announcement(id="small", kind=Process.Kind.WORKER, slots=3, models=[ANNOUNCEMENT]))
    jobs = (("small", True),) * 3 + (("small", False), ("gone", True), ("", True), ("", False))
    for worker, background in jobs:
        row = start_response("hi", project=project)
        Response.objects.filter(pk=row.pk).update(status="queued", worker=worker, background=background)
    shown = status(client)
    assert (shown["running"], shown["waiting"]) == (3, 4)
    assert (shown["background"]["running"], shown["background"]["waiting"]) == (2, 3)
    figures = metrics(client)
    assert (figures["mlx_responses_background_running"], figures["mlx_responses_background_waiting"]) == (2, 3)


def test_stored_events_are_counted(client: Client, user: ApiUser) -> None:
    """Over all event logs, in exact bytes, until they expire."""
    payload = {"input": "hello", "background": True}
    for place in range(3):
        public_id = new_response_id()
        row = create_response(caller=user.caller, public_id=public_id, payload=payload)
        if place == 1:
            cursor = LogCursor.after(all_batches(row.pk))
            for text in ("ä", "b"):
                cursor.batch([("response.output_text.delta", text)], response=row.pk, attempt=1).save()
        if place == 2:
            assert end_unowned(row.pk, outcome="cancelled")
    background = status(client)["background"]
    logs = list(EventBatch.objects.values_list("data", flat=True))
    assert background["events"] == sum(len(decode_batch(data)) for data in logs)
    assert background["event_bytes"] == sum(len(data.encode()) for data in logs) > 0
    assert (background["waiting"], background["cancelled"]) == (2, 1)
    assert metrics(client)["mlx_responses_event_bytes"] == background["event_bytes"]
    with override_settings(RESPONSES_EVENT_TTL_SECONDS=0):
        expire_event_logs()
    assert 0 < status(client)["background"]["events"] < background["events"]


def test_readers_are_counted_over_all_web_processes(client: Client) -> None:
    """Over live ones, without the running jobs of workers; recovered jobs are counted."""
    announce_process(Announcement(id="one", kind=Process.Kind.WEB, running=2))
    announce_process(Announcement(id="two", kind=Process.Kind.WEB, running=3))
    announce_process(Announcement(id="gone", kind=Process.Kind.WEB, running=9))
    announce_process(Announcement(id="worker", kind=Process.Kind.WORKER, running=9))
    Process.objects.filter(pk="gone").update(heartbeat_at=Now() - timedelta(hours=1))
    count(JOBS_RECOVERED, 2)
    shown = status(client)
    assert (shown["readers"], shown["web_processes"], shown["background"]["recovered"]) == (5, 2, 2)
    assert metrics(client)["mlx_responses_readers"] == 5


def test_generations_are_counted_by_status_and_in_tokens(client: Client, user: ApiUser) -> None:
    """The metrics agree with the usage records."""
    first = user.turn("one")
    user.turn("two", previous=first)
    user.turn("three", store=False)
    figures = metrics(client)
    assert figures['mlx_responses_generations_total{status="completed"}'] == 3
    records = UsageRecord.objects.all()
    assert figures["mlx_responses_input_tokens_total"] == sum(record.input_tokens for record in records)
    assert figures["mlx_responses_output_tokens_total"] == 3
    assert figures["mlx_responses_cached_tokens_total"] == 0
    assert figures["mlx_responses_duration_seconds_count"] == 3
    assert figures["mlx_responses_store_entries"] == 2


def test_the_cache_of_prompts_is_counted_by_tier(client: Client) -> None:
    """What engines have done since they were counted last, also one that began anew; sizes of live workers, and of each
    host's disk once.
    """
    counts = CacheCounts()
    memory, disk = CacheFigures(hits=2, misses=1, tokens=30, evictions=4), CacheFigures(hits=1, tokens=9)
    for figures in (memory, memory, CacheFigures(hits=5, misses=1, tokens=40, evictions=4), CacheFigures(hits=1)):
        counts.count({"m": EngineLoad(running=0, waiting=0, slots=1, free=1, memory_cache=figures, disk_cache=disk)})
    for number, sizes in enumerate(((100, 1000), (10, 1000))):
        announce_process(
            Announcement(
                id=f"w{number}", kind=Process.Kind.WORKER, prompt_cache_bytes=sizes[0], prompt_cache_disk_bytes=sizes[1]
            )
        )
    shown = status(client)["prompt_cache"]
    assert shown["memory"] == {"bytes": 110, "hits": 6, "misses": 1, "tokens": 40, "evictions": 4}
    assert shown["disk"] == {"bytes": 1000, "hits": 1, "misses": 0, "tokens": 9, "evictions": 0}
    series = metrics(client)
    assert series['mlx_responses_prompt_cache_hits_total{tier="memory"}'] == 6
    assert series['mlx_responses_prompt_cache_tokens_total{tier="disk"}'] == 9
    assert series["mlx_responses_prompt_cache_bytes"] == 110
    assert series["mlx_responses_prompt_cache_disk_bytes"] == 1000


def test_a_histogram_counts_each_value_in_every_bucket_above_it(client: Client) -> None:
    """On a bound, between two bounds, and above all."""
    for seconds in (0.05, 0.3, 7.5, 9999.0):
        observe(DURATION, seconds)
    figures = metrics(client)
    family = DURATION.name
    buckets = [figures[f'{family}_bucket{{le="{bound:g}"}}'] for bound in DURATION.buckets]
    assert buckets == [1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3]
    assert figures[family + '_bucket{le="+Inf"}'] == figures[family + "_count"] == 4
    assert figures[family + "_sum"] == pytest.approx(10006.85)


def test_every_family_is_described_once(client: Client) -> None:
    """Help and type come before the first sample, even for what has not happened yet."""
    lines = client.get("/metrics").content.decode().splitlines()
    names = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(names) == len(set(names))
    assert {family.name for family in FAMILIES} <= set(names)
    assert [line.split()[2] for line in lines if line.startswith("# HELP")] == names


def test_counts_of_several_processes_add_up_and_outlive_them(client: Client) -> None:
    """Each heartbeat publishes new counts; an orderly end publishes the rest."""
    count(OUTPUT_TOKENS, 5)
    announce_process(Announcement(id="one", kind=Process.Kind.WEB))
    announce_process(Announcement(id="one", kind=Process.Kind.WEB))
    count(OUTPUT_TOKENS, 2)
    forget_process("one")
    Counter.objects.create(name=counting.INPUT_TOKENS.name, value=3)  # by another process
    count(counting.INPUT_TOKENS, 4)
    count(counting.DRAFTED_TOKENS, 9)
    count(counting.ACCEPTED_TOKENS, 6)
    assert status(client)["speculation"] == {"drafted_tokens": 9, "accepted_tokens": 6}
    figures = metrics(client)
    assert figures["mlx_responses_accepted_tokens_total"] == 6
    assert (figures[OUTPUT_TOKENS.name], figures[counting.INPUT_TOKENS.name]) == (7, 7)


def test_counts_that_cannot_be_published_are_published_later() -> None:
    """No count is lost while the database is unavailable."""
    count(OUTPUT_TOKENS, 5)
    with patch.object(publishing, "ADD", "INSERT INTO nowhere VALUES (%s, %s)"), pytest.raises(DatabaseError):
        publish_counts()
    count(OUTPUT_TOKENS, 1)
    publish_counts()
    assert Counter.objects.get(name=OUTPUT_TOKENS.name).value == 6


@pytest.mark.django_db(transaction=True)
async def test_requests_are_counted_by_class() -> None:
    """A path never becomes a label."""
    await sync_to_async(ApiUser.make)()
    async with browser() as page:
        for path in ("/v1/models", "/models/x", "/responses/resp_secret", "/v1/whatever", "/healthz", "/admin/login/"):
            await page.get(path)
        await page.post("/responses", json={"input": 1})
        await page.post("/v1/responses", json={"input": 1, "stream": True})
        text = (await page.get("/metrics")).text
    assert "secret" not in text
    assert "whatever" not in text
    lines = [line for line in text.splitlines() if line.startswith("mlx_responses_http_requests_total")]
    name = "mlx_responses_http_requests_total"
    assert sorted(lines) == [
        f'{name}{{route="admin",status="2xx"}} 1.0',
        f'{name}{{route="create",status="4xx"}} 2.0',
        f'{name}{{route="health",status="2xx"}} 1.0',
        f'{name}{{route="models",status="2xx"}} 1.0',
        f'{name}{{route="models",status="4xx"}} 1.0',
        f'{name}{{route="other",status="4xx"}} 1.0',
        f'{name}{{route="responses",status="4xx"}} 1.0',
    ]


def test_no_names_or_content_are_shown(client: Client, user: ApiUser) -> None:
    """Neither of a project, nor of a key, nor text of a response."""
    project = make_project("zebra")
    secret = create_key(project=project, name="giraffe")[1]
    user.turn("an elephant")
    for path in ("/status", "/metrics"):
        text = client.get(path, headers={"x-api-key": secret}).content.decode()
        for word in ("zebra", "giraffe", "elephant", project.public_id, secret[:8], "resp_"):
            assert word not in text
