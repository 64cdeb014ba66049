"""The broker of the embedded shape: messages wake the worker."""

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from kombu import Connection, Queue

from responses_site.memory_broker import SCHEME


@pytest.fixture
def broker() -> Iterator[tuple[Connection, Queue]]:
    queue = Queue("test-memory-broker", routing_key="test-memory-broker")
    with Connection(f"{SCHEME}://localhost") as connection:
        yield connection, queue


def test_a_message_arrives_from_another_thread(broker: tuple[Connection, Queue]) -> None:
    connection, queue = broker
    received: list[Any] = []
    with connection.Consumer(queue, on_message=lambda message: received.append(message.payload), no_ack=True):
        sender = threading.Timer(0.1, connection.clone().SimpleQueue(queue.name).put, args=["work"])
        sender.start()
        connection.drain_events(timeout=30)
        sender.join()
    assert received == ["work"]


def test_messages_of_many_threads_all_arrive(broker: tuple[Connection, Queue]) -> None:
    connection, queue = broker
    received: list[Any] = []

    def send(first: int) -> None:
        with connection.clone() as own:
            producer = own.Producer()
            for number in range(first, first + 100):
                producer.publish(number, routing_key=queue.routing_key, declare=[queue])

    with connection.Consumer(queue, on_message=lambda message: received.append(message.payload), no_ack=True):
        senders = [threading.Thread(target=send, args=(100 * number,)) for number in range(4)]
        for sender in senders:
            sender.start()
        while len(received) < 400:
            connection.drain_events(timeout=30)
        for sender in senders:
            sender.join()
    assert sorted(received) == list(range(400))


def test_a_wait_without_messages_times_out(broker: tuple[Connection, Queue]) -> None:
    connection, queue = broker
    started = time.monotonic()
    with connection.Consumer(queue), pytest.raises(TimeoutError):
        connection.drain_events(timeout=0.2)
    assert time.monotonic() - started >= 0.2
