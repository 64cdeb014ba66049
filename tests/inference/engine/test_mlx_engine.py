"""The real engine on the real model: batching changes nothing, the prefix cache changes nothing but the time."""

import dataclasses
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from inference import GenerationRequest, ModelEntry, ModelError, Sampling, open_model
from tests.inference.recorder import Client, Recorder

pytestmark = pytest.mark.real_model

QUESTIONS = [
    "What is the capital of France?",
    "Name three colours.",
    "What is two plus two?",
    "Write one sentence about the sea.",
    "Who wrote Hamlet?",
    "What do bees make? Answer with one sentence, please, and say where they make it.",
    "Say hello.",
    "What is the opposite of cold?",
]


def test_sequences_that_join_at_different_times_say_what_each_says_alone(mlx: Client) -> None:
    alone = [mlx.recorder.text(mlx.submit(question, max_tokens=7)) for question in QUESTIONS]
    together = []
    for i, question in enumerate(QUESTIONS):
        together.append(mlx.submit(question, max_tokens=7))
        if i % 3 == 0:
            mlx.recorder.wait(together[-1], tokens=2)
    assert [mlx.recorder.text(request_id) for request_id in together] == alone
    assert "Paris" in alone[0]


def test_the_next_turn_starts_from_the_cache_and_says_the_same(mlx: Client) -> None:
    first = mlx.recorder.text(mlx.submit(QUESTIONS[0], scope="one"))
    cached = mlx.submit(QUESTIONS[0], first, "And of Germany?", scope="one")
    uncached = mlx.submit(QUESTIONS[0], first, "And of Germany?", scope="other")
    assert mlx.recorder.text(cached) == mlx.recorder.text(uncached)
    prompt = len(mlx.tokenizer.render([{"role": "user", "content": QUESTIONS[0]}]))
    assert mlx.recorder.wait(cached)[0].cached_tokens > prompt
    assert mlx.recorder.wait(uncached)[0].cached_tokens == 0
    assert mlx.engine.load().memory_cache.nbytes > 0


def test_the_same_prompt_again_is_cached_but_for_one_token(mlx: Client) -> None:
    texts = [mlx.recorder.text(mlx.submit(QUESTIONS[1], max_tokens=8, scope="again")) for _ in range(2)]
    again = mlx.submit(QUESTIONS[1], max_tokens=8, scope="again")
    assert mlx.recorder.text(again) == texts[0] == texts[1]
    prompt = mlx.tokenizer.render([{"role": "user", "content": QUESTIONS[1]}])
    assert mlx.recorder.wait(again)[0].cached_tokens == len(prompt) - 1


def test_a_long_prompt_is_read_in_slices_between_the_steps_of_others(mlx: Client) -> None:
    running = mlx.submit("Count from one to a hundred in words.", max_tokens=60)
    mlx.recorder.wait(running, tokens=1)
    began = len(mlx.recorder.steps)
    text = "The river flows to the sea. " * 100  # 701 tokens: three slices
    long = mlx.submit(f"{text}What flows to the sea?", max_tokens=4)
    mlx.recorder.wait(long, tokens=1)
    before_first = 0
    for step in mlx.recorder.steps[began:]:
        if any(chunk.request_id == long and chunk.tokens for chunk in step):
            break
        before_first += any(chunk.request_id == running and bool(chunk.tokens) for chunk in step)
    assert before_first >= 3
    mlx.engine.cancel(running)
    alone = mlx.submit(f"{text}What flows to the sea?", max_tokens=4)
    assert mlx.recorder.text(alone) == mlx.recorder.text(long)


def test_counts_are_exact_and_the_limit_ends_a_sequence(mlx: Client) -> None:
    limited = mlx.submit(QUESTIONS[3], max_tokens=3)
    assert len(mlx.recorder.tokens(limited)) == 3
    assert mlx.recorder.last(limited).finish == "length"
    ended = mlx.submit(QUESTIONS[0], max_tokens=50)
    assert mlx.recorder.last(ended).finish == "stop"
    assert 2 not in mlx.recorder.tokens(ended)
    assert "<|im_end|>" not in mlx.recorder.text(ended)


def test_a_seed_repeats_a_sequence_beside_any_neighbours(mlx: Client) -> None:
    seeded = Sampling(temperature=1.2, top_p=0.9, seed=11)
    alone = mlx.recorder.text(mlx.submit(QUESTIONS[3], max_tokens=12, sampling=seeded))
    others = [mlx.submit(QUESTIONS[3], max_tokens=12, sampling=Sampling(temperature=1.2)) for _ in range(2)]
    beside = mlx.submit(QUESTIONS[3], max_tokens=12, sampling=seeded)
    assert mlx.recorder.text(beside) == alone
    for request_id in others:
        mlx.recorder.wait(request_id)


def test_emoji_and_japanese_come_whole(mlx: Client) -> None:
    asked = mlx.submit("Repeat exactly: 😀🎉 日本語のテキスト 🌍", max_tokens=40)
    chunks = mlx.recorder.wait(asked)
    assert all("\ufffd" not in chunk.text for chunk in chunks)
    assert any(ord(letter) > 0x2000 for letter in mlx.recorder.text(asked))
    assert any(chunk.tokens and not chunk.text for chunk in chunks), "some token ends inside a character"


def test_cancelling_ends_a_sequence_and_keeps_its_state(mlx: Client) -> None:
    asked = mlx.submit("Write a long story.", max_tokens=5000, scope="cancelled")
    mlx.recorder.wait(asked, tokens=3)
    mlx.engine.cancel(asked)
    assert mlx.recorder.last(asked).finish == "cancelled"
    assert mlx.engine.load().running == 0
    again = mlx.submit("Write a long story.", max_tokens=1, scope="cancelled")
    assert mlx.recorder.wait(again)[0].cached_tokens > 0


def test_prompts_that_cannot_be_read_are_refused_alone(mlx: Client) -> None:
    request = GenerationRequest(id="empty", prompt=(), max_tokens=1, sampling=Sampling())
    mlx.engine.submit(request)
    mlx.engine.submit(dataclasses.replace(request, id="long", prompt=(5,) * 8192))
    mlx.engine.submit(dataclasses.replace(request, id="none", prompt=(5,), max_tokens=0))
    mlx.engine.submit(dataclasses.replace(request, id="unknown", prompt=(5, 49152)))
    assert {mlx.recorder.last(name).finish for name in ("empty", "long", "none", "unknown")} == {"error"}
    assert mlx.recorder.last("long").error == "The prompt fills the model's context."
    assert mlx.recorder.last("unknown").error == "The prompt contains a token that the model doesn't know."


def test_a_failed_step_ends_its_sequences_and_the_engine_continues(
    mlx: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> object:
        raise RuntimeError("out of memory\nand more")

    with monkeypatch.context() as patched:
        patched.setattr("inference.decoding.sampling.Sampler.__call__", broken)
        failed = mlx.submit(QUESTIONS[0])
        assert mlx.recorder.last(failed).error == "The model failed in a step (out of memory)."
    assert "Paris" in mlx.recorder.text(mlx.submit(QUESTIONS[0], max_tokens=10))
    assert "a sequence failed" in caplog.text


def test_a_model_that_cannot_be_loaded_is_one_sentence(default_model: ModelEntry, tmp_path: Path) -> None:
    for file in default_model.path.iterdir():
        (tmp_path / file.name).symlink_to(file)
    config = tmp_path / "config.json"
    text = config.read_text().replace('"num_hidden_layers": 30', '"num_hidden_layers": 31')
    config.unlink()
    config.write_text(text)
    engine, _ = open_model(dataclasses.replace(default_model, path=tmp_path), sink=Recorder())
    for _ in range(2):
        with pytest.raises(ModelError, match="can't be loaded") as refused:
            engine.start()
        assert "\n" not in str(refused.value)
    with pytest.raises(ModelError, match="not running"):
        engine.submit(GenerationRequest(id="x", prompt=(1,), max_tokens=1, sampling=Sampling()))


PROGRAM = """
import sys, threading
from pathlib import Path
from inference import GenerationRequest, MlxOptions, Registry, Sampling, open_model
name, data, blas, end = sys.argv[1:]
arrived = threading.Event()
last = {}
def sink(chunks):
    for chunk in chunks:
        last[chunk.request_id] = chunk.finish
        if chunk.tokens:
            arrived.set()
engine, tokenizer = open_model(
    Registry(data).get_model(name), sink=sink, options=MlxOptions(batch_size=1, blas_cache=Path(blas))
)
print("starting", flush=True)
engine.start()
prompt = tokenizer.render([{"role": "user", "content": "Write a long story."}])
for i in range(2):
    engine.submit(GenerationRequest(id=str(i), prompt=prompt, max_tokens=5000, sampling=Sampling()))
arrived.wait()
if end == "close":
    engine.close()
    print(last)
"""


def run(default_model: ModelEntry, blas_cache: Path, end: str) -> subprocess.Popen[str]:
    arguments = [default_model.name, str(default_model.path.parent.parent), str(blas_cache), end]
    command = [sys.executable, "-c", PROGRAM, *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_closing_with_live_work_cancels_it_and_the_process_exits_with_0(
    default_model: ModelEntry, blas_cache: Path
) -> None:
    process = run(default_model, blas_cache, "close")
    output, errors = process.communicate(timeout=100)
    assert (process.returncode, errors) == (0, "")
    assert output.splitlines()[-1] == "{'0': 'cancelled', '1': 'cancelled'}"


def test_a_process_that_forgets_to_close_exits_with_0_too(default_model: ModelEntry, blas_cache: Path) -> None:
    process = run(default_model, blas_cache, "forget")
    _, errors = process.communicate(timeout=100)
    assert (process.returncode, errors) == (0, "")


def test_an_interrupt_while_the_model_loads_ends_the_process_at_once(
    default_model: ModelEntry, blas_cache: Path
) -> None:
    process = run(default_model, blas_cache, "close")
    assert process.stdout is not None
    assert process.stdout.readline() == "starting\n"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=100)
    assert process.returncode in (1, -signal.SIGINT), "no abort"
    assert errors.rstrip().endswith("KeyboardInterrupt")
