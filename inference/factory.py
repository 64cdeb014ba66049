"""Creates the engine and the tokenizer of a model. Imports no model library before the engine starts."""

from inference.engine.mlx_engine import MlxEngine, MlxOptions
from inference.memory import ModelMemory
from inference.models.chat_template import TemplateTokenizer
from inference.models.registry import ModelEntry
from inference.scripted.engine import ScriptedEngine, ScriptedOptions
from inference.scripted.tokenizer import ScriptedTokenizer
from inference.types import ChatTokenizer, Engine, Sink


def open_model(
    model: ModelEntry | str,
    *,
    sink: Sink,
    options: MlxOptions | ScriptedOptions | None = None,
    memory: ModelMemory | None = None,
) -> tuple[Engine, ChatTokenizer]:
    """An engine, not started, and its tokenizer: on MLX for a registry entry, scripted for a name.

    memory: its part of what all models share; without it there is no limit.
    """
    if isinstance(model, ModelEntry):
        if isinstance(options, ScriptedOptions):
            raise TypeError("a registered model takes MlxOptions")
        return MlxEngine(model, sink=sink, options=options, memory=memory), TemplateTokenizer(model.path)
    if isinstance(options, MlxOptions):
        raise TypeError("a scripted model takes ScriptedOptions")
    return ScriptedEngine(name=model, sink=sink, options=options, memory=memory), ScriptedTokenizer()
