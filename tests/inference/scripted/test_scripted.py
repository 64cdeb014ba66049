"""The scripted engine answers by its script and keeps the engine's promises."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inference import ScriptedOptions
from inference.scripted.tokenizer import decode, encode
from inference.types import GenerationRequest, ModelError, Sampling
from tests.inference.recorder import Client

many = settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])


def test_it_echoes_the_last_user_message(scripted: Client) -> None:
    asked = scripted.submit("Hello", "Hi", "How are you?")
    assert scripted.recorder.text(asked) == "You said: How are you?"
    assert scripted.recorder.last(asked).finish == "stop"
    assert len(scripted.recorder.tokens(asked)) == len(encode("You said: How are you?"))


@many
@given(text=st.text(st.characters(exclude_categories=["Cs"])).filter(lambda text: "[[" not in text))
def test_no_chunk_ends_inside_a_character(scripted: Client, text: str) -> None:
    asked = scripted.submit(text, max_tokens=100_000)
    pieces = [chunk.text for chunk in scripted.recorder.wait(asked)]
    assert "".join(pieces) == f"You said: {text.strip()}"


@pytest.mark.parametrize(
    ("message", "text", "tokens", "finish", "error"),
    [
        ("[[say: One two]] ignored", "One two", 2, "stop", ""),
        ("[[say: a]][[say:  b]]", "ab", 2, "stop", ""),
        ("[[tokens: 5]]", "1 2 3 4 5", 5, "stop", ""),
        ("[[tokens: 2]][[fail: The disk burns.]]", "1 2", 2, "error", "The disk burns."),
        ("Hello [[fail: No.]]", "", 0, "error", "No."),
        ("[[tokens: many]]", "", 0, "error", "The script can't read [[tokens: many]]."),
        ("[[slow: 0]] Hello", "You said: Hello", 3, "stop", ""),
        ("[[unknown: 1]]", "You said: [[unknown: 1]]", 5, "stop", ""),
    ],
)
def test_directives(scripted: Client, message: str, text: str, tokens: int, finish: str, error: str) -> None:
    asked = scripted.submit(message)
    assert scripted.recorder.text(asked) == text
    assert len(scripted.recorder.tokens(asked)) == tokens
    assert (scripted.recorder.last(asked).finish, scripted.recorder.last(asked).error) == (finish, error)


@pytest.mark.parametrize(
    ("message", "stop", "text", "tokens", "finish"),
    [
        ("[[say: one two three]]", ("two",), "one ", 2, "stop"),
        ("[[say: one two three]]", ("e two t",), "on", 3, "stop"),
        ("[[say: one two three]]", ("nothing", "one"), "", 1, "stop"),
        ("[[say: one two three]]", ("two three four", "hree!"), "one two three", 3, "stop"),
        ("[[say: 日本語]]", ("本",), "日", 6, "stop"),
        ("[[tokens: 5]][[fail: No.]]", ("5 6",), "1 2 3 4 5", 5, "error"),
        ("[[tokens: 9]]", ("7 8 9 10",), "1 2 3 4 5 6 7", 7, "length"),
        ("[[tokens: 9]]", ("7",), "1 2 3 4 5 6 ", 7, "stop"),
    ],
)
def test_stop_strings_cut_the_text_exactly(
    scripted: Client, message: str, stop: tuple[str, ...], text: str, tokens: int, finish: str
) -> None:
    """What was held back comes out when it was no stop string after all, however the sequence ends."""
    asked = scripted.submit(message, stop=stop, max_tokens=7)
    assert scripted.recorder.text(asked) == text
    assert len(scripted.recorder.tokens(asked)) == tokens
    assert scripted.recorder.last(asked).finish == finish


def test_a_cancelled_sequence_gives_out_what_was_held_back(scripted: Client) -> None:
    asked = scripted.submit("[[tokens: 3]][[slow: 1000]]", stop=("1 2",))
    scripted.recorder.wait(asked, tokens=1)
    scripted.engine.cancel(asked)
    assert scripted.recorder.text(asked) == "1"


def test_it_shows_the_prompt_it_was_given(scripted: Client) -> None:
    asked = scripted.submit("One", "Two", "[[show-prompt]]")
    prompt = scripted.tokenizer.render(
        [
            {"role": "user", "content": "One"},
            {"role": "assistant", "content": "Two"},
            {"role": "user", "content": "[[show-prompt]]"},
        ]
    )
    assert scripted.recorder.text(asked) == decode(prompt)


def test_the_token_limit_ends_a_sequence(scripted: Client) -> None:
    asked = scripted.submit("[[tokens: 1000000000]]", max_tokens=7)
    assert len(scripted.recorder.tokens(asked)) == 7
    assert scripted.recorder.last(asked).finish == "length"


@pytest.mark.parametrize("scripted", [ScriptedOptions(context_length=40)], indirect=True)
def test_the_context_ends_a_sequence(scripted: Client) -> None:
    asked = scripted.submit("[[tokens: 100]]")
    prompt = scripted.tokenizer.render([{"role": "user", "content": "[[tokens: 100]]"}])
    assert len(prompt) + len(scripted.recorder.tokens(asked)) == 40
    assert scripted.recorder.last(asked).finish == "length"
    refused = scripted.submit("word " * 50)
    assert scripted.recorder.last(refused).error == "The prompt fills the model's context."


def test_first_comes_the_start_and_last_the_finish(scripted: Client) -> None:
    chunks = scripted.recorder.wait(scripted.submit("Hello"))
    assert [chunk.started for chunk in chunks] == [True] + [False] * (len(chunks) - 1)
    assert [chunk.finish is not None for chunk in chunks] == [False] * (len(chunks) - 1) + [True]


@pytest.mark.parametrize("scripted", [ScriptedOptions(batch_size=2, token_seconds=0.001)], indirect=True)
def test_admission_is_by_priority_and_then_arrival(scripted: Client) -> None:
    held = [scripted.submit("[[tokens: 100000]]", max_tokens=10**6) for _ in range(2)]
    for request_id in held:
        scripted.recorder.wait(request_id, tokens=1)
    background = [scripted.submit("b", priority=1) for _ in range(2)]
    interactive = [scripted.submit("i") for _ in range(2)]
    assert scripted.engine.load().waiting == 4
    assert scripted.engine.load().free == 0
    for request_id in held:
        scripted.engine.cancel(request_id)
    for request_id in (*interactive, *background):
        scripted.recorder.wait(request_id)
    began = [chunk.request_id for step in scripted.recorder.steps for chunk in step if chunk.started]
    assert began == [*held, *interactive, *background]


@pytest.mark.parametrize("scripted", [ScriptedOptions(token_seconds=0.001)], indirect=True)
def test_cancelling_ends_a_sequence_once(scripted: Client) -> None:
    running = scripted.submit("[[tokens: 1000000]]", max_tokens=10**6)
    scripted.recorder.wait(running, tokens=3)
    scripted.engine.cancel(running)
    scripted.engine.cancel(running)
    scripted.engine.cancel("unknown")
    assert scripted.recorder.last(running).finish == "cancelled"
    assert scripted.recorder.text(scripted.submit("Hello")) == "You said: Hello"
    assert [chunk.finish for chunk in scripted.recorder.chunks[running] if chunk.finish] == ["cancelled"]


@pytest.mark.parametrize("scripted", [ScriptedOptions(batch_size=1)], indirect=True)
def test_a_waiting_request_is_cancelled_without_ever_starting(scripted: Client) -> None:
    running = scripted.submit("[[wait: 1000]] x")
    waiting = scripted.submit("never")
    scripted.engine.cancel(waiting)
    assert [(chunk.started, chunk.finish) for chunk in scripted.recorder.wait(waiting)] == [(False, "cancelled")]
    scripted.engine.cancel(running)
    scripted.recorder.wait(running)
    assert scripted.engine.load().running == 0


def test_closing_ends_what_is_live_and_refuses_the_rest(scripted: Client) -> None:
    live = [scripted.submit("[[wait: 1000]] x") for _ in range(40)]
    scripted.engine.close()
    scripted.engine.close()
    assert {scripted.recorder.last(request_id).finish for request_id in live} == {"cancelled"}
    with pytest.raises(ModelError, match="not running"):
        scripted.submit("late")


def test_a_sink_that_raises_does_not_stop_the_engine(scripted: Client, caplog: pytest.LogCaptureFixture) -> None:
    def broken(chunks: object) -> None:
        raise RuntimeError("sink")

    scripted.engine._sink = broken  # type: ignore[attr-defined]
    scripted.submit("lost")
    while scripted.engine.load().running or scripted.engine.load().waiting:
        pass
    scripted.engine._sink = scripted.recorder  # type: ignore[attr-defined]
    assert scripted.recorder.text(scripted.submit("Hello")) == "You said: Hello"
    assert "sink raised" in caplog.text


def test_hundreds_of_sequences_share_the_slots(scripted: Client) -> None:
    asked = [scripted.submit(f"[[tokens: {50 + i}]]") for i in range(264)]
    assert [len(scripted.recorder.tokens(request_id)) for request_id in asked] == [50 + i for i in range(264)]
    assert scripted.engine.load().free == 32


def test_a_live_id_is_refused(scripted: Client) -> None:
    live = scripted.submit("[[wait: 1000]] x")
    with pytest.raises(ValueError, match="live already"):
        scripted.engine.submit(GenerationRequest(id=live, prompt=(1,), max_tokens=1, sampling=Sampling()))
