"""Stored objects whose ids hostile requests contain."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import httpx

from tests.hostile import MIB, MODEL
from tests.live.server import LiveServer

from .locations import QUESTION

LARGE_ITEM = MIB


@dataclass(slots=True)
class StoredIds:
    """Ids of one server, in the project of the hostile client."""

    http: httpx.Client
    response_id: str = ""
    conversation_id: str = ""
    item_id: str = ""
    large_item: str = ""
    """An item of 1 MB."""
    large_response: str = ""
    """A response with an input of 16 MB."""
    blob: str = ""
    """The content of a compaction item."""
    large_blob: str = ""
    """The same with a history of 4 MB."""

    @classmethod
    def on(cls, server: LiveServer, *, key: str) -> StoredIds:
        """Create these objects."""
        stored_ids = cls(server.http(key=key))
        stored_ids.http.timeout = httpx.Timeout(30)
        stored_ids.renew()
        call = {"type": "web_search_call", "action": {"type": "search", "query": "a" * LARGE_ITEM}}
        conversation = stored_ids._post("/conversations", items=[call])
        stored_ids.large_item = stored_ids._get(f"/conversations/{conversation['id']}/items")["data"][0]["id"]
        large = {"type": "web_search_call", "action": {"type": "search", "query": "a" * 16 * MIB}}
        stored_ids.large_response = stored_ids._post(
            "/responses", model=MODEL, input=[large, QUESTION], max_output_tokens=16
        )["id"]
        stored_ids.blob = stored_ids._blob("hi")
        stored_ids.large_blob = stored_ids._blob([call] * 4 + [QUESTION])
        return stored_ids

    def renew(self) -> None:
        """Create a response and a conversation for the next request, which may delete or extend them."""
        self.response_id = self._post("/responses", model=MODEL, input="hi", max_output_tokens=16)["id"]
        self.conversation_id = self._post("/conversations", items=[QUESTION])["id"]
        self.item_id = self._get(f"/conversations/{self.conversation_id}/items")["data"][0]["id"]

    def fill_in(self, target: str) -> str:
        """Replace the names in a target by ids."""
        for name in ("response_id", "conversation_id", "item_id"):
            target = target.replace(f"{{{name}}}", getattr(self, name))
        return target.replace("{name}", MODEL)

    def _blob(self, history: Any) -> str:
        output = self._post("/responses/compact", model=MODEL, input=history)["output"]
        blob: str = next(item["encrypted_content"] for item in output if item["type"] == "compaction")
        return blob

    def _post(self, path: str, **body: Any) -> Any:
        answer = self.http.post(path, content=json.dumps(body), headers={"content-type": "application/json"})
        return answer.raise_for_status().json()

    def _get(self, path: str) -> Any:
        return self.http.get(path).raise_for_status().json()
