"""The engine, the models, and their memory."""

from dataclasses import dataclass
from pathlib import Path

from responses_site import setting_kinds as kinds
from responses_site.setting_kinds import GIB, MIB, NAMES, TEXT

from .declaration import setting


@dataclass(frozen=True, kw_only=True)
class ModelSettings:
    """The engine, the models, and their memory."""

    default_model: str = setting(
        "RESPONSES_DEFAULT_MODEL", TEXT, "smollm2-135m", "Model for requests without `model`; a name or an alias."
    )
    models: tuple[str, ...] = setting(
        "RESPONSES_MODELS",
        NAMES,
        (),
        "Models that a worker serves, by name or alias. For the scripted engine, the names of its models.",
        default_text="all in the data directory",
    )
    engine: str = setting(
        "RESPONSES_ENGINE",
        kinds.choice("mlx", "scripted"),
        "mlx",
        "The engine: models on MLX, or a script for tests.",
    )
    scripted_token_seconds: float = setting(
        "RESPONSES_SCRIPTED_TOKEN_SECONDS", kinds.seconds(0), 0.0, "Time per token of the scripted engine."
    )
    scripted_load_seconds: float = setting(
        "RESPONSES_SCRIPTED_LOAD_SECONDS", kinds.seconds(0), 0.0, "Time in which a scripted model is loaded."
    )
    batch_size: int = setting(
        "RESPONSES_BATCH_SIZE",
        kinds.integer(1, 4096),
        32,
        "Maximum number of sequences that a model generates at the same time.",
    )
    prefill_step: int = setting(
        "RESPONSES_PREFILL_STEP",
        kinds.integer(1, 65536),
        256,
        "Prompt tokens processed in one step; running streams wait for each step.",
    )
    step_timeout_seconds: float = setting(
        "RESPONSES_STEP_TIMEOUT_SECONDS",
        kinds.seconds(0),
        120.0,
        "Maximum time of one step of an engine. After it, its requests fail, and the process ends with status 70, for "
        "its supervisor to start a new one. 0 means no limit.",
    )
    kv_bits: int | None = setting(
        "RESPONSES_KV_BITS",
        kinds.number_among(8, 4),
        None,
        "Bits per number in the attention state of sequences. With 8 or 4, contexts and cached prompts take about a "
        "quarter or a seventh of the memory of fp32 (a half or a quarter of that of 16 bits), answers differ slightly, "
        "and long contexts are slower. Models whose state can't be quantised aren't served then.",
        default_text="those of the model",
    )
    speculation: str = setting(
        "RESPONSES_SPECULATION",
        kinds.choice("auto", "off"),
        "auto",
        "Guess repeated text and verify it in one pass, where that is measured to be faster. It changes no answer.",
    )
    speculation_max_sequences: int = setting(
        "RESPONSES_SPECULATION_MAX_SEQUENCES",
        kinds.integer(1, 64),
        4,
        "Maximum number of sequences generated at the same time for which text is guessed.",
    )
    speculation_max_tokens: int = setting(
        "RESPONSES_SPECULATION_MAX_TOKENS",
        kinds.integer(1, 31),
        31,
        "Maximum number of tokens guessed at once for a sequence.",
    )
    memory_bytes: int | None = setting(
        "RESPONSES_MEMORY_BYTES",
        kinds.byte_count(1),
        None,
        "Memory that the models of a worker may use together: weights, running sequences, cached prompts. A model is "
        "loaded when a request needs it; the least recently used ones are unloaded for it. A request that needs more "
        "than there is is answered 400.",
        default_text="what Metal recommends, else three quarters of the machine's memory; `manage.py team` divides it "
        "between its workers",
    )
    model_ttl_seconds: float = setting(
        "RESPONSES_MODEL_TTL_SECONDS",
        kinds.seconds(0),
        0.0,
        "How long a model that nobody uses stays in memory; 0 keeps it until another model needs the memory.",
    )
    model_pins: tuple[str, ...] = setting(
        "RESPONSES_MODEL_PINS",
        NAMES,
        (),
        "Models that are loaded at the start and never unloaded, by name or alias; those that don't fit together with "
        "the earlier ones are not served.",
        default_text="none",
    )
    claim_ahead: int = setting(
        "RESPONSES_CLAIM_AHEAD",
        kinds.integer(0),
        512,
        "Responses that a worker claims in addition to those that it generates.",
    )
    prompt_cache_max_bytes: int | None = setting(
        "RESPONSES_PROMPT_CACHE_MAX_BYTES",
        kinds.byte_count(0),
        None,
        "Memory for prompt prefixes that each model keeps for reuse; 0 keeps none.",
        default_text="what one conversation takes that fills the model's context, from 256 MiB to 2 GiB",
    )
    prompt_cache_dir: Path | None = setting(
        "RESPONSES_PROMPT_CACHE_DIR",
        kinds.DIRECTORY,
        None,
        "Directory in which workers also cache prompts of stored responses, encrypted, so that long conversations are "
        "resumed at once after a restart. No other server may use it.",
        default_text="none",
    )
    prompt_cache_dir_max_bytes: int = setting(
        "RESPONSES_PROMPT_CACHE_DIR_MAX_BYTES",
        kinds.byte_count(1),
        16 * GIB,
        "Maximum bytes of cached prompts in `RESPONSES_PROMPT_CACHE_DIR`; beyond it, the least recently used ones are "
        "removed.",
    )
    reasoning_echo_max_bytes: int = setting(
        "RESPONSES_REASONING_ECHO_MAX_BYTES",
        kinds.byte_count(0),
        16 * MIB,
        "Memory for models' thinking, for clients that send a turn back without it; 0 keeps none.",
    )
