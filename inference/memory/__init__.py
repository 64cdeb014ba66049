"""The memory that models need, and that they have."""

from .budget import Account, MemoryBudget
from .footprint import LEAST_TOKENS, Footprint, read_footprint
from .machine import computes_on_cpu, cores_of_process, is_installed, memory_for_models
from .model_memory import NOTHING, ModelMemory
from .state_cost import StateCost, bytes_for_prompts, group_of, rounded, same_layers

__all__ = [
    "LEAST_TOKENS",
    "NOTHING",
    "Account",
    "Footprint",
    "MemoryBudget",
    "ModelMemory",
    "StateCost",
    "bytes_for_prompts",
    "computes_on_cpu",
    "cores_of_process",
    "group_of",
    "is_installed",
    "memory_for_models",
    "read_footprint",
    "rounded",
    "same_layers",
]
