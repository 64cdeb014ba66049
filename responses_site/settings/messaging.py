"""Messages between processes: the channel layer transports events, Celery's broker wakes workers."""

from typing import Any

from responses_site import memory_broker
from responses_site.env import Environment

QUEUE = "responses"
# A Redis that doesn't answer counts as unavailable: requests get a 503 instead of waiting for it.
REDIS_TIMEOUTS = {"socket_connect_timeout": 2, "socket_timeout": 10}


def channel_layers(environment: Environment) -> dict[str, dict[str, Any]]:
    """Channels' `CHANNEL_LAYERS`."""
    if environment.team:
        layer = {
            "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
            "CONFIG": {"hosts": [{"address": environment.redis_url, **REDIS_TIMEOUTS}], "prefix": "responses"},
        }
    else:
        layer = {"BACKEND": "responses_api.bus.memory.ThreadSafeChannelLayer"}
    return {"default": layer}


def broker_url(environment: Environment) -> str:
    """Celery's broker: in memory for one process."""
    return environment.broker_url or environment.redis_url or f"{memory_broker.SCHEME}://localhost"


def broker_transport_options(environment: Environment) -> dict[str, Any]:
    """The timeouts after which a broker counts as unavailable."""
    url = broker_url(environment)
    if url.startswith(memory_broker.SCHEME):
        return {}
    if url.startswith("redis"):
        # One failed attempt is enough to answer 503.
        return {**REDIS_TIMEOUTS, "retry_on_timeout": False}
    return {"connect_timeout": 2}
