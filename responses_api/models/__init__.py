"""The store: one concern a file."""

from .api_key import ApiKey
from .chore import Chore
from .conversation import Conversation
from .counter import Counter
from .event_log import Checkpoint, EventBatch
from .first_key import FirstKey
from .item import Item
from .process import Process, ServedModel
from .project import Project
from .response import Response, Status
from .sealing_secret import SealingSecret
from .store_change import StoreChange
from .turn import Turn, TurnItem
from .usage import UsageRecord
from .user import User

__all__ = [
    "ApiKey",
    "Checkpoint",
    "Chore",
    "Conversation",
    "Counter",
    "EventBatch",
    "FirstKey",
    "Item",
    "Process",
    "Project",
    "Response",
    "SealingSecret",
    "ServedModel",
    "Status",
    "StoreChange",
    "Turn",
    "TurnItem",
    "UsageRecord",
    "User",
]
