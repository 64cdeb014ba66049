"""The one place that reads the environment.

Each field of `Environment` declares one variable: its name, type, default, one-sentence help and the shape it belongs
to. The settings, the check of every value, and `docs/settings.md` all come from these declarations.
"""

import difflib
import ipaddress
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from responses_site import setting_kinds as kinds
from responses_site.setting_kinds import (
    ADDRESS,
    BASE_DIR,
    BOOLEAN,
    CORS_ORIGINS,
    DIRECTORY,
    GIB,
    KIB,
    MIB,
    NAMES,
    ORIGINS,
    SECRET,
    SECRETS,
    TEXT,
    Kind,
)

# Read by the Makefile and the tests, not by the server.
TOOL_NAMES = frozenset({"RESPONSES_TEST_STRICT"})

Shape = Literal["both", "team"]

LOCAL_NAMES = (
    "localhost",
    "127.0.0.1",
    "[::1]",
    # How containers on this machine call it: Docker's name, and Podman's.
    "host.docker.internal",
    "host.containers.internal",
)
"""The names of this machine to itself, as the `Host` header spells them."""


class SettingError(Exception):
    """A variable can't be used; the message is one line that names it and says what is allowed."""


@dataclass(frozen=True, slots=True)
class Declaration:
    """What `docs/settings.md` says of one variable."""

    name: str
    kind: Kind
    help: str
    shape: Shape
    default_text: str


def _setting(
    name: str, kind: Kind, default: Any, help: str, *, shape: Shape = "both", default_text: str | None = None
) -> Any:
    """Declares one variable; `default_text` is for the reader where the default is worked out."""
    shown = default_text if default_text is not None else f"`{kind.show(default)}`"
    return field(default=default, metadata={"declaration": Declaration(name, kind, help, shape, shown)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Every setting, checked. `Environment.read(os.environ)` is how the settings get theirs."""

    host: str = _setting("HOST", ADDRESS, "127.0.0.1", "Address that the server binds to.")
    port: int = _setting("PORT", kinds.integer(0, 65535), 8080, "Port that the server binds to; 0 takes a free one.")
    data_dir: Path = _setting(
        "RESPONSES_DATA_DIR",
        DIRECTORY,
        BASE_DIR / ".data",
        "Directory of the database, secrets and models; a relative one is taken from the checkout.",
        default_text="`.data`",
    )
    database_url: str = _setting(
        "DATABASE_URL",
        kinds.url("postgresql", "postgres", "sqlite"),
        "",
        "Database; the team shape needs PostgreSQL.",
        default_text="SQLite in the data directory",
    )
    database_connections: int = _setting(
        "RESPONSES_DATABASE_CONNECTIONS",
        kinds.integer(4),
        16,
        "Connections to PostgreSQL that a process holds at most, two of them for heartbeats alone; all processes "
        "together must fit its max_connections.",
    )
    redis_url: str = _setting(
        "REDIS_URL",
        kinds.url("redis", "rediss"),
        "",
        "Redis that carries events between processes; setting it chooses the team shape.",
        shape="team",
        default_text="none",
    )
    broker_url: str = _setting(
        "RESPONSES_BROKER_URL",
        kinds.url("redis", "rediss", "amqp", "amqps"),
        "",
        "Broker that wakes the workers: Redis or RabbitMQ.",
        shape="team",
        default_text="`REDIS_URL`",
    )
    secret_key: str = _setting(
        "RESPONSES_SECRET_KEY",
        SECRET,
        "",
        "Key that signs sessions; every process of a team has the same, and there it is required.",
        default_text="made once, in `secret.key` in the data directory",
    )
    secret_key_fallbacks: tuple[str, ...] = _setting(
        "RESPONSES_SECRET_KEY_FALLBACKS",
        SECRETS,
        (),
        "Secrets of before: sessions and compacted histories made with them are still read. Remove one when the last "
        "of these is gone.",
        default_text="none",
    )
    allowed_hosts: tuple[str, ...] = _setting(
        "RESPONSES_ALLOWED_HOSTS",
        NAMES,
        (),
        "Host names that requests may ask for.",
        default_text="the loopback names when bound to loopback, else `*`",
    )
    csrf_trusted_origins: tuple[str, ...] = _setting(
        "RESPONSES_CSRF_TRUSTED_ORIGINS",
        ORIGINS,
        (),
        "Origins whose forms the admin accepts, when a proxy changes the host.",
        default_text="none",
    )
    cors_origins: tuple[str, ...] = _setting(
        "RESPONSES_CORS_ORIGINS",
        CORS_ORIGINS,
        (),
        "Origins whose web pages may use the API from a browser; `*` is any.",
        default_text="none",
    )
    behind_tls: bool = _setting(
        "RESPONSES_BEHIND_TLS",
        BOOLEAN,
        False,
        "For a server that only a TLS proxy reaches, which sets X-Forwarded-Proto: secure cookies, HSTS.",
    )
    store_default: bool = _setting(
        "RESPONSES_STORE_DEFAULT", BOOLEAN, True, "Whether a response is stored when the request omits `store`."
    )
    store_ttl_seconds: int = _setting(
        "RESPONSES_STORE_TTL_SECONDS",
        kinds.integer(0),
        2_592_000,
        "How long a stored response is kept after it ended; 0 keeps it for ever.",
    )
    store_max_entries: int | None = _setting(
        "RESPONSES_STORE_MAX_ENTRIES",
        kinds.integer(0),
        None,
        "Most responses that are stored; one more evicts the one that was used longest ago. 0 turns storing off.",
        default_text="none",
    )
    store_max_bytes: int | None = _setting(
        "RESPONSES_STORE_MAX_BYTES",
        kinds.byte_count(0),
        None,
        "Most bytes of stored responses, evicted likewise; 0 evicts each at once. Running ones may take as much again; "
        "one more is answered 429.",
        default_text="none",
    )
    entry_max_bytes: int = _setting(
        "RESPONSES_ENTRY_MAX_BYTES",
        kinds.byte_count(1),
        64 * MIB,
        "Largest stored response, its history included; what is larger is answered 413, or fails when it ends.",
    )
    project_max_entries: int = _setting(
        "RESPONSES_PROJECT_MAX_ENTRIES",
        kinds.integer(0),
        0,
        "Most stored responses of a project, which evicts its own; 0 is no limit.",
    )
    project_max_bytes: int = _setting(
        "RESPONSES_PROJECT_MAX_BYTES",
        kinds.byte_count(0),
        0,
        "Most bytes of a project's stored responses, which evicts its own; 0 is no limit.",
    )
    conversation_store_max_entries: int | None = _setting(
        "RESPONSES_CONVERSATION_STORE_MAX_ENTRIES",
        kinds.integer(0),
        None,
        "Most conversations; one more evicts the one that was used longest ago. 0 turns conversations off.",
        default_text="none",
    )
    conversation_store_max_bytes: int | None = _setting(
        "RESPONSES_CONVERSATION_STORE_MAX_BYTES",
        kinds.byte_count(0),
        None,
        "Most bytes of conversations and their items, evicted likewise; 0 evicts each at once.",
        default_text="none",
    )
    assembly_max_bytes: int = _setting(
        "RESPONSES_ASSEMBLY_MAX_BYTES",
        kinds.byte_count(0),
        64 * MIB,
        "Most bytes of stored histories that a process reads at once; a request beyond is answered 503.",
    )
    isolation: str = _setting(
        "RESPONSES_ISOLATION",
        kinds.choice("project", "key"),
        "project",
        "Who shares responses, conversations and cached prompts: the keys of a project, or nobody but the key itself.",
    )
    conversation_store_ttl_seconds: int = _setting(
        "RESPONSES_CONVERSATION_STORE_TTL_SECONDS",
        kinds.integer(0),
        0,
        "How long a conversation is kept after its last turn; 0 keeps it for ever.",
    )
    body_max_bytes: int = _setting(
        "RESPONSES_BODY_MAX_BYTES",
        kinds.byte_count(1024),
        64 * MIB,
        "Largest request body; a larger one is answered 413.",
    )
    body_max_values: int = _setting(
        "RESPONSES_BODY_MAX_VALUES",
        kinds.integer(1000),
        300_000,
        "Most JSON values in a request body, counted by its commas and opening brackets; more are answered 413.",
    )
    bodies_max_bytes: int = _setting(
        "RESPONSES_BODIES_MAX_BYTES",
        kinds.byte_count(1024),
        256 * MIB,
        "Most bytes of request bodies that a process holds at once; more is answered 503.",
    )
    bodies_max_bytes_per_key: int = _setting(
        "RESPONSES_BODIES_MAX_BYTES_PER_KEY",
        kinds.byte_count(1024),
        128 * MIB,
        "Most of these bytes that one key sends; more is answered 429.",
    )
    read_timeout_seconds: float = _setting(
        "RESPONSES_READ_TIMEOUT_SECONDS",
        kinds.seconds(0, above=True),
        30.0,
        "Longest that the headers of a request take, and each MiB of its body; a slower body is answered 408.",
    )
    max_connections: int = _setting(
        "RESPONSES_MAX_CONNECTIONS",
        kinds.integer(1),
        1024,
        "Most connections that a web process has open; for one more the one that is idle longest is closed, or else it "
        "is answered 503.",
    )
    idle_timeout_seconds: float = _setting(
        "RESPONSES_IDLE_TIMEOUT_SECONDS",
        kinds.seconds(0, above=True),
        75.0,
        "How long a connection without a request is kept; longer than a proxy keeps its own.",
    )
    send_max_bytes: int = _setting(
        "RESPONSES_SEND_MAX_BYTES",
        kinds.byte_count(1024),
        256 * MIB,
        "Most bytes that a web process holds for readers that have not taken them; beyond, the readers for whom most "
        "is held are cut off.",
    )
    echo_max_bytes: int = _setting(
        "RESPONSES_ECHO_MAX_BYTES",
        kinds.byte_count(1024),
        4 * MIB,
        "Largest response object without its output: instructions, tools and settings, which a stream repeats in each "
        "event on the response; a larger one is answered 413.",
    )
    hosted_tools: str = _setting(
        "RESPONSES_HOSTED_TOOLS",
        kinds.choice("ignore", "reject"),
        "ignore",
        "What becomes of tools that a server would run, such as web_search: echoed and not shown to the model, or 400.",
    )
    schema_max_bytes: int = _setting(
        "RESPONSES_SCHEMA_MAX_BYTES",
        kinds.byte_count(1),
        64 * KIB,
        "Largest JSON Schema of a format or a tool, and largest grammar of a tool; a larger one is answered 400.",
    )
    schema_max_nodes: int = _setting(
        "RESPONSES_SCHEMA_MAX_NODES", kinds.integer(1), 512, "Most subschemas of a schema; one more is answered 400."
    )
    schema_max_depth: int = _setting(
        "RESPONSES_SCHEMA_MAX_DEPTH",
        kinds.integer(1, 100),
        24,
        "Most levels of subschemas in each other; one more is answered 400.",
    )
    validation_max_nodes: int = _setting(
        "RESPONSES_VALIDATION_MAX_NODES",
        kinds.integer(1),
        65_536,
        "Most values in a structured answer; one with more fails.",
    )
    validation_max_depth: int = _setting(
        "RESPONSES_VALIDATION_MAX_DEPTH",
        kinds.integer(1, 900),
        32,
        "Most levels of values in a structured answer; one with more fails.",
    )
    validation_seconds: float = _setting(
        "RESPONSES_VALIDATION_SECONDS",
        kinds.seconds(0, above=True),
        1.0,
        "Longest that the last check of a structured answer takes; then it fails.",
    )
    max_queue: int = _setting(
        "RESPONSES_MAX_QUEUE",
        kinds.integer(1),
        256,
        "Most foreground responses that wait for a worker; one more is answered 503. A key has at most three times the "
        "places that it leaves free: one more of it is answered 429.",
    )
    queue_max_bytes: int = _setting(
        "RESPONSES_QUEUE_MAX_BYTES",
        kinds.byte_count(1),
        512 * MIB,
        "Most bytes of foreground requests that wait or run; more are answered 503. A key has at most three times the "
        "bytes that it leaves free: more of it are answered 429.",
    )
    background_max_jobs: int = _setting(
        "RESPONSES_BACKGROUND_MAX_JOBS",
        kinds.integer(0),
        64,
        "Most background jobs that wait or run; one more is answered 429. 0 turns background jobs off (400).",
    )
    background_max_jobs_per_key: int = _setting(
        "RESPONSES_BACKGROUND_MAX_JOBS_PER_KEY",
        kinds.integer(0),
        0,
        "Most background jobs of a key that wait or run; one more is answered 429. 0 is no limit.",
    )
    background_timeout_seconds: float = _setting(
        "RESPONSES_BACKGROUND_TIMEOUT_SECONDS",
        kinds.seconds(0),
        0.0,
        "Longest that a background job may take from its admission on; then it fails. 0 is no limit.",
    )
    background_input_max_bytes: int = _setting(
        "RESPONSES_BACKGROUND_INPUT_MAX_BYTES",
        kinds.byte_count(1),
        2 * MIB,
        "Largest request of a background job; a larger one is answered 413.",
    )
    background_ephemeral_ttl_seconds: int = _setting(
        "RESPONSES_BACKGROUND_EPHEMERAL_TTL_SECONDS",
        kinds.integer(1),
        600,
        "How long the end of a background job with `store: false` can be read.",
    )
    background_requires_store: bool = _setting(
        "RESPONSES_BACKGROUND_REQUIRES_STORE",
        BOOLEAN,
        False,
        "Whether a background job with `store: false` is refused (400).",
    )
    event_ttl_seconds: int = _setting(
        "RESPONSES_EVENT_TTL_SECONDS",
        kinds.integer(0),
        900,
        "How long the events of a background job can be streamed again after it ended; then it is answered 409.",
    )
    events_max_count: int = _setting(
        "RESPONSES_EVENTS_MAX_COUNT",
        kinds.integer(1),
        65_536,
        "Most events of a background job that can be streamed again; an older `starting_after` is answered 410.",
    )
    events_max_bytes: int = _setting(
        "RESPONSES_EVENTS_MAX_BYTES",
        kinds.byte_count(4096),
        64 * MIB,
        "Most bytes of these events, likewise. A job with one event that is larger fails.",
    )
    stream_readers: int = _setting(
        "RESPONSES_STREAM_READERS",
        kinds.integer(1),
        32,
        "Most readers of background jobs' streams in a web process; one more is answered 429.",
    )
    stream_readers_per_key: int = _setting(
        "RESPONSES_STREAM_READERS_PER_KEY",
        kinds.integer(1),
        8,
        "Most such readers of one key in a web process; one more is answered 429.",
    )
    default_model: str = _setting(
        "RESPONSES_DEFAULT_MODEL", TEXT, "smollm2-135m", "Model for requests that name none; a name or an alias."
    )
    models: tuple[str, ...] = _setting(
        "RESPONSES_MODELS",
        NAMES,
        (),
        "Models that a worker serves.",
        default_text="all in the data directory",
    )
    engine: str = _setting(
        "RESPONSES_ENGINE",
        kinds.choice("mlx", "scripted"),
        "mlx",
        "What generates: the models on MLX, or a script for tests.",
    )
    scripted_token_seconds: float = _setting(
        "RESPONSES_SCRIPTED_TOKEN_SECONDS", kinds.seconds(0), 0.0, "Time that the scripted engine takes for a token."
    )
    batch_size: int = _setting(
        "RESPONSES_BATCH_SIZE", kinds.integer(1, 4096), 32, "Most sequences that a model generates at once."
    )
    prefill_step: int = _setting(
        "RESPONSES_PREFILL_STEP",
        kinds.integer(1, 65536),
        256,
        "Prompt tokens read in one step; running streams wait for a step to end.",
    )
    claim_ahead: int = _setting(
        "RESPONSES_CLAIM_AHEAD",
        kinds.integer(0),
        512,
        "Responses that a worker takes on beyond those that it generates.",
    )
    prompt_cache_max_bytes: int = _setting(
        "RESPONSES_PROMPT_CACHE_MAX_BYTES",
        kinds.byte_count(0),
        2 * GIB,
        "Memory for prompt prefixes kept for reuse; 0 keeps none.",
    )
    reasoning_echo_max_bytes: int = _setting(
        "RESPONSES_REASONING_ECHO_MAX_BYTES",
        kinds.byte_count(0),
        16 * MIB,
        "Memory for what models thought, for clients that send a turn back without it; 0 keeps none.",
    )
    lease_seconds: float = _setting(
        "RESPONSES_LEASE_SECONDS",
        kinds.seconds(0, above=True),
        6.0,
        "How long a silent worker holds a response before another may take it.",
    )
    grace_seconds: float = _setting(
        "RESPONSES_GRACE_SECONDS",
        kinds.seconds(0),
        5.0,
        "How long foreground responses may go on when the server is told to stop; background jobs are handed over.",
    )
    sweep_seconds: float = _setting(
        "RESPONSES_SWEEP_SECONDS",
        kinds.seconds(0, above=True),
        60.0,
        "How often expired responses are looked for.",
    )
    keepalive_seconds: float = _setting(
        "RESPONSES_KEEPALIVE_SECONDS",
        kinds.seconds(0, above=True),
        15.0,
        "Silence after which a stream sends a comment.",
    )
    stream_write_timeout_seconds: float = _setting(
        "RESPONSES_STREAM_WRITE_TIMEOUT_SECONDS",
        kinds.seconds(0, above=True),
        5.0,
        "How long a reader that takes nothing keeps its connection.",
    )
    foreground_timeout_seconds: float = _setting(
        "RESPONSES_FOREGROUND_TIMEOUT_SECONDS",
        kinds.seconds(0),
        0.0,
        "Longest that a foreground response runs; 0 is no limit.",
    )
    log_level: str = _setting(
        "RESPONSES_LOG_LEVEL",
        kinds.choice("debug", "info", "warning", "error"),
        "info",
        "Least severe message that is logged.",
    )
    log_format: str = _setting(
        "RESPONSES_LOG_FORMAT",
        kinds.choice("console", "json"),
        "console",
        "Form of a log line: for people or for programs.",
    )

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> "Environment":
        """The settings that `environ` gives; empty values count as unset. Raises `SettingError`."""
        values: dict[str, Any] = {}
        for attribute, declaration in _declarations():
            text = environ.get(declaration.name, "").strip()
            if text:
                values[attribute] = _parse(declaration, text)
        environment = cls(**values)
        environment._check_shape()
        return environment

    def _check_shape(self) -> None:
        if not self.team:
            return
        if not self.redis_url:
            raise SettingError("REDIS_URL is missing: it is required when RESPONSES_BROKER_URL is set.")
        if not self.postgresql:
            raise SettingError("DATABASE_URL must be a postgresql:// URL when REDIS_URL is set (the team shape).")
        if not self.secret_key:
            raise SettingError(
                f"RESPONSES_SECRET_KEY is missing: the team shape (REDIS_URL is set) needs {SECRET.allowed}, "
                "the same for every process."
            )

    @property
    def team(self) -> bool:
        """Whether web and worker processes are apart, and so need a broker between them."""
        return bool(self.redis_url or self.broker_url)

    @property
    def postgresql(self) -> bool:
        return self.database_url.startswith(("postgresql:", "postgres:"))

    @property
    def open_access(self) -> bool:
        """Whether requests may do without a key while none was ever made: only this machine can send any."""
        names_are_local = all(name.lower() in LOCAL_NAMES for name in self.allowed_hosts)
        return self.bound_to_loopback and names_are_local and not self.behind_tls and not self.team

    @property
    def bound_to_loopback(self) -> bool:
        """Whether only this machine can reach the server."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host.lower() == "localhost"


def _declarations() -> list[tuple[str, Declaration]]:
    found: list[Field[Any]] = list(fields(Environment))
    return [(item.name, item.metadata["declaration"]) for item in found]


def _parse(declaration: Declaration, text: str) -> Any:
    try:
        return declaration.kind.parse(text)
    except kinds.Invalid:
        given = "" if declaration.kind.secret else f", not {text!r}"
        raise SettingError(f"{declaration.name} must be {declaration.kind.allowed}{given}.") from None


def declarations() -> list[Declaration]:
    """Every variable, in the order of the documentation."""
    return [declaration for _, declaration in _declarations()]


def unknown_names(environ: Mapping[str, str]) -> list[str]:
    """One sentence for each `RESPONSES_` variable that is no setting, with the name that was probably meant."""
    known = {declaration.name for declaration in declarations()}
    sentences = []
    for name in sorted(environ):
        if not name.startswith("RESPONSES_") or name in known or name in TOOL_NAMES:
            continue
        close = difflib.get_close_matches(name, known, n=1)
        sentences.append(f"{name} is no setting" + (f"; did you mean {close[0]}?" if close else "."))
    return sentences
