"""One subscription for all listeners of a process."""

import asyncio

from .inbox import Inbox
from .messages import Bundle
from .subscription import Subscription


class Exchange:
    """Gives the messages of the bundles that a process receives to its listeners. Used on one event loop."""

    def __init__(self, subscription: Subscription) -> None:
        self._subscription = subscription
        self._inboxes: dict[str, Inbox] = {}
        self._task = asyncio.create_task(self._pass_on())

    def listen(self, group: str) -> Inbox:
        """The messages to this group from now on; a group has one listener."""
        self._inboxes[group] = inbox = Inbox()
        return inbox

    def leave(self, group: str) -> None:
        """Listen to this group no longer."""
        self._inboxes.pop(group, None)

    async def close(self) -> None:
        """Receive nothing more."""
        self._task.cancel()
        await self._subscription.close()

    async def _pass_on(self) -> None:
        while True:
            bundle = await self._subscription.receive()
            if isinstance(bundle, Bundle):
                for group, message in bundle.messages:
                    inbox = self._inboxes.get(group)
                    if inbox is not None:
                        inbox.put(message)
