"""mlx-lm's `BatchGenerator` and nothing else: reads a JSON list of prompts a line, answers tokens a second a line."""

import json
import sys
import time
from pathlib import Path


def main(model_path: str, libraries: str, new_tokens: int) -> None:
    """Serve standard input until it ends."""
    from inference.engine.blas import preload_openblas

    preload_openblas(Path(libraries))
    from mlx_lm import load
    from mlx_lm.generate import BatchGenerator

    model, tokenizer = load(model_path)[:2]
    print("ready", flush=True)
    for line in sys.stdin:
        texts = json.loads(line)
        prompts = [
            tokenizer.apply_chat_template([{"role": "user", "content": text}], add_generation_prompt=True)
            for text in texts
        ]
        generator = BatchGenerator(model, max_tokens=new_tokens, stop_tokens=[[t] for t in tokenizer.eos_token_ids])
        started = time.perf_counter()
        left = set(generator.insert(prompts))
        tokens = 0
        while left:
            _, generated = generator.next()
            for response in generated:
                tokens += response.finish_reason != "stop"
                if response.finish_reason is not None:
                    left.discard(response.uid)
        print(tokens / (time.perf_counter() - started), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
