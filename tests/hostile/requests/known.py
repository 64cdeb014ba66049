"""What exists on the server that hostile requests can name."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import httpx

from tests.hostile import MIB, MODEL
from tests.live.server import LiveServer

from .places import QUESTION

LARGE_ITEM = MIB


@dataclass(slots=True)
class Known:
    """Ids on one server, of the hostile caller's project."""

    http: httpx.Client
    response_id: str = ""
    conversation_id: str = ""
    item_id: str = ""
    large_item: str = ""
    """An item of 1 MB."""
    large_response: str = ""
    """A response with an input of 16 MB."""
    blob: str = ""
    """A compaction's content, and one that holds 4 MB."""
    large_blob: str = ""

    @classmethod
    def on(cls, server: LiveServer, *, key: str) -> Known:
        """Store what is needed."""
        known = cls(server.http(key=key))
        known.http.timeout = httpx.Timeout(30)
        known.renew()
        call = {"type": "web_search_call", "action": {"type": "search", "query": "a" * LARGE_ITEM}}
        stays = known._post("/conversations", items=[call])
        known.large_item = known._get(f"/conversations/{stays['id']}/items")["data"][0]["id"]
        large = {"type": "web_search_call", "action": {"type": "search", "query": "a" * 16 * MIB}}
        known.large_response = known._post("/responses", model=MODEL, input=[large, QUESTION], max_output_tokens=16)[
            "id"
        ]
        known.blob = known._blob("hi")
        known.large_blob = known._blob([call] * 4 + [QUESTION])
        return known

    def renew(self) -> None:
        """A response and a conversation for the next request alone: it may delete them, and they grow."""
        self.response_id = self._post("/responses", model=MODEL, input="hi", max_output_tokens=16)["id"]
        self.conversation_id = self._post("/conversations", items=[QUESTION])["id"]
        self.item_id = self._get(f"/conversations/{self.conversation_id}/items")["data"][0]["id"]

    def placed(self, target: str) -> str:
        """A target with ids for the names in it."""
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
