"""The API's addresses, each also without ``/v1``."""

from django.conf import settings
from django.urls import path

from . import chat, conversations, models, responses, status
from .openapi.view import OpenApiView

endpoints = [
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
    *([("chat/completions", chat.ChatCompletionsView)] if settings.RESPONSES_CHAT else []),
    ("status", status.StatusView),
    ("metrics", status.MetricsView),
    ("openapi.json", OpenApiView),
    ("models", models.ModelsView),
    ("models/<path:name>", models.ModelView),
]

urlpatterns = [path(prefix + route, view.as_view()) for prefix in ("v1/", "") for route, view in endpoints]
