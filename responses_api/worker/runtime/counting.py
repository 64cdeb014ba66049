"""Counts the tokens of prompts for other processes, on separate threads, so that no generation waits for a count."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import structlog

from responses_api import bus
from responses_api.bus.messages import CountRefused, CountTokens, TokensCounted
from responses_api.bus.relayed_errors import RelayedError
from responses_api.database.threads import with_fresh_connection
from responses_api.errors import ApiError, Overloaded, ServerError
from responses_api.interruptions import Interrupted
from responses_api.protocol import restore_create
from responses_api.selectors.history import history_items, history_size
from responses_api.services.admission.count_input_tokens import ANSWER_SECONDS, MAX_BYTES
from responses_api.services.prompts.assemble_history import assembling
from responses_api.services.prompts.reasoning_echo import echo_scope
from responses_api.services.prompts.render_prompt import count_prompt
from responses_api.worker.hosting import ModelHost

log = structlog.get_logger(__name__)

THREADS = 2
HEAVY_BYTES = 128 << 10
"""Rendering this much text takes some tenths of a second: it has separate threads, so that smaller texts don't wait."""
MOST_WAITING = 64
MOST_BYTES_WAITING = 4 * MAX_BYTES


@dataclass(slots=True)
class _Question:
    message: CountTokens
    asked_at: float = field(default_factory=time.monotonic)
    has_left: bool = False
    """Whether the client has left."""

    @property
    def size(self) -> int:
        return len(self.message.payload)

    def check(self) -> None:
        """Raise :class:`Interrupted` when the client has left or no longer waits."""
        if self.has_left or time.monotonic() - self.asked_at > ANSWER_SECONDS:
            raise Interrupted


class Counter:
    """One per worker. `ask` and `forget` may be called from any thread, and never block."""

    def __init__(self, host: ModelHost) -> None:
        self._host = host
        self._lock = threading.Lock()
        self._questions: dict[str, _Question] = {}
        self._light = ThreadPoolExecutor(max_workers=THREADS, thread_name_prefix="count")
        self._heavy = ThreadPoolExecutor(max_workers=THREADS, thread_name_prefix="count-heavy")

    @property
    def waiting(self) -> int:
        """The number of unanswered questions."""
        with self._lock:
            return len(self._questions)

    def ask(self, message: CountTokens) -> None:
        """Count and answer, or refuse at once when too much is waiting."""
        question = _Question(message)
        with self._lock:
            waiting = sum(other.size for other in self._questions.values())
            is_full = len(self._questions) >= MOST_WAITING or waiting + question.size > MOST_BYTES_WAITING
            if not is_full:
                self._questions[message.reply] = question
        if is_full:
            refuse(message, Overloaded("The server counts as much as it can at once. Try again in a few seconds."))
        else:
            self._light.submit(self._take, question)

    def forget(self, reply: str) -> None:
        """The client has left: the answer is not needed."""
        with self._lock:
            question = self._questions.get(reply)
        if question is not None:
            question.has_left = True

    def stop(self) -> None:
        """Give no more answers, and return when all threads have ended."""
        with self._lock:
            questions = list(self._questions.values())
        for question in questions:
            question.has_left = True
        self._light.shutdown(wait=True)
        self._heavy.shutdown(wait=True)

    def _take(self, question: _Question) -> None:
        try:
            question.check()
            size = question.size + with_fresh_connection(history_size, question.message.parent)
        except Interrupted:
            self._end(question)
        except Exception:  # the client must get an answer
            log.exception("worker.count_failed")
            self._fail(question)
        else:
            if size > HEAVY_BYTES:
                self._heavy.submit(self._answer, question)
            else:
                self._answer(question)

    def _answer(self, question: _Question) -> None:
        message = question.message
        try:
            tokens = with_fresh_connection(self._count, question)
        except Interrupted:
            pass
        except ApiError as error:
            refuse(message, error)
        except Exception:  # the client must get an answer
            log.exception("worker.count_failed")
            self._fail(question)
        else:
            bus.publish(message.reply, TokensCounted(tokens=tokens))
        finally:
            self._end(question)

    def _fail(self, question: _Question) -> None:
        refuse(question.message, ServerError("The server failed to count."))
        self._end(question)

    def _end(self, question: _Question) -> None:
        with self._lock:
            self._questions.pop(question.message.reply, None)

    def _count(self, question: _Question) -> int:
        question.check()
        message = question.message
        model = self._host[message.model]
        with assembling(message.scope) as assembly:
            assembly.add(history_size(message.parent))
            return count_prompt(
                request=restore_create(message.payload),
                history=history_items(message.parent),
                owner=message.scope,
                take=assembly.add,
                tokenizer=model.tokenizer,
                info=model.engine.info,
                scope=echo_scope(message.scope, model.name),
                check=question.check,
            )


def refuse(message: CountTokens, error: ApiError) -> None:
    """Answer why there is no count."""
    bus.publish(message.reply, CountRefused(error=RelayedError.of(error)))
