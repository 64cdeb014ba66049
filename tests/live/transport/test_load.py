"""Many requests at once."""

import asyncio

from tests.live.server import LiveServer
from tests.perf.latency import JSON_REQUESTS, STREAMS, read_answer


def test_many_requests_and_streams_at_once_all_succeed(server: LiveServer) -> None:
    """200 waiting JSON requests and 64 open streams, spread over the web processes: each gets its whole answer."""

    async def all_of_them() -> list[bool]:
        return await asyncio.gather(
            *(
                read_answer(
                    server.urls[number % len(server.urls)],
                    key=server.key,
                    stream=number >= JSON_REQUESTS,
                    opened=asyncio.Event(),
                )
                for number in range(JSON_REQUESTS + STREAMS)
            )
        )

    assert all(asyncio.run(all_of_them()))
