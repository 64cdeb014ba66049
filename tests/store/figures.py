"""Contents and counters of the store."""

from responses_api.counting import take_counts
from responses_api.models import Conversation, Response


def stored() -> list[str]:
    """The ids of the stored responses, oldest first."""
    return list(Response.objects.order_by("pk").values_list("public_id", flat=True))


def conversations() -> list[str]:
    return list(Conversation.objects.order_by("pk").values_list("public_id", flat=True))


def counted(name: str) -> float:
    """The count of this event since the last call."""
    return take_counts().get(f"mlx_responses_store_{name}_total", 0)
