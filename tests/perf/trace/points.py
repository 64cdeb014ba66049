"""Where the engine's thread spends a step: functions and the cause that their time is counted under.

Time is counted where it is spent: a function that calls another one of these has only the rest. A name that no longer
exists fails `tests/perf/test_trace.py`: give the new one.
"""

from typing import NamedTuple

LOOP, IDLE, STEP = "engine loop", "idle", "MLX: building the step"
DISPATCHING, EVALUATING = "MLX: dispatching the step", "MLX: waiting for the step"
COLLECTING = "garbage collection"
SAMPLING, LOGITS = "sampling", "logits processors"


class Point(NamedTuple):
    """A function, by the module whose attribute is replaced."""

    module: str
    name: str
    cause: str


ROOTS = (
    Point("inference.engine.mlx_engine", "MlxEngine._step", LOOP),
    Point("tests.perf.engines.bare", "step", LOOP),
)
"""One call is one turn of a generator's loop; only the thread that makes them is traced."""

GENERATOR = Point("mlx_lm.generate", "BatchGenerator.next", STEP)
"""Its result says how many sequences the step was for, and whether prompts were read in it."""

DECODER = Point("inference.decoding.decoder", "Decoder.step", STEP)
"""Its result says how many sequences the step was for."""
READING = "reading prompts"

FACTORIES = (
    Point("tests.perf.engines.bare", "samplers", SAMPLING),
    Point("inference.engine.batch", "processors_for", LOGITS),
)
"""What they return, one callable or a list of them, is traced."""

FUNCTIONS = (
    Point("mlx.core", "eval", EVALUATING),
    Point("mlx.core", "async_eval", DISPATCHING),
    Point("inference.engine.scheduler", "Scheduler.wait", IDLE),
    Point("inference.engine.scheduler", "Scheduler.take_cancelled", "admission"),
    Point("inference.engine.scheduler", "Scheduler.admit", "admission"),
    Point("inference.engine.scheduler", "Scheduler.release", "admission"),
    Point("inference.engine.batch", "Batch.step", "batch bookkeeping"),
    Point("inference.engine.batch", "read_slice", READING),
    Point("inference.engine.batch", "read_together", READING),
    Point("inference.decoding.sampling", "Sampler.__call__", SAMPLING),
    Point("inference.decoding.scores", "PendingScores.__init__", "log-probabilities"),
    Point("inference.decoding.scores", "PendingScores.read", "log-probabilities"),
    Point("inference.speculation.pace", "Pace.drafts", "speculation"),
    Point("inference.speculation.pace", "Pace.is_worth_waiting", "speculation"),
    Point("inference.speculation.drafter", "Drafter.learn", "speculation"),
    Point("inference.engine.sequence", "Sequence.take", "building chunks"),
    Point("inference.engine.batch", "Batch._keep", "prefix cache"),
    Point("inference.engine.prompt_queue", "PromptQueue.start", "prefix cache"),
    Point("inference.engine.detokenizer", "BytesDetokenizer.add", "detokenising"),
    Point("inference.engine.detokenizer", "WindowDetokenizer.add", "detokenising"),
    Point("inference.engine.stop_strings", "StopStrings.add", "stop strings"),
    Point("inference.engine.mlx_engine", "MlxEngine._emit", "sink"),
)

EMISSIONS = (
    Point("inference.engine.mlx_engine", "MlxEngine._emit", ""),
    Point("inference.scripted.engine", "ScriptedEngine._emit", ""),
)
"""What gives the chunks of a step to the engine's sink."""
