"""Imports of web processes."""

from pathlib import Path

from tests.processes import run_python

ANSWER = """
import sys
import django
django.setup()
import responses_site.asgi, responses_site.http.server, responses_site.health
from django.urls import get_resolver
get_resolver().url_patterns
heavy = {"mlx", "mlx_lm", "transformers", "tokenizers", "numpy", "torch"} & set(sys.modules)
print(sorted(heavy))
"""


def test_web_processes_import_no_model_library(tmp_path: Path) -> None:
    """They load all of their code without any module of MLX or transformers."""
    done = run_python("-c", ANSWER, data_dir=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"
