"""From items in wire form to the messages, tools and arguments that chat templates read. Standard library only."""

from inference.prompts.conversation import ChatMessage, Item, content_text
from inference.prompts.effort import thinking_arguments, thinking_budget
from inference.prompts.style import MessageStyle, template_tools

__all__ = [
    "ChatMessage",
    "Item",
    "MessageStyle",
    "content_text",
    "template_tools",
    "thinking_arguments",
    "thinking_budget",
]
