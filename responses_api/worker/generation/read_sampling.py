"""Converts a request's sampling parameters for the engine."""

from inference.types import Sampling
from responses_api.errors import InvalidValue
from responses_api.protocol import CreateResponse


def read_sampling(request: CreateResponse, *, temperature: float, top_p: float, vocab_size: int) -> Sampling:
    """The sampling of a request; `temperature` and `top_p` are its effective values, with the model's defaults applied.

    Raises :class:`InvalidValue` for a bias on a token that the model doesn't have.
    """
    bias = tuple((int(name), value) for name, value in request.logit_bias.items())
    unknown = max((token for token, _ in bias), default=-1)
    if unknown >= vocab_size:
        param = f"logit_bias.{unknown}"
        raise InvalidValue(
            f"`{param}` is not a token of this model, whose ids go from 0 to {vocab_size - 1}; remove it.", param=param
        )
    return Sampling(
        temperature=temperature,
        top_k=request.top_k,
        top_p=top_p,
        min_p=request.min_p,
        repetition_penalty=request.repetition_penalty,
        presence_penalty=request.presence_penalty,
        frequency_penalty=request.frequency_penalty,
        logit_bias=bias,
        seed=request.seed,
    )
