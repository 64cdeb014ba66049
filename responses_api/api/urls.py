"""The API's addresses, each also without ``/v1``."""

from django.urls import path

from . import compaction, conversations, input_tokens, openapi, status, views

endpoints = [
    ("responses", views.ResponsesView),
    ("responses/input_tokens", input_tokens.InputTokensView),
    ("responses/compact", compaction.CompactionView),
    ("responses/<str:response_id>", views.ResponseView),
    ("responses/<str:response_id>/cancel", views.CancelView),
    ("responses/<str:response_id>/input_items", views.InputItemsView),
    ("conversations", conversations.ConversationsView),
    ("conversations/<str:conversation_id>", conversations.ConversationView),
    ("conversations/<str:conversation_id>/items", conversations.ConversationItemsView),
    ("conversations/<str:conversation_id>/items/<str:item_id>", conversations.ConversationItemView),
    ("status", status.StatusView),
    ("metrics", status.MetricsView),
    ("openapi.json", openapi.OpenApiView),
    ("models", views.ModelsView),
    ("models/<path:name>", views.ModelView),
]

urlpatterns = [path(prefix + route, view.as_view()) for prefix in ("v1/", "") for route, view in endpoints]
