"""The stored history that a request continues."""

from dataclasses import dataclass

from responses_api.caller import Caller
from responses_api.errors import MissingParameter
from responses_api.models import Conversation, Turn
from responses_api.protocol import CreateResponse
from responses_api.protocol.requests.compact import CompactRequest
from responses_api.selectors.conversations import conversation_not_found, get_conversation
from responses_api.services.store.move_conversation import history_bytes, lock_conversation
from responses_api.services.store.open_response import open_previous
from responses_api.services.store.touch_store import touch_conversation


@dataclass(frozen=True, slots=True)
class History:
    """The last turn of a history, None for an empty one, and the conversation that it belongs to."""

    turn: Turn | None = None
    conversation: Conversation | None = None

    @property
    def size(self) -> int:
        """Bytes of all items of the history."""
        return history_bytes(self.turn)


def find_history(*, caller: Caller, request: CreateResponse | CompactRequest) -> History:
    """The history of the response or the conversation that a request names; it is recorded as used.

    Raises a 404, or a 400 when neither the conversation nor the request has an item.
    """
    if request.previous_response_id is not None:
        return History(open_previous(caller=caller, response_id=request.previous_response_id).turn)
    if isinstance(request, CompactRequest) or request.conversation is None:
        return History()
    conversation = conversation_to_continue(caller=caller, request=request)
    touch_conversation(caller=caller, conversation_id=request.conversation)
    return History(conversation.turn, conversation)


def conversation_to_continue(*, caller: Caller, request: CreateResponse, lock: bool = False) -> Conversation:
    """The conversation that a request names, locked if ``lock``. Raises what :func:`find_history` does."""
    assert request.conversation is not None
    conversation = get_conversation(caller=caller, conversation_id=request.conversation, param="conversation")
    if lock:
        locked = lock_conversation(conversation.pk)
        if locked is None:
            raise conversation_not_found(request.conversation, param="conversation")
        conversation = locked
    if conversation.turn_id is None and not request.input:
        raise MissingParameter(
            "`input` is missing, and the conversation is empty; send a string or at least one item.", param="input"
        )
    return conversation
