"""A server that is killed and started again resumes long conversations from the disk, and says the same."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.inference.tiny_models import STOP, WINDOW, write_tiny_model

KINDS = ("full", "window", "recurrent", "hybrid")
PROMPT = [7 * number % 290 for number in range(5 * WINDOW)]

PROGRAM = """
import json, sys, time
from pathlib import Path
from inference import GenerationRequest, MlxOptions, ModelEntry, Sampling, open_model
from inference.prefix_cache.disk_cache import DiskOptions
from tests.inference.recorder import Recorder

entry, directory, stop, requests = json.loads(sys.argv[1])
for kind, fields in entry.items():
    fields["path"], fields["aliases"] = Path(fields["path"]), ()
    disk = DiskOptions(directory=Path(directory), secret=b"k" * 32, max_bytes=10**8)
    recorder = Recorder()
    engine, _ = open_model(ModelEntry(**fields), sink=recorder, options=MlxOptions(prefill_step=16, disk=disk))
    engine.start()
    answers = []
    for number, (prompt, scope, on_disk) in enumerate(requests[kind]):
        engine.submit(
            GenerationRequest(
                id=str(number), prompt=tuple(prompt), max_tokens=20, cache_scope=scope, cache_on_disk=on_disk,
                sampling=Sampling(temperature=0.0, logit_bias=((stop, -100.0),)),
            )
        )
        chunks = recorder.wait(str(number))
        answers.append((recorder.tokens(str(number)), chunks[0].cached_tokens))
    engine._disk_cache.settle()
    print(json.dumps([kind, answers]), flush=True)
    if kind != list(entry)[-1]:
        engine.close()
time.sleep(100)
"""

Answers = dict[str, list[tuple[list[int], int]]]


def run_and_kill(entries: dict[str, Any], directory: Path, requests: dict[str, Any]) -> Answers:
    """What the engines of a process answered, and how many tokens of each prompt were cached."""
    argument = json.dumps([entries, str(directory), STOP, requests])
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
    command = [sys.executable, "-c", PROGRAM, argument]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in entries]
        process.send_signal(signal.SIGKILL)
    return dict(map(json.loads, lines))


def test_a_killed_engine_resumes_from_the_disk(tmp_path: Path) -> None:
    """For every kind of attention state: as text and without reading the conversation again; what was not to be stored
    is read again, and so is another owner's.
    """
    pytest.importorskip("mlx.core")
    entries = {kind: write_tiny_model(tmp_path / kind, kind).as_dict() for kind in KINDS}
    mine, secret, directory = PROMPT, PROMPT[::-1], tmp_path / "cache"
    asked = {kind: [(mine, "a", True), (secret, "a", False)] for kind in KINDS}
    first = run_and_kill(entries, directory, asked)
    requests = {}
    for kind in KINDS:
        (said, _), (unsaid, _) = first[kind]
        longer = [*mine, *said, 5, 6, 7]
        requests[kind] = [(longer, "a", True), ([*secret, *unsaid, 5], "a", True), (longer, "b", True)]
    second = run_and_kill(entries, directory, requests)
    for kind in KINDS:
        resumed, not_stored, other = second[kind]
        assert (resumed[1], not_stored[1], other[1]) == (len(mine) + 19, 0, 0)
        assert resumed[0] == other[0] != []
