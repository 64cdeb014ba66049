"""Loads an MLX model for serving. Call it on the thread that will run the model."""

import contextlib
import itertools
import logging
import resource
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from inference.constraints.matching import Vocabulary
from inference.engine.detokenizer import BytesDetokenizer, Detokenizer, WindowDetokenizer, byte_level_tokens
from inference.memory import StateCost
from inference.models.model_files import read_dialect, special_tokens
from inference.types import ModelError, Progress

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedModel:
    """A model on its device, with what is needed to read its tokens."""

    model: Any
    stop_tokens: tuple[int, ...]
    new_detokenizer: Callable[[], Detokenizer]
    vocabulary: Vocabulary | None = None
    """The vocabulary that constraints are compiled for; None when the tokenizer can't be used for them."""
    weights_bytes: int = 0
    state_cost: StateCost = field(default_factory=StateCost)


def load_model(directory: Path, *, as_fp32: bool, progress: Progress, kv_bits: int | None = None) -> LoadedModel:
    """Load a model and run one step. Raises ModelError.

    as_fp32: turn the weights into fp32 in memory, the only form that is fast on a CPU. kv_bits: of the keys and values
    of sequences, if they are to be quantised.
    """
    progress("Loading the model library", 0.0)
    try:
        with _file_limit_preserved():
            from mlx.utils import tree_flatten
            from mlx_lm import utils

            from inference.decoding import cpu_attention
            from inference.decoding.last_logits import select_logits
            from inference.engine.state_cost import measure_state_cost
        cpu_attention.install()
        progress("Loading the weights", 0.1)
        model, config = utils.load_model(directory)
        if as_fp32:
            _become_fp32(model)
        select_logits(model)
        if kv_bits is not None:
            model = _with_quantised_state(model, kv_bits)
        progress("Warming up", 0.8)
        state_cost = measure_state_cost(model)
        parameters: Any = tree_flatten(model.parameters())
    except ModelError:
        raise
    except Exception as error:
        reason = str(error).strip().partition("\n")[0].rstrip(".:") or type(error).__name__
        raise ModelError(f"The model in {directory} can't be loaded ({reason}).") from error
    stop_tokens = _stop_tokens(config)
    if not stop_tokens:
        raise ModelError(f"The model in {directory} doesn't say which token ends a turn (eos_token_id).")
    loaded = LoadedModel(
        model=model,
        stop_tokens=stop_tokens,
        new_detokenizer=_detokenizers(directory),
        vocabulary=load_vocabulary(directory, stop_tokens=stop_tokens),
        weights_bytes=sum(value.nbytes for _, value in parameters),
        state_cost=state_cost,
    )
    progress("Loaded", 1.0)
    return loaded


def _with_quantised_state(model: Any, bits: int) -> Any:
    from inference.engine.quantised_state import QuantisedState

    try:
        return QuantisedState(model, bits)
    except ValueError as error:
        raise ModelError(f"This model can't be served with {bits} bits per key and value: {error}.") from error


def _become_fp32(model: Any) -> None:
    import mlx.core as mx
    from mlx_lm import utils

    utils.dequantize_model(model)
    model.set_dtype(mx.float32)
    mx.eval(model.parameters())


def _stop_tokens(config: dict[str, Any]) -> tuple[int, ...]:
    """The ids in config.json, or those in generation_config.json if it has them (mlx-lm merges the two)."""
    ids = config.get("eos_token_id")
    if ids is None and isinstance(config.get("text_config"), dict):
        ids = config["text_config"].get("eos_token_id")
    return tuple(ids) if isinstance(ids, list) else () if ids is None else (int(ids),)


def _detokenizers(directory: Path) -> Callable[[], Detokenizer]:
    """A factory of detokenizers that show the markers of the model's dialect, also those that are special tokens."""
    shown = read_dialect(directory).markers
    table = byte_level_tokens(directory / "tokenizer.json", shown=shown)
    if table is not None:
        return lambda: BytesDetokenizer(table)
    from transformers import AutoTokenizer

    try:
        tokenizer: Any = AutoTokenizer.from_pretrained(str(directory), local_files_only=True)
    except Exception as error:
        raise ModelError(f"The tokenizer in {directory} can't be loaded.") from error

    markers = {number: text for text, number in special_tokens(directory).items() if text in shown}

    def decode(tokens: list[int]) -> str:
        parts = []
        for marker, run in itertools.groupby(tokens, markers.get):
            ids = list(run)
            parts.append(
                marker * len(ids)
                if marker is not None
                else tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
            )
        return "".join(parts)

    return lambda: WindowDetokenizer(decode)


def load_vocabulary(directory: Path, *, stop_tokens: Sequence[int]) -> Vocabulary | None:
    """The vocabulary of an MLX directory; None when its tokenizer is of a kind that grammars can't use."""
    try:
        file = directory / "tokenizer.json"
        text = file.read_text(encoding="utf-8") if file.is_file() else _converted(directory)
        return Vocabulary.from_json(text, stop_tokens=stop_tokens)
    except Exception as error:  # of any kind: the model serves without constraints
        log.warning("the tokenizer in %s can't be used for constraints (%s)", directory, error)
        return None


def _converted(directory: Path) -> str:
    """The tokenizer as transformers converts it from an older form."""
    from transformers import AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(str(directory), local_files_only=True)
    return str(tokenizer.backend_tokenizer.to_str())


@contextlib.contextmanager
def _file_limit_preserved() -> Iterator[None]:
    """Keep the process's limit of open files from being lowered: importing mlx_lm sets it to 2,048."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    set_limit = resource.setrlimit

    def at_least(kind: int, limits: tuple[int, int]) -> None:
        unlimited = resource.RLIM_INFINITY
        if kind == resource.RLIMIT_NOFILE and before[0] != unlimited and before[0] < limits[0]:
            hard = before[1]
            set_limit(kind, (limits[0] if hard == unlimited else min(limits[0], hard), hard))

    resource.setrlimit = at_least
    try:
        yield
    finally:
        resource.setrlimit = set_limit
