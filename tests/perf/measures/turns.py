"""Ten turns with a prefix of 1,500 tokens: the time to the first token of later turns, compared with the first turn.

Turns are chained (`previous_response_id`) or replay the history. Another conversation is begun before the server is
killed and started again; the new process answers its second turn.
"""

import signal
import statistics
import time
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.live.server import LiveServer
from tests.perf.load.contenders import default_model
from tests.perf.load.prompts import notes, story
from tests.perf.load.servers import embedded_server, target_of
from tests.perf.load.streams import run_streams
from tests.perf.options import Options, data_dir
from tests.perf.report import Figure, Report

Method = Literal["chain", "replay"]
METHODS: tuple[Method, ...] = ("chain", "replay")
TURNS = 10
PREFIX_TOKENS = 1500
ANSWER_TOKENS = 12
MAX_RATIO = 0.055
WRITING_SECONDS = 2.0
"""Time for the process to write its prefix cache to disk."""


@dataclass(slots=True)
class Conversation:
    """One conversation with a server that may be restarted."""

    method: Method
    seed: str
    messages: list[dict[str, str]] = field(default_factory=list)
    previous: str = ""
    seconds: list[float] = field(default_factory=list)
    """Seconds to the first token of each turn."""
    cached: list[int] = field(default_factory=list)
    """Cached tokens of each turn's prompt."""
    after_restart: list[float] = field(default_factory=list)
    """Seconds to the first token of two turns of another conversation, between which the server was restarted."""

    def turn(self, server: LiveServer) -> None:
        """Send one more turn."""
        target = target_of(server)
        new = [{"role": "user", "content": story(f"{self.seed}/{len(self.seconds)}")}]
        if not self.messages:
            new.insert(0, {"role": "system", "content": notes(PREFIX_TOKENS, self.seed)})
        self.messages += new
        more: dict[str, Any] = {"previous_response_id": self.previous} if self.previous else {}
        sent = new if self.method == "chain" else self.messages
        (stream,) = run_streams(target, [target.body(sent, tokens=ANSWER_TOKENS, **more)])
        self.messages.append({"role": "assistant", "content": stream.text})
        self.previous = stream.id if self.method == "chain" else ""
        self.seconds.append(stream.first)
        self.cached.append(stream.cached_tokens)


def run(options: Options, report: Report) -> None:
    """Measure ten turns in one process, and a second turn in the process after it."""
    default_model()
    settings = {"RESPONSES_ENGINE": "mlx", **options.settings}
    conversations: list[Conversation] = []
    for number in range(options.rounds):
        directory = options.directory / f"turns-{number}"
        settings["RESPONSES_PROMPT_CACHE_DIR"] = str(directory / "prompts")
        with embedded_server(directory, settings, models=data_dir()) as server:
            pair = [Conversation(method, f"{method}/{number}") for method in METHODS]
            for conversation in pair:
                for _ in range(TURNS):
                    conversation.turn(server)
            interrupted = [Conversation(method, f"{method}/{number}/restart") for method in METHODS]
            for conversation in interrupted:
                conversation.turn(server)
            time.sleep(WRITING_SECONDS)
            server.stop(signal.SIGKILL)
            server.start()
            for conversation, other in zip(pair, interrupted, strict=True):
                other.turn(server)
                conversation.after_restart = other.seconds
            conversations += pair
    for method in METHODS:
        add_figures(method, [conversation for conversation in conversations if conversation.method == method], report)


def add_figures(method: Method, conversations: list[Conversation], report: Report) -> None:
    """Store the medians of the rounds."""
    report.add_details(
        f"turns/{method}",
        [
            {"first_token_s": talk.seconds, "cached_tokens": talk.cached, "after_restart_s": talk.after_restart}
            for talk in conversations
        ],
    )
    title = f"turns over {PREFIX_TOKENS:,} tokens by {method}"
    first = statistics.median(talk.seconds[0] for talk in conversations)
    report.add(f"turns/{method}/first", Figure(title=f"{title}, first token of turn 1", value=first, unit="s"))
    ratios = {
        "second": ("turn 2", [talk.seconds[1] / talk.seconds[0] for talk in conversations]),
        "tenth": (f"turn {TURNS}", [talk.seconds[TURNS - 1] / talk.seconds[0] for talk in conversations]),
        "restarted": (
            "turn 2 after a restart",
            [talk.after_restart[1] / talk.after_restart[0] for talk in conversations],
        ),
    }
    for key, (name, values) in ratios.items():
        at_most = None if key == "tenth" else MAX_RATIO
        ratio = statistics.median(values)
        report.add(f"turns/{method}/{key}", Figure(title=f"{title}, {name} / turn 1", value=ratio, at_most=at_most))
