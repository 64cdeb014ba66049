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
        "How long a silent worker keeps a response before another worker may claim it.",
    )
    grace_seconds: float = setting(
        "RESPONSES_GRACE_SECONDS",
        kinds.seconds(0),
        5.0,
        "How long foreground responses may continue when the server is stopped; background jobs are released for "
        "other workers.",
    )
    sweep_seconds: float = setting(
        "RESPONSES_SWEEP_SECONDS",
        kinds.seconds(0, above=True),
        60.0,
        "Interval between searches for expired responses.",
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
        "How long a reader that doesn't read stays connected.",
    )
    foreground_timeout_seconds: float = setting(
        "RESPONSES_FOREGROUND_TIMEOUT_SECONDS",
        kinds.seconds(0),
        0.0,
        "Maximum time of a foreground response; 0 means no limit.",
    )
    log_level: str = setting(
        "RESPONSES_LOG_LEVEL",
        kinds.choice("debug", "info", "warning", "error"),
        "info",
        "Lowest severity that is logged.",
    )
    log_format: str = setting(
        "RESPONSES_LOG_FORMAT",
        kinds.choice("console", "json"),
        "console",
        "Format of log lines: for people or for programs.",
    )
