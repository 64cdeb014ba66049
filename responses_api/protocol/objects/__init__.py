"""Objects that the server answers with: builders return these types, and OpenAPI describes them."""

from responses_api.protocol.objects.compaction import CompactedHistory
from responses_api.protocol.objects.conversation import Conversation, DeletedConversation
from responses_api.protocol.objects.events import StreamEvent
from responses_api.protocol.objects.items import Item, OutputItem
from responses_api.protocol.objects.lists import ItemList
from responses_api.protocol.objects.model import Model, ModelList
from responses_api.protocol.objects.response import DeletedResponse, Response, ResponseError, ResponseStatus
from responses_api.protocol.objects.status import CacheTierFigures, Health, ServerStatus
from responses_api.protocol.objects.usage import InputTokens, Usage

__all__ = [
    "CacheTierFigures",
    "CompactedHistory",
    "Conversation",
    "DeletedConversation",
    "DeletedResponse",
    "Health",
    "InputTokens",
    "Item",
    "ItemList",
    "Model",
    "ModelList",
    "OutputItem",
    "Response",
    "ResponseError",
    "ResponseStatus",
    "ServerStatus",
    "StreamEvent",
    "Usage",
]
