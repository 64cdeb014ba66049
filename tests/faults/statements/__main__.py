"""A process is killed at every statement of whatever removes or stores something.

`python -m tests.faults.statements` works on the database that the settings name, which should be an empty one. Each
operation is done again and again by a process of its own, which kills itself before its first statement, before its
second, and so on; also before and after each commit. Afterwards what was to be deleted is there whole or in no row,
nothing else is lost, no turn and no item is unreachable, and the store's sums are those of its rows.
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

MOST_POINTS = 200
SECRET = "the text that is to go"
OLDEST_FIRST = parse_list_query([("order", "asc"), ("limit", "100")])


@dataclass(kw_only=True)
class Trial:
    """A store with something to do on it. ``do`` can be done again."""

    user: ApiUser
    do: Callable[[], object]
    keeps: dict[str, list[str]] = field(default_factory=dict)
    """Responses that stay, with their inputs."""

    def is_done(self) -> bool:
        """Whether nothing of the secret is left in any row."""
        project = self.user.caller.project.pk
        texts = [
            *Item.objects.filter(project=project).values_list("payload", flat=True),
            *Response.objects.filter(project=project).values_list("body", flat=True),
            *Response.objects.filter(project=project).values_list("request", flat=True),
            *EventBatch.objects.filter(response__project=project).values_list("data", flat=True),
        ]
        return not any(SECRET in text for text in texts)


def trial(user: ApiUser, do: Callable[[], object], **keeps: list[str]) -> Trial:
    return Trial(user=user, do=do, keeps=keeps)


def deletion(user: ApiUser) -> Trial:
    """The newest response of a chain."""
    first = user.turn("first")
    last = user.turn(SECRET, previous=first)
    return trial(user, lambda: deleted(user, last), **{first: ["first"]})


def deletion_of_a_chain(user: ApiUser) -> Trial:
    """The last response to hold a history."""
    first = user.turn(SECRET)
    last = user.turn("last", previous=first)
    deleted(user, first)
    return trial(user, lambda: deleted(user, last))


def deleted(user: ApiUser, response_id: str) -> None:
    if Response.objects.filter(public_id=response_id).exists():
        delete_response(caller=user.caller, response_id=response_id)


def expiry(user: ApiUser) -> Trial:
    """Two branches of a chain, and one alone; and a conversation."""
    first = user.turn(f"{SECRET} 1")
    gone = [user.turn(f"{SECRET} {number}", previous=first) for number in range(2)]
    alone, kept = user.turn(SECRET), user.turn("kept")
    conversation_with_secret(user)
    past = Now() - timedelta(seconds=1)
    Response.objects.filter(public_id__in=[first, *gone, alone]).update(expires_at=past)
    Conversation.objects.filter(project=user.caller.project).update(expires_at=past)
    return trial(user, expire_responses, **{kept: ["kept"]})


def eviction(user: ApiUser) -> Trial:
    """One too many is stored."""
    user.turn(SECRET)
    kept = user.turn("kept")
    running = user.begin("new")

    def end() -> None:
        with patch.object(settings, "RESPONSES_PROJECT_MAX_ENTRIES", 2):
            if Response.objects.filter(pk=running.row.pk, turn=None).exists():
                running.end()

    return trial(user, end, **{kept: ["kept"]})


def forgetting(user: ApiUser) -> Trial:
    """An end with `store: false`, of which the history was deleted meanwhile."""
    previous = user.turn(SECRET)
    running = user.begin("new", previous_response_id=previous, store=False)
    deleted(user, previous)
    return trial(user, lambda: running.end() if Response.objects.filter(pk=running.row.pk).exists() else None)


def finish(user: ApiUser) -> Trial:
    """A turn of a conversation is stored."""
    conversation_id = new_conversation(user, "before")
    first = user.turn("first", conversation=conversation_id)
    running = user.begin("new", conversation=conversation_id)

    def end() -> None:
        if Response.objects.filter(pk=running.row.pk, turn=None).exists():
            running.end()
        found: Any = list_conversation_items(caller=user.caller, conversation_id=conversation_id, query=OLDEST_FIRST)
        assert [item["content"][0]["text"] for item in found["data"]] == ["before", "first", "ok", "new", "ok"]

    return trial(user, end, **{first: ["before", "first"]})


def new_conversation(user: ApiUser, *texts: str) -> str:
    body = {"items": [{"role": "user", "content": text} for text in texts]}
    return create_conversation(caller=user.caller, request=parse_create_conversation(body)).public_id


def conversation_with_secret(user: ApiUser) -> tuple[str, str]:
    """Its id, and that of the item."""
    conversation_id = new_conversation(user, "before", SECRET, "after")
    found = list_conversation_items(caller=user.caller, conversation_id=conversation_id, query=OLDEST_FIRST)
    return conversation_id, found["data"][1]["id"]


def deletion_of_a_conversation(user: ApiUser) -> Trial:
    conversation_id, _ = conversation_with_secret(user)

    def do() -> None:
        if Conversation.objects.filter(public_id=conversation_id).exists():
            delete_conversation(caller=user.caller, conversation_id=conversation_id)

    return trial(user, do)


def deletion_of_an_item(user: ApiUser) -> Trial:
    conversation_id, item_id = conversation_with_secret(user)

    def do() -> None:
        if Item.objects.filter(project=user.caller.project, wire_id=item_id).exists():
            delete_conversation_item(caller=user.caller, conversation_id=conversation_id, item_id=item_id)

    return trial(user, do)


def leaving(user: ApiUser) -> Trial:
    """A reader leaves before a worker has its request; the history was deleted meanwhile."""
    previous = user.turn(SECRET)
    row = user.begin("new", previous_response_id=previous).row
    deleted(user, previous)
    Response.objects.filter(pk=row.pk).update(worker="", lease_until=None)
    return trial(user, lambda: abandon_response(public_id=row.public_id))


def recovery(user: ApiUser) -> Trial:
    """The worker is lost."""
    previous = user.turn(SECRET)
    row = user.begin("new", previous_response_id=previous).row
    deleted(user, previous)
    Response.objects.filter(pk=row.pk).update(lease_until=Now() - timedelta(seconds=1))
    return trial(user, recover_jobs)


def deletion_of_a_project(user: ApiUser) -> Trial:
    user.turn("last", previous=user.turn(SECRET))
    conversation_with_secret(user)
    return trial(user, lambda: delete_project(project=user.caller.project))


def deletion_of_a_key(user: ApiUser) -> Trial:
    """What it has made stays."""
    key = ApiKey.objects.create(
        project=user.caller.project, name="key", prefix="x", digest=secrets.token_hex(8), revoked_at=timezone.now()
    )
    kept = user.turn("kept")
    Response.objects.filter(public_id=kept).update(key=key)
    return trial(user, lambda: delete_keys(keys=[key]), **{kept: ["kept"]})


OPERATIONS: tuple[Callable[[ApiUser], Trial], ...] = (
    deletion, deletion_of_a_chain, expiry, eviction, forgetting, finish, deletion_of_a_conversation,
    deletion_of_an_item, leaving, recovery, deletion_of_a_project, deletion_of_a_key,
)  # fmt: skip


class Killer:
    """Kills its process at the ``number``-th point: before a statement, before a commit, after one."""

    def __init__(self, number: int) -> None:
        self._left = number

    def point(self) -> None:
        self._left -= 1
        if not self._left:
            os.kill(os.getpid(), signal.SIGKILL)

    def __call__(self, execute: Any, *arguments: Any) -> Any:
        self.point()
        return execute(*arguments)


def do_killed(trial: Trial, number: int) -> bool:
    """Do it in a process that is killed at the point; False when it came to its end before."""
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


def faults_of(trial: Trial, *, again: bool) -> Iterator[str]:
    """What is wrong with the store now."""
    caller = trial.user.caller
    project = caller.project.pk
    turns = Turn.objects.filter(project=project, children=None, responses=None, continuations=None, conversations=None)
    if turns.exists():
        yield "a turn is unreachable"
    if Item.objects.filter(project=project, entries=None).exists():
        yield "an item is held by no turn"
    if recorded_totals(project) != true_totals(project):
        yield f"the sums are {recorded_totals(project)}, the rows' are {true_totals(project)}"
    for response_id, inputs in trial.keeps.items():
        row = get_response(caller=caller, response_id=response_id)
        page: Any = list_input_items(row, query=OLDEST_FIRST)
        response: Any = wire_response(row)
        found = [item["content"][0]["text"] for item in page["data"]]
        if found != inputs or response["output"][0]["content"][0]["text"] != "ok":
            yield f"a response that stays has the inputs {found}"
    if again and not trial.is_done():
        yield "what was deleted is still there"


def rows_of(trial: Trial) -> object:
    """All that an operation may change."""
    mine = {"project": trial.user.caller.project}
    return (
        list(Response.objects.filter(**mine).order_by("pk").values_list("pk", "status", "turn", "worker", "key")),
        list(Conversation.objects.filter(**mine).order_by("pk").values_list("pk", "turn")),
        list(Turn.objects.filter(**mine).order_by("pk").values_list("pk", flat=True)),
        list(Item.objects.filter(**mine).order_by("pk").values_list("pk", flat=True)),
        list(ApiKey.objects.filter(**mine).values_list("pk", flat=True)),
        recorded_totals(trial.user.caller.project.pk),
    )


def run(operation: Callable[[ApiUser], Trial]) -> Case:
    """Kill an operation at each of its points. A store that is as it was before serves for the next one too."""
    case = Case(f"{connection.vendor} {operation.__name__}")
    user, trial = made(operation)
    for number in range(1, MOST_POINTS):
        before = rows_of(trial)
        was_killed = do_killed(trial, number)
        case.faults += [f"killed at {number}: {fault}" for fault in faults_of(trial, again=False)]
        if was_killed and rows_of(trial) == before:
            user.announce()
            continue
        trial.do()
        case.faults += [f"killed at {number}, done again: {fault}" for fault in faults_of(trial, again=True)]
        if not was_killed:
            case.figures.append(f"{number - 1} points")
            return case
        user, trial = made(operation)
    case.faults.append("it never came to its end")
    return case


def made(operation: Callable[[ApiUser], Trial]) -> tuple[ApiUser, Trial]:
    """A store of its own for an operation."""
    user = ApiUser.make(Project.objects.create(name=secrets.token_hex(8)))
    return user, operation(user)


def main() -> int:
    """All operations, or those that are named; 1 when anything was wrong."""
    settings.DATABASES["default"].get("OPTIONS", {}).pop("pool", None)  # its threads don't live on in a fork
    call_command("migrate", verbosity=0)
    good = True
    for operation in OPERATIONS:
        if sys.argv[1:] and operation.__name__ not in sys.argv[1:]:
            continue
        case = run(operation)
        print(case, flush=True)
        good = good and not case.faults
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
