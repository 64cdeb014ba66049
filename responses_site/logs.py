"""Logging: structlog on top of the standard library, with one format for both.

The handler of a request binds `request_id` with `structlog.contextvars`, so that all lines of the request contain it.
"""

import logging
import logging.config
import sys
from typing import Any

import structlog
from structlog.typing import Processor

# These log too much below warning level, or a line per connection.
QUIET_LOGGERS = ("twisted", "daphne", "celery", "kombu", "amqp", "asyncio", "httpx", "httpcore", "urllib3", "filelock")

SHARED_PROCESSORS: list[Processor] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]


def logging_config(*, level: str, form: str) -> dict[str, Any]:
    """Django's `LOGGING`: everything to stderr, as text (`console`) or as JSON objects (`json`)."""
    render: list[Processor] = [structlog.stdlib.ProcessorFormatter.remove_processors_meta]
    if form == "json":
        render += [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    else:
        colors = sys.stderr.isatty()
        render += [structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=structlog.dev.plain_traceback)]
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "filters": {"unforeseen": {"()": lambda: is_unforeseen}},
        "formatters": {
            "line": {
                "()": structlog.stdlib.ProcessorFormatter,
                "foreign_pre_chain": [*SHARED_PROCESSORS, structlog.stdlib.ExtraAdder()],
                "processors": render,
            }
        },
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
        "root": {"handlers": ["stderr"], "level": level.upper()},
        "loggers": {
            # Django's own handlers would print each line a second time.
            "django": {"handlers": [], "level": "INFO", "propagate": True},
            "django.request": {"level": "ERROR", "filters": ["unforeseen"]},
            **{name: {"level": "WARNING"} for name in QUIET_LOGGERS},
        },
    }


def is_unforeseen(record: logging.LogRecord) -> bool:
    """Whether Django reports an exception, not only a status: the API logs the causes of its own 5xx responses."""
    return record.exc_info is not None and record.exc_info[0] is not None


def configure(config: dict[str, Any]) -> None:
    """Configure logging. Django calls this with `LOGGING` when it starts (`LOGGING_CONFIG`)."""
    logging.config.dictConfig(config)
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *SHARED_PROCESSORS,
            structlog.stdlib.PositionalArgumentsFormatter(),
            structlog.processors.StackInfoRenderer(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
