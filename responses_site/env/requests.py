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
        "Largest request body; a larger one is answered 413.",
    )
    body_max_values: int = setting(
        "RESPONSES_BODY_MAX_VALUES",
        kinds.integer(1000),
        300_000,
        "Most JSON values in a request body, counted by its commas and opening brackets; more are answered 413.",
    )
    bodies_max_bytes: int = setting(
        "RESPONSES_BODIES_MAX_BYTES",
        kinds.byte_count(1024),
        256 * MIB,
        "Most bytes of request bodies that a process holds at once; more is answered 503.",
    )
    bodies_max_bytes_per_key: int = setting(
        "RESPONSES_BODIES_MAX_BYTES_PER_KEY",
        kinds.byte_count(1024),
        128 * MIB,
        "Most of these bytes that one key sends; more is answered 429.",
    )
    read_timeout_seconds: float = setting(
        "RESPONSES_READ_TIMEOUT_SECONDS",
        kinds.seconds(0, above=True),
        30.0,
        "Longest that the headers of a request take, and each MiB of its body; a slower body is answered 408.",
    )
    max_connections: int = setting(
        "RESPONSES_MAX_CONNECTIONS",
        kinds.integer(1),
        1024,
        "Most connections that a web process has open; for one more the one that is idle longest is closed, or else it "
        "is answered 503.",
    )
    idle_timeout_seconds: float = setting(
        "RESPONSES_IDLE_TIMEOUT_SECONDS",
        kinds.seconds(0, above=True),
        75.0,
        "How long a connection without a request is kept; longer than a proxy keeps its own.",
    )
    send_max_bytes: int = setting(
        "RESPONSES_SEND_MAX_BYTES",
        kinds.byte_count(1024),
        256 * MIB,
        "Most bytes that a web process holds for readers that have not taken them; beyond, the readers for whom most "
        "is held are cut off.",
    )
    echo_max_bytes: int = setting(
        "RESPONSES_ECHO_MAX_BYTES",
        kinds.byte_count(1024),
        4 * MIB,
        "Largest response object without its output: instructions, tools and settings, which a stream repeats in each "
        "event on the response; a larger one is answered 413.",
    )
    hosted_tools: str = setting(
        "RESPONSES_HOSTED_TOOLS",
        kinds.choice("ignore", "reject"),
        "ignore",
        "What becomes of tools that a server would run, such as web_search: echoed and not shown to the model, or 400.",
    )
    schema_max_bytes: int = setting(
        "RESPONSES_SCHEMA_MAX_BYTES",
        kinds.byte_count(1),
        64 * KIB,
        "Largest JSON Schema of a format or a tool, and largest grammar of a tool; a larger one is answered 400.",
    )
    schema_max_nodes: int = setting(
        "RESPONSES_SCHEMA_MAX_NODES", kinds.integer(1), 512, "Most subschemas of a schema; one more is answered 400."
    )
    schema_max_depth: int = setting(
        "RESPONSES_SCHEMA_MAX_DEPTH",
        kinds.integer(1, 100),
        24,
        "Most levels of subschemas in each other; one more is answered 400.",
    )
    validation_max_nodes: int = setting(
        "RESPONSES_VALIDATION_MAX_NODES",
        kinds.integer(1),
        65_536,
        "Most values in a structured answer; one with more fails.",
    )
    validation_max_depth: int = setting(
        "RESPONSES_VALIDATION_MAX_DEPTH",
        kinds.integer(1, 900),
        32,
        "Most levels of values in a structured answer; one with more fails.",
    )
    validation_seconds: float = setting(
        "RESPONSES_VALIDATION_SECONDS",
        kinds.seconds(0, above=True),
        1.0,
        "Longest that the last check of a structured answer takes; then it fails.",
    )
