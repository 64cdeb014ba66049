"""Inference: plain Python that knows nothing of Django or HTTP. Importing this package imports no model library.

A `Registry` lists the models on this machine; `pull_default`, `pull_hub`, `add_directory` and `add_gguf` install them;
`open_model` creates the engine and the tokenizer of one. `inference.types` has the interface to everything above.
"""

from inference.engine.mlx_engine import MlxOptions
from inference.factory import open_model
from inference.memory import LEAST_TOKENS, Footprint, memory_for_models, read_footprint
from inference.models.downloads import (
    DEFAULT_ALIAS,
    DEFAULT_MODEL,
    add_directory,
    add_gguf,
    pull_default,
    pull_hub,
)
from inference.models.model_files import read_dialect
from inference.models.registry import ModelEntry, Registry
from inference.models.verify import ModelFacts, verify_loadable
from inference.prefix_cache.disk_cache import DiskOptions
from inference.scripted.engine import ScriptedOptions
from inference.speculation.options import SpeculationOptions
from inference.types import (
    ChatTokenizer,
    Chunk,
    Constraint,
    Engine,
    EngineLoad,
    GenerationRequest,
    Message,
    ModelError,
    ModelInfo,
    Sampling,
)

__all__ = [
    "DEFAULT_ALIAS",
    "DEFAULT_MODEL",
    "LEAST_TOKENS",
    "ChatTokenizer",
    "Chunk",
    "Constraint",
    "DiskOptions",
    "Engine",
    "EngineLoad",
    "Footprint",
    "GenerationRequest",
    "Message",
    "MlxOptions",
    "ModelEntry",
    "ModelError",
    "ModelFacts",
    "ModelInfo",
    "Registry",
    "Sampling",
    "ScriptedOptions",
    "SpeculationOptions",
    "add_directory",
    "add_gguf",
    "memory_for_models",
    "open_model",
    "pull_default",
    "pull_hub",
    "read_dialect",
    "read_footprint",
    "verify_loadable",
]
