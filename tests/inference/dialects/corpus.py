"""Transcripts written from each model's documented format, with the pieces that they mean."""

from .malformed_corpus import MALFORMED
from .object_corpus import DEEPSEEK, HERMES, KIMI, LLAMA, MISTRAL
from .parameter_corpus import DSML, GEMMA, GLM, HARMONY, PYTHONIC, QWEN_XML

CORPUS = [
    *HERMES, *QWEN_XML, *LLAMA, *MISTRAL, *GLM, *DEEPSEEK, *DSML, *KIMI, *HARMONY, *GEMMA, *PYTHONIC, *MALFORMED,
]  # fmt: skip
