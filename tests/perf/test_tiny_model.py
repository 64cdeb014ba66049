"""The tiny model fulfils the assumptions of its benchmark."""

from pathlib import Path

import pytest

from inference import MlxOptions, Registry, Sampling, open_model
from tests.inference.recorder import Recorder
from tests.perf.engines.tiny_model import CHARACTERS_PER_TOKEN, NAME, install_tiny_model, words


@pytest.mark.parametrize("temperature", [0.0, 2.0])
def test_every_answer_has_the_requested_number_of_words(tmp_path: Path, temperature: float) -> None:
    """No sampled token ends the answer, and each is a word of four characters."""
    from inference import GenerationRequest

    install_tiny_model(Registry(tmp_path), tmp_path)
    recorder = Recorder()
    engine, tokenizer = open_model(Registry(tmp_path).get_model(NAME), sink=recorder, options=MlxOptions())
    engine.start()
    try:
        prompt = tokenizer.render([{"role": "user", "content": words(50, seed=1)}])
        empty = tokenizer.render([{"role": "user", "content": ""}])
        assert len(prompt) == len(empty) + 50
        request = GenerationRequest(
            id="one", prompt=prompt, max_tokens=200, sampling=Sampling(temperature=temperature, seed=7)
        )
        engine.submit(request)
        chunks = recorder.wait("one")
    finally:
        engine.close()
    assert chunks[-1].finish == "length"
    answer = recorder.text("one")
    assert len(answer) == 200 * CHARACTERS_PER_TOKEN
    assert all(len(word) == CHARACTERS_PER_TOKEN - 1 for word in answer.split())
