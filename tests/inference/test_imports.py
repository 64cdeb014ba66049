"""Web processes may import this package."""

import subprocess
import sys

PROGRAM = """
import sys
import inference, inference.types, inference.models.registry, inference.scripted.engine
libraries = {"gguf", "mlx", "mlx_lm", "transformers", "tokenizers", "numpy", "huggingface_hub"}
print(*sorted(libraries & set(sys.modules)))
"""


def test_importing_the_package_imports_no_model_library() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
