"""Ten turns over a prefix of 1,500 tokens: what the first token of a later turn takes of the first one's.

By chain (`previous_response_id`) and by replay of the history. After the last turn the server is killed and started
again, and one more turn is taken in the new process.
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

Way = Literal["chain", "replay"]
WAYS: tuple[Way, ...] = ("chain", "replay")
TURNS = 10
PREFIX_TOKENS = 1500
ANSWER_TOKENS = 12
MOST_RATIO = 0.055
WRITING_SECONDS = 2.0
"""What may be written for the next process is written by then."""


@dataclass(slots=True)
class Conversation:
    """One conversation with a server that may have been started again."""

    way: Way
    seed: str
    messages: list[dict[str, str]] = field(default_factory=list)
    previous: str = ""
    seconds: list[float] = field(default_factory=list)
    """To the first token of each turn."""
    cached: list[int] = field(default_factory=list)
    """Tokens of each turn's prompt that came from a cache."""

    def turn(self, server: LiveServer) -> None:
        """Take one more turn."""
        target = target_of(server)
        new = [{"role": "user", "content": story(f"{self.seed}/{len(self.seconds)}")}]
        if not self.messages:
            new.insert(0, {"role": "system", "content": notes(PREFIX_TOKENS, self.seed)})
        self.messages += new
        more: dict[str, Any] = {"previous_response_id": self.previous} if self.previous else {}
        sent = new if self.way == "chain" else self.messages
        (stream,) = run_streams(target, [target.body(sent, tokens=ANSWER_TOKENS, **more)])
        self.messages.append({"role": "assistant", "content": stream.text})
        self.previous = stream.id if self.way == "chain" else ""
        self.seconds.append(stream.first)
        self.cached.append(stream.cached_tokens)


def run(options: Options, report: Report) -> None:
    """All turns in one process, the last one in the next."""
    default_model()
    settings = {"RESPONSES_ENGINE": "mlx", **options.settings}
    conversations: list[Conversation] = []
    for number in range(options.rounds):
        with embedded_server(options.work / f"turns-{number}", settings, models=data_dir()) as server:
            both = [Conversation(way, f"{way}/{number}") for way in WAYS]
            for conversation in both:
                for _ in range(TURNS):
                    conversation.turn(server)
            time.sleep(WRITING_SECONDS)
            server.stop(signal.SIGKILL)
            server.start()
            for conversation in both:
                conversation.turn(server)
            conversations += both
    for way in WAYS:
        note(way, [conversation for conversation in conversations if conversation.way == way], report)


def note(way: Way, conversations: list[Conversation], report: Report) -> None:
    """Keep the medians of the rounds."""
    report.note_details(
        f"turns/{way}", [{"first_token_s": talk.seconds, "cached_tokens": talk.cached} for talk in conversations]
    )
    title = f"turns over {PREFIX_TOKENS:,} tokens by {way}"
    first = statistics.median(talk.seconds[0] for talk in conversations)
    report.note(f"turns/{way}/first", Figure(title=f"{title}, first token of turn 1", value=first, unit="s"))
    for key, name, turn in (
        ("second", "turn 2", 1),
        ("tenth", f"turn {TURNS}", TURNS - 1),
        ("restarted", "the next turn after a restart", TURNS),
    ):
        ratio = statistics.median(talk.seconds[turn] / talk.seconds[0] for talk in conversations)
        most = None if key == "tenth" else MOST_RATIO
        report.note(f"turns/{way}/{key}", Figure(title=f"{title}, {name} / turn 1", value=ratio, at_most=most))
