"""A worker with the scripted engine, and a record of all published messages."""

from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import pytest

from responses_api import bus
from responses_api.bus.messages import Bundle, Message
from responses_api.selectors.models import forget_live_workers
from responses_api.worker.hosting import ModelHost
from responses_api.worker.runtime.pump import ChunkQueue
from responses_api.worker.runtime.worker import GenerationWorker

from .rows import Sent


@pytest.fixture
def sent() -> Iterator[Sent]:
    """All messages that are published, taken out of their bundles."""
    messages: Sent = []

    def record(group: str, message: Message) -> None:
        messages.extend(message.messages if isinstance(message, Bundle) else [(group, message)])

    with patch.object(bus, "publish", record):
        yield messages


@pytest.fixture
def chunks() -> ChunkQueue:
    return ChunkQueue()


@pytest.fixture
def host(settings: Any, chunks: ChunkQueue) -> Iterator[ModelHost]:
    """The scripted model, loaded."""
    settings.RESPONSES_ENGINE = "scripted"
    settings.RESPONSES_LEASE_SECONDS = 1.5
    host = ModelHost(chunks.put)
    host.scan()
    host.load_default()
    yield host
    host.close()


@pytest.fixture
def worker(host: ModelHost, chunks: ChunkQueue) -> Iterator[GenerationWorker]:
    """A running worker."""
    worker = GenerationWorker(host, chunks)
    worker.start()
    forget_live_workers()
    yield worker
    worker.stop()
