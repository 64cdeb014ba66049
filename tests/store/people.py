"""Users and conversations of these tests."""

from responses_api.caller import Caller
from responses_api.protocol.requests.conversations import parse_create_conversation
from responses_api.services.accounts.create_project import create_project
from responses_api.services.store.create_conversation import create_conversation
from tests.turns import ApiUser


def other_project(user: ApiUser) -> ApiUser:
    """A user of another project, on the same worker."""
    return ApiUser(caller=Caller(project=create_project(name="other")), worker=user.worker)


def new_conversation(user: ApiUser, *texts: str, **metadata: str) -> str:
    body = {"items": [{"role": "user", "content": text} for text in texts], "metadata": metadata}
    return create_conversation(caller=user.caller, request=parse_create_conversation(body)).public_id
