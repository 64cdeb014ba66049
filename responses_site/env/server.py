"""The server's address, access to it, its database and its brokers."""

from dataclasses import dataclass
from pathlib import Path

from responses_site import setting_kinds as kinds
from responses_site.setting_kinds import (
    ADDRESS,
    BASE_DIR,
    BOOLEAN,
    CORS_ORIGINS,
    DIRECTORY,
    NAMES,
    ORIGINS,
    SECRET,
    SECRETS,
)

from .declaration import setting


@dataclass(frozen=True, kw_only=True)
class ServerSettings:
    """The server's address, access to it, its database and its brokers."""

    host: str = setting("HOST", ADDRESS, "127.0.0.1", "Address that the server binds to.")
    port: int = setting("PORT", kinds.integer(0, 65535), 8080, "Port that the server binds to; 0 takes a free one.")
    data_dir: Path = setting(
        "RESPONSES_DATA_DIR",
        DIRECTORY,
        BASE_DIR / ".data",
        "Directory of the database, secrets and models; a relative path is relative to the checkout.",
        default_text="`.data`",
    )
    database_url: str = setting(
        "DATABASE_URL",
        kinds.url("postgresql", "postgres", "sqlite"),
        "",
        "Database; the team shape needs PostgreSQL.",
        default_text="SQLite in the data directory",
        becomes="DATABASES",
    )
    database_connections: int = setting(
        "RESPONSES_DATABASE_CONNECTIONS",
        kinds.integer(4),
        16,
        "Maximum number of connections to PostgreSQL per process, two of them for heartbeats only; all processes "
        "together must stay within its max_connections.",
        becomes="DATABASES",
    )
    redis_url: str = setting(
        "REDIS_URL",
        kinds.url("redis", "rediss"),
        "",
        "Redis server that carries events between processes; setting it selects the team shape.",
        shape="team",
        default_text="none",
        becomes="CHANNEL_LAYERS",
    )
    broker_url: str = setting(
        "RESPONSES_BROKER_URL",
        kinds.url("redis", "rediss", "amqp", "amqps"),
        "",
        "Broker that wakes the workers: Redis or RabbitMQ.",
        shape="team",
        default_text="`REDIS_URL`",
        becomes="CELERY_BROKER_URL",
    )
    secret_key: str = setting(
        "RESPONSES_SECRET_KEY",
        SECRET,
        "",
        "Key that signs sessions and encrypts compacted histories; required in a team, where every process needs the "
        "same one.",
        default_text="generated once, into `secret.key` in the data directory",
        becomes="SECRET_KEY",
    )
    secret_key_fallbacks: tuple[str, ...] = setting(
        "RESPONSES_SECRET_KEY_FALLBACKS",
        SECRETS,
        (),
        "Earlier secrets: sessions and compacted histories that were made with them can still be read. Remove a "
        "secret when none of these are left.",
        default_text="none",
        becomes="SECRET_KEY_FALLBACKS",
    )
    allowed_hosts: tuple[str, ...] = setting(
        "RESPONSES_ALLOWED_HOSTS",
        NAMES,
        (),
        "Host names that requests may use.",
        default_text="the loopback names when bound to loopback, else `*`",
        becomes="ALLOWED_HOSTS",
    )
    csrf_trusted_origins: tuple[str, ...] = setting(
        "RESPONSES_CSRF_TRUSTED_ORIGINS",
        ORIGINS,
        (),
        "Origins whose forms the admin accepts, if a proxy changes the host.",
        default_text="none",
        becomes="CSRF_TRUSTED_ORIGINS",
    )
    cors_origins: tuple[str, ...] = setting(
        "RESPONSES_CORS_ORIGINS",
        CORS_ORIGINS,
        (),
        "Origins whose web pages may use the API from a browser; `*` allows any.",
        default_text="none",
    )
    chat: bool = setting(
        "RESPONSES_CHAT", BOOLEAN, True, "Whether `POST /chat/completions` is served; without it, it is answered 404."
    )
    chat_reasoning_field: str = setting(
        "RESPONSES_CHAT_REASONING_FIELD",
        kinds.choice("reasoning_content", "reasoning", "both", "none"),
        "reasoning_content",
        "The field of a chat completion that has the model's reasoning: clients expect either name.",
    )
    behind_tls: bool = setting(
        "RESPONSES_BEHIND_TLS",
        BOOLEAN,
        False,
        "Set it for a server that can only be reached through a TLS proxy that sets X-Forwarded-Proto: secure "
        "cookies, HSTS.",
    )
