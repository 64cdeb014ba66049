"""Fast products of matrices for MLX on a Linux CPU."""

from .openblas import renamed_openblas
from .preload import preload_blas

__all__ = ["preload_blas", "renamed_openblas"]
