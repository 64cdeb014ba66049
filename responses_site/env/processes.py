"""Timeouts between processes and for clients, and logging."""

from dataclasses import dataclass

from responses_site import setting_kinds as kinds

from .declaration import setting


@dataclass(frozen=True, kw_only=True)
class ProcessSettings:
    """Timeouts between processes and for clients, and logging."""

    lease_seconds: float = setting(
        "RESPONSES_LEASE_SECONDS",
        kinds.seconds(0, above=True),
        6.0,
        "How long a silent worker holds a response before another may take it.",
    )
    grace_seconds: float = setting(
        "RESPONSES_GRACE_SECONDS",
        kinds.seconds(0),
        5.0,
        "How long foreground responses may go on when the server is told to stop; background jobs are handed over.",
    )
    sweep_seconds: float = setting(
        "RESPONSES_SWEEP_SECONDS",
        kinds.seconds(0, above=True),
        60.0,
        "How often expired responses are looked for.",
    )
    keepalive_seconds: float = setting(
        "RESPONSES_KEEPALIVE_SECONDS",
        kinds.seconds(0, above=True),
        15.0,
        "Silence after which a stream sends a comment.",
    )
    stream_write_timeout_seconds: float = setting(
        "RESPONSES_STREAM_WRITE_TIMEOUT_SECONDS",
        kinds.seconds(0, above=True),
        5.0,
        "How long a reader that takes nothing keeps its connection.",
    )
    foreground_timeout_seconds: float = setting(
        "RESPONSES_FOREGROUND_TIMEOUT_SECONDS",
        kinds.seconds(0),
        0.0,
        "Longest that a foreground response runs; 0 is no limit.",
    )
    log_level: str = setting(
        "RESPONSES_LOG_LEVEL",
        kinds.choice("debug", "info", "warning", "error"),
        "info",
        "Least severe message that is logged.",
    )
    log_format: str = setting(
        "RESPONSES_LOG_FORMAT",
        kinds.choice("console", "json"),
        "console",
        "Form of a log line: for people or for programs.",
    )
