"""The tables of the database, by concern."""

from responses_api.models.accounts.api_key import ApiKey
from responses_api.models.accounts.first_key import FirstKey
from responses_api.models.accounts.project import Project
from responses_api.models.accounts.user import User
from responses_api.models.processes.chore import Chore
from responses_api.models.processes.counter import Counter
from responses_api.models.processes.process import Process, ServedModel
from responses_api.models.processes.sealing_secret import SealingSecret
from responses_api.models.store.conversation import Conversation
from responses_api.models.store.event_log import Checkpoint, EventBatch
from responses_api.models.store.item import Item
from responses_api.models.store.response import Response, Status
from responses_api.models.store.store_change import StoreChange
from responses_api.models.store.turn import Turn, TurnItem
from responses_api.models.store.usage import UsageRecord

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
