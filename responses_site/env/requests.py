"""Limits on requests, connections and responses."""

from dataclasses import dataclass

from responses_site import setting_kinds as kinds
from responses_site.setting_kinds import KIB, MIB

from .declaration import setting


@dataclass(frozen=True, kw_only=True)
class RequestSettings:
    """Limits on requests, connections and responses."""

    body_max_bytes: int = setting(
        "RESPONSES_BODY_MAX_BYTES",
        kinds.byte_count(1024),
        64 * MIB,
        "Maximum size of a request body; a larger one is answered 413.",
    )
    body_max_values: int = setting(
        "RESPONSES_BODY_MAX_VALUES",
        kinds.integer(1000),
        300_000,
        "Maximum number of JSON values in a request body, counted by commas and opening brackets; more are answered "
        "413.",
    )
    bodies_max_bytes: int = setting(
        "RESPONSES_BODIES_MAX_BYTES",
        kinds.byte_count(1024),
        256 * MIB,
        "Maximum bytes of request bodies that a process holds at the same time; a body beyond is answered 503.",
    )
    bodies_max_bytes_per_key: int = setting(
        "RESPONSES_BODIES_MAX_BYTES_PER_KEY",
        kinds.byte_count(1024),
        128 * MIB,
        "Maximum bytes of these bodies per key; a body beyond is answered 429.",
    )
    read_timeout_seconds: float = setting(
        "RESPONSES_READ_TIMEOUT_SECONDS",
        kinds.seconds(0, above=True),
        30.0,
        "Maximum time for the headers of a request, and for each MiB of its body; a slower body is answered 408.",
    )
    max_connections: int = setting(
        "RESPONSES_MAX_CONNECTIONS",
        kinds.integer(1),
        1024,
        "Maximum number of open connections per web process. For a new connection beyond it, the one that has been "
        "idle longest is closed; if none is idle, the new one is answered 503.",
    )
    idle_timeout_seconds: float = setting(
        "RESPONSES_IDLE_TIMEOUT_SECONDS",
        kinds.seconds(0, above=True),
        75.0,
        "How long a connection without a request stays open; should be longer than a proxy's timeout.",
    )
    send_max_bytes: int = setting(
        "RESPONSES_SEND_MAX_BYTES",
        kinds.byte_count(1024),
        256 * MIB,
        "Maximum bytes that a web process buffers for readers that don't read; beyond it, the readers with the most "
        "buffered bytes are disconnected.",
    )
    echo_max_bytes: int = setting(
        "RESPONSES_ECHO_MAX_BYTES",
        kinds.byte_count(1024),
        4 * MIB,
        "Maximum size of a response object without its output: instructions, tools and settings, which a stream "
        "repeats in each event with the response; a larger one is answered 413.",
    )
    hosted_tools: str = setting(
        "RESPONSES_HOSTED_TOOLS",
        kinds.choice("ignore", "reject"),
        "ignore",
        "What happens to tools that a server would run, such as web_search: echoed but not shown to the model, or "
        "answered 400.",
    )
    schema_max_bytes: int = setting(
        "RESPONSES_SCHEMA_MAX_BYTES",
        kinds.byte_count(1),
        64 * KIB,
        "Maximum size of a JSON Schema of a format or a tool, and of a tool's grammar; a larger one is answered 400.",
    )
    schema_max_nodes: int = setting(
        "RESPONSES_SCHEMA_MAX_NODES",
        kinds.integer(1),
        512,
        "Maximum number of subschemas of a schema; more are answered 400.",
    )
    schema_max_depth: int = setting(
        "RESPONSES_SCHEMA_MAX_DEPTH",
        kinds.integer(1, 100),
        24,
        "Maximum nesting depth of subschemas; a deeper schema is answered 400.",
    )
    validation_max_nodes: int = setting(
        "RESPONSES_VALIDATION_MAX_NODES",
        kinds.integer(1),
        65_536,
        "Maximum number of values in a structured answer; an answer with more fails.",
    )
    validation_max_depth: int = setting(
        "RESPONSES_VALIDATION_MAX_DEPTH",
        kinds.integer(1, 900),
        32,
        "Maximum nesting depth of values in a structured answer; a deeper answer fails.",
    )
    validation_seconds: float = setting(
        "RESPONSES_VALIDATION_SECONDS",
        kinds.seconds(0, above=True),
        1.0,
        "Maximum time for the final check of a structured answer; after it, the answer fails.",
    )
