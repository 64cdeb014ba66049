"""Kills a process at every statement of the operations that store or remove something.

`python -m tests.faults.statements` uses the database of the settings, which should be empty. Each operation is repeated
in new processes, which kill themselves before the first statement, before the second, and so on; also before and after
each commit. Afterwards the operation must be done or not done at all, and repeating it must complete it; no other data
may be lost, no turn or item be unreachable, and the recorded totals must match the rows.
"""

import os
import secrets
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from unittest.mock import patch

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "responses_site.settings")
django.setup()

from django.conf import settings  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import connection, connections  # noqa: E402
from django.db.models.functions import Now  # noqa: E402
from django.utils import timezone  # noqa: E402

from responses_api.models import (  # noqa: E402
    ApiKey,
    Conversation,
    EventBatch,
    Item,
    Project,
    Response,
    Turn,
)
from responses_api.protocol import parse_list_query  # noqa: E402
from responses_api.protocol.requests.conversations import parse_create_conversation  # noqa: E402
from responses_api.selectors.conversations import list_conversation_items  # noqa: E402
from responses_api.selectors.input_items import list_input_items  # noqa: E402
from responses_api.selectors.responses import get_response, wire_response  # noqa: E402
from responses_api.services.accounts.delete_key import delete_keys  # noqa: E402
from responses_api.services.accounts.delete_project import delete_project  # noqa: E402
from responses_api.services.jobs.cancel_response import abandon_response  # noqa: E402
from responses_api.services.jobs.recover_jobs import recover_jobs  # noqa: E402
from responses_api.services.processes.expire_responses import expire_responses  # noqa: E402
from responses_api.services.store.create_conversation import create_conversation  # noqa: E402
from responses_api.services.store.delete_conversation import delete_conversation  # noqa: E402
from responses_api.services.store.delete_response import delete_response  # noqa: E402
from responses_api.services.store.edit_conversation_items import delete_conversation_item  # noqa: E402
from tests.faults.cases import Case  # noqa: E402
from tests.totals import recorded_totals, true_totals  # noqa: E402
from tests.turns import ApiUser  # noqa: E402

MAX_KILLS = 200
SECRET = "the text to be deleted"
OLDEST_FIRST = parse_list_query([("order", "asc"), ("limit", "100")])


@dataclass(kw_only=True)
class Trial:
    """A prepared database and an operation on it, ``do``, which can be repeated."""

    user: ApiUser
    do: Callable[[], object]
    remaining: dict[str, list[str]] = field(default_factory=dict)
    """The responses that must remain, with their inputs."""

    def is_done(self) -> bool:
        """Whether no row contains the secret."""
        project = self.user.caller.project.pk
        texts = [
            *Item.objects.filter(project=project).values_list("payload", flat=True),
            *Response.objects.filter(project=project).values_list("body", flat=True),
            *Response.objects.filter(project=project).values_list("request", flat=True),
            *EventBatch.objects.filter(response__project=project).values_list("data", flat=True),
        ]
        return not any(SECRET in text for text in texts)


def trial(user: ApiUser, do: Callable[[], object], **remaining: list[str]) -> Trial:
    return Trial(user=user, do=do, remaining=remaining)


def deletion(user: ApiUser) -> Trial:
    """The last response of a chain is deleted."""
    first = user.turn("first")
    last = user.turn(SECRET, previous=first)
    return trial(user, lambda: delete_if_stored(user, last), **{first: ["first"]})


def chain_deletion(user: ApiUser) -> Trial:
    """The last response that refers to a history is deleted."""
    first = user.turn(SECRET)
    last = user.turn("last", previous=first)
    delete_if_stored(user, first)
    return trial(user, lambda: delete_if_stored(user, last))


def delete_if_stored(user: ApiUser, response_id: str) -> None:
    if Response.objects.filter(public_id=response_id).exists():
        delete_response(caller=user.caller, response_id=response_id)


def expiry(user: ApiUser) -> Trial:
    """Two branches of a chain, a single response and a conversation expire."""
    first = user.turn(f"{SECRET} 1")
    branches = [user.turn(f"{SECRET} {number}", previous=first) for number in range(2)]
    single, kept = user.turn(SECRET), user.turn("kept")
    conversation_with_secret(user)
    past = Now() - timedelta(seconds=1)
    Response.objects.filter(public_id__in=[first, *branches, single]).update(expires_at=past)
    Conversation.objects.filter(project=user.caller.project).update(expires_at=past)
    return trial(user, expire_responses, **{kept: ["kept"]})


def eviction(user: ApiUser) -> Trial:
    """A response is stored that exceeds the limit of its project."""
    user.turn(SECRET)
    kept = user.turn("kept")
    running = user.begin("new")

    def end() -> None:
        with patch.object(settings, "RESPONSES_PROJECT_MAX_ENTRIES", 2):
            if Response.objects.filter(pk=running.row.pk, turn=None).exists():
                running.end()

    return trial(user, end, **{kept: ["kept"]})


def end_without_storing(user: ApiUser) -> Trial:
    """A response with `store: false` ends after its history was deleted."""
    previous = user.turn(SECRET)
    running = user.begin("new", previous_response_id=previous, store=False)
    delete_if_stored(user, previous)
    return trial(user, lambda: running.end() if Response.objects.filter(pk=running.row.pk).exists() else None)


def finish(user: ApiUser) -> Trial:
    """A turn of a conversation ends."""
    conversation_id = new_conversation(user, "before")
    first = user.turn("first", conversation=conversation_id)
    running = user.begin("new", conversation=conversation_id)

    def end() -> None:
        if Response.objects.filter(pk=running.row.pk, turn=None).exists():
            running.end()
        page: Any = list_conversation_items(caller=user.caller, conversation_id=conversation_id, query=OLDEST_FIRST)
        assert [item["content"][0]["text"] for item in page["data"]] == ["before", "first", "ok", "new", "ok"]

    return trial(user, end, **{first: ["before", "first"]})


def new_conversation(user: ApiUser, *texts: str) -> str:
    body = {"items": [{"role": "user", "content": text} for text in texts]}
    return create_conversation(caller=user.caller, request=parse_create_conversation(body)).public_id


def conversation_with_secret(user: ApiUser) -> tuple[str, str]:
    """Returns the ids of the conversation and of the item."""
    conversation_id = new_conversation(user, "before", SECRET, "after")
    page = list_conversation_items(caller=user.caller, conversation_id=conversation_id, query=OLDEST_FIRST)
    return conversation_id, page["data"][1]["id"]


def conversation_deletion(user: ApiUser) -> Trial:
    conversation_id, _ = conversation_with_secret(user)

    def do() -> None:
        if Conversation.objects.filter(public_id=conversation_id).exists():
            delete_conversation(caller=user.caller, conversation_id=conversation_id)

    return trial(user, do)


def item_deletion(user: ApiUser) -> Trial:
    conversation_id, item_id = conversation_with_secret(user)

    def do() -> None:
        if Item.objects.filter(project=user.caller.project, wire_id=item_id).exists():
            delete_conversation_item(caller=user.caller, conversation_id=conversation_id, item_id=item_id)

    return trial(user, do)


def disconnect(user: ApiUser) -> Trial:
    """A client disconnects before a worker claims its request; the history was deleted meanwhile."""
    previous = user.turn(SECRET)
    row = user.begin("new", previous_response_id=previous).row
    delete_if_stored(user, previous)
    Response.objects.filter(pk=row.pk).update(worker="", lease_until=None)
    return trial(user, lambda: abandon_response(public_id=row.public_id))


def recovery(user: ApiUser) -> Trial:
    """A request is recovered after its worker was lost."""
    previous = user.turn(SECRET)
    row = user.begin("new", previous_response_id=previous).row
    delete_if_stored(user, previous)
    Response.objects.filter(pk=row.pk).update(lease_until=Now() - timedelta(seconds=1))
    return trial(user, recover_jobs)


def project_deletion(user: ApiUser) -> Trial:
    user.turn("last", previous=user.turn(SECRET))
    conversation_with_secret(user)
    return trial(user, lambda: delete_project(project=user.caller.project))


def key_deletion(user: ApiUser) -> Trial:
    """The responses of a deleted key remain."""
    key = ApiKey.objects.create(
        project=user.caller.project, name="key", prefix="x", digest=secrets.token_hex(8), revoked_at=timezone.now()
    )
    kept = user.turn("kept")
    Response.objects.filter(public_id=kept).update(key=key)
    return trial(user, lambda: delete_keys(keys=[key]), **{kept: ["kept"]})


OPERATIONS: tuple[Callable[[ApiUser], Trial], ...] = (
    deletion, chain_deletion, expiry, eviction, end_without_storing, finish, conversation_deletion,
    item_deletion, disconnect, recovery, project_deletion, key_deletion,
)  # fmt: skip


class Killer:
    """Kills its process at the ``number``-th of these points: before a statement, before and after a commit."""

    def __init__(self, number: int) -> None:
        self._left = number

    def point(self) -> None:
        self._left -= 1
        if not self._left:
            os.kill(os.getpid(), signal.SIGKILL)

    def __call__(self, execute: Any, *arguments: Any) -> Any:
        self.point()
        return execute(*arguments)


def run_killed(trial: Trial, number: int) -> bool:
    """Run an operation in a process that is killed at the ``number``-th point. False if it ended before that."""
    connections.close_all()
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        return os.WIFSIGNALED(status)
    killer = Killer(number)
    database: Any = connection
    commit = database._commit

    def killed_commit() -> None:
        killer.point()
        commit()
        killer.point()

    try:
        connection.ensure_connection()
        with patch.object(connection, "_commit", killed_commit), connection.execute_wrapper(killer):
            trial.do()
    finally:
        os._exit(0)


def store_errors(trial: Trial, *, must_be_done: bool) -> Iterator[str]:
    """The errors in the database."""
    caller = trial.user.caller
    project = caller.project.pk
    turns = Turn.objects.filter(project=project, children=None, responses=None, continuations=None, conversations=None)
    if turns.exists():
        yield "a turn is unreachable"
    if Item.objects.filter(project=project, entries=None).exists():
        yield "an item belongs to no turn"
    if recorded_totals(project) != true_totals(project):
        yield f"the recorded totals are {recorded_totals(project)}, those of the rows {true_totals(project)}"
    for response_id, inputs in trial.remaining.items():
        row = get_response(caller=caller, response_id=response_id)
        page: Any = list_input_items(row, query=OLDEST_FIRST)
        response: Any = wire_response(row)
        texts = [item["content"][0]["text"] for item in page["data"]]
        if texts != inputs or response["output"][0]["content"][0]["text"] != "ok":
            yield f"a remaining response has the inputs {texts}"
    if must_be_done and not trial.is_done():
        yield "deleted data still exists"


def rows_of(trial: Trial) -> object:
    """All rows that an operation may change."""
    in_project = {"project": trial.user.caller.project}
    return (
        list(Response.objects.filter(**in_project).order_by("pk").values_list("pk", "status", "turn", "worker", "key")),
        list(Conversation.objects.filter(**in_project).order_by("pk").values_list("pk", "turn")),
        list(Turn.objects.filter(**in_project).order_by("pk").values_list("pk", flat=True)),
        list(Item.objects.filter(**in_project).order_by("pk").values_list("pk", flat=True)),
        list(ApiKey.objects.filter(**in_project).values_list("pk", flat=True)),
        recorded_totals(trial.user.caller.project.pk),
    )


def run(operation: Callable[[ApiUser], Trial]) -> Case:
    """Kill an operation at each of its points. The database is used again unless the operation changed it."""
    case = Case(f"{connection.vendor} {operation.__name__}")
    user, trial = make_trial(operation)
    for number in range(1, MAX_KILLS):
        before = rows_of(trial)
        was_killed = run_killed(trial, number)
        case.errors += [f"killed at {number}: {error}" for error in store_errors(trial, must_be_done=False)]
        if was_killed and rows_of(trial) == before:
            user.announce()
            continue
        trial.do()
        case.errors += [f"killed at {number}, repeated: {error}" for error in store_errors(trial, must_be_done=True)]
        if not was_killed:
            case.figures.append(f"{number - 1} points")
            return case
        user, trial = make_trial(operation)
    case.errors.append("it did not end")
    return case


def make_trial(operation: Callable[[ApiUser], Trial]) -> tuple[ApiUser, Trial]:
    """Prepare a new project for an operation."""
    user = ApiUser.make(Project.objects.create(name=secrets.token_hex(8)))
    return user, operation(user)


def main() -> int:
    """Run the named operations, all by default. Returns 1 if there were errors."""
    settings.DATABASES["default"].get("OPTIONS", {}).pop("pool", None)  # its threads don't survive a fork
    call_command("migrate", verbosity=0)
    succeeded = True
    for operation in OPERATIONS:
        if sys.argv[1:] and operation.__name__ not in sys.argv[1:]:
            continue
        case = run(operation)
        print(case, flush=True)
        succeeded = succeeded and not case.errors
    return 0 if succeeded else 1


if __name__ == "__main__":
    sys.exit(main())
