"""Limits on waiting and running requests, and on background jobs and their event logs."""

from dataclasses import dataclass

from responses_site import setting_kinds as kinds
from responses_site.setting_kinds import BOOLEAN, MIB

from .declaration import setting


@dataclass(frozen=True, kw_only=True)
class JobSettings:
    """Limits on waiting and running requests, and on background jobs and their event logs."""

    max_queue: int = setting(
        "RESPONSES_MAX_QUEUE",
        kinds.integer(1),
        256,
        "Maximum number of foreground responses that wait for a worker; one more is answered 503. A key may have at "
        "most three times the places that it leaves free; one more of that key is answered 429.",
    )
    queue_max_bytes: int = setting(
        "RESPONSES_QUEUE_MAX_BYTES",
        kinds.byte_count(1),
        512 * MIB,
        "Maximum bytes of foreground requests that wait or run; more are answered 503. A key may have at most three "
        "times the bytes that it leaves free; more of that key are answered 429.",
    )
    background_max_jobs: int = setting(
        "RESPONSES_BACKGROUND_MAX_JOBS",
        kinds.integer(0),
        64,
        "Maximum number of background jobs that wait or run; one more is answered 429. 0 turns background jobs off "
        "(400).",
    )
    background_max_jobs_per_key: int = setting(
        "RESPONSES_BACKGROUND_MAX_JOBS_PER_KEY",
        kinds.integer(0),
        0,
        "Maximum number of background jobs per key that wait or run; one more is answered 429. 0 means no limit.",
    )
    background_timeout_seconds: float = setting(
        "RESPONSES_BACKGROUND_TIMEOUT_SECONDS",
        kinds.seconds(0),
        0.0,
        "Maximum time of a background job from its admission on; after it, the job fails. 0 means no limit.",
    )
    background_input_max_bytes: int = setting(
        "RESPONSES_BACKGROUND_INPUT_MAX_BYTES",
        kinds.byte_count(1),
        2 * MIB,
        "Maximum size of a background job's request; a larger one is answered 413.",
    )
    background_ephemeral_ttl_seconds: int = setting(
        "RESPONSES_BACKGROUND_EPHEMERAL_TTL_SECONDS",
        kinds.integer(1),
        600,
        "How long the result of a background job with `store: false` can be read.",
    )
    background_requires_store: bool = setting(
        "RESPONSES_BACKGROUND_REQUIRES_STORE",
        BOOLEAN,
        False,
        "Whether a background job with `store: false` is refused (400).",
    )
    event_ttl_seconds: int = setting(
        "RESPONSES_EVENT_TTL_SECONDS",
        kinds.integer(0),
        900,
        "How long the events of a background job can be streamed again after its end; later requests are answered 409.",
    )
    events_max_count: int = setting(
        "RESPONSES_EVENTS_MAX_COUNT",
        kinds.integer(1),
        65_536,
        "Maximum number of events of a background job that can be streamed again; an older `starting_after` is "
        "answered 410.",
    )
    events_max_bytes: int = setting(
        "RESPONSES_EVENTS_MAX_BYTES",
        kinds.byte_count(4096),
        64 * MIB,
        "Maximum bytes of these events, likewise. A job with a single larger event fails.",
    )
    stream_readers: int = setting(
        "RESPONSES_STREAM_READERS",
        kinds.integer(1),
        32,
        "Maximum number of readers of background jobs' streams per web process; one more is answered 429.",
    )
    stream_readers_per_key: int = setting(
        "RESPONSES_STREAM_READERS_PER_KEY",
        kinds.integer(1),
        8,
        "Maximum number of such readers per key and web process; one more is answered 429.",
    )
