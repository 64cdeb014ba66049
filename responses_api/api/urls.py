"""The API's addresses, each also without ``/v1``."""

from django.conf import settings
from django.urls import path

from . import chat, conversations, models, responses, status
from .endpoint import Endpoint
from .openapi.view import OpenApiView

ALL_ENDPOINTS: list[tuple[str, type[Endpoint]]] = [
    ("responses", responses.ResponsesView),
    ("responses/input_tokens", responses.InputTokensView),
    ("responses/compact", responses.CompactionView),
    ("responses/<str:response_id>", responses.ResponseView),
    ("responses/<str:response_id>/cancel", responses.CancelView),
    ("responses/<str:response_id>/input_items", responses.InputItemsView),
    ("conversations", conversations.ConversationsView),
    ("conversations/<str:conversation_id>", conversations.ConversationView),
    ("conversations/<str:conversation_id>/items", conversations.ConversationItemsView),
    ("conversations/<str:conversation_id>/items/<str:item_id>", conversations.ConversationItemView),
    ("chat/completions", chat.ChatCompletionsView),
    ("status", status.StatusView),
    ("metrics", status.MetricsView),
    ("openapi.json", OpenApiView),
    ("models", models.ModelsView),
    ("models/<path:name>", models.ModelView),
]


def served(*, with_chat: bool) -> list[tuple[str, type[Endpoint]]]:
    """The endpoints of a server with or without Chat Completions."""
    return [(route, view) for route, view in ALL_ENDPOINTS if with_chat or view is not chat.ChatCompletionsView]


endpoints = served(with_chat=settings.RESPONSES_CHAT)
urlpatterns = [path(prefix + route, view.as_view()) for prefix in ("v1/", "") for route, view in endpoints]
