"""Chat Completions as a translation: of a chat's request to a Responses request, and of the response back. Pure."""

from responses_api.chat.chunks import READ, ChunkStream
from responses_api.chat.completion import REASONING_FIELDS, Form, chat_completion
from responses_api.chat.objects import ChatCompletion, ChatCompletionChunk
from responses_api.chat.places import Places
from responses_api.chat.request import CreateChatCompletion
from responses_api.chat.translation import Translation, translate

__all__ = [
    "READ",
    "REASONING_FIELDS",
    "ChatCompletion",
    "ChatCompletionChunk",
    "ChunkStream",
    "CreateChatCompletion",
    "Form",
    "Places",
    "Translation",
    "chat_completion",
    "translate",
]
