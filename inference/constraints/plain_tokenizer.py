"""Makes a tokenizer.json in which no text encodes to a special token, for grammars. Standard library only.

llguidance encodes the text that a grammar forces with the model's tokenizer, which would encode the text "<|im_end|>"
as the token that ends a turn, and then refuse it. Special tokens keep their ids under names that can't be guessed.
"""

import json
import secrets
from typing import Any


def with_hidden_specials(tokenizer_json: str) -> str:
    """The tokenizer with its special tokens renamed. Raises ValueError, KeyError or TypeError for an invalid one."""
    tokenizer: dict[str, Any] = json.loads(tokenizer_json)
    secret = secrets.token_hex(8)
    names: dict[str, str] = {}
    for token in tokenizer.get("added_tokens", ()):
        if token.get("special"):
            names[token["content"]] = token["content"] = f"\ue000{secret}.{token['id']}\ue001"
    model = tokenizer.get("model", {})
    vocabulary = model.get("vocab")
    if isinstance(vocabulary, dict):
        model["vocab"] = {names.get(text, text): number for text, number in vocabulary.items()}
    elif isinstance(vocabulary, list):  # pairs of text and score
        model["vocab"] = [[names.get(text, text), score] for text, score in vocabulary]
    if isinstance(model.get("unk_token"), str):
        model["unk_token"] = names.get(model["unk_token"], model["unk_token"])
    tokenizer["post_processor"] = None  # it names them, and adds them to whole prompts only
    return json.dumps(tokenizer, ensure_ascii=False)
