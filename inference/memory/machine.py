"""How much memory this machine has for models, and where it computes. Asks MLX only where that runs on a GPU."""

import importlib.metadata
import os
import sys
from pathlib import Path

SHARE = 0.75
"""The part of a memory that models may use."""
_CGROUPS = Path("/sys/fs/cgroup")


def computes_on_cpu() -> bool:
    """Whether the installed MLX has no GPU."""
    return sys.platform == "linux" and not (_is_installed("mlx-cuda-12") or _is_installed("mlx-cuda-13"))


def memory_for_models(stated: int | None = None) -> int:
    """Bytes that models may use: `stated`, or else what Metal recommends, a part of a GPU's own memory, or a part of
    the machine's, as far as its container may use it.
    """
    if stated is not None:
        return stated
    if not computes_on_cpu():
        import mlx.core as mx

        facts = mx.device_info()
        recommended = facts.get("max_recommended_working_set_size")
        if recommended:
            return int(recommended)
        own = facts.get("total_memory")
        if own:
            return int(SHARE * int(own))
    return int(SHARE * memory_of_process())


def memory_of_process() -> int:
    """Bytes of memory that this process may use: the machine's, or its container's limit."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([physical, *_container_limits()])


def _container_limits() -> list[int]:
    """The limits of the control groups that this process is in; none on other systems."""
    if sys.platform != "linux":
        return []
    files = [_CGROUPS / "memory" / "memory.limit_in_bytes"]  # the first version
    place = _CGROUPS / _own_group()
    files += [folder / "memory.max" for folder in (place, *place.parents) if folder.is_relative_to(_CGROUPS)]
    limits = []
    for file in files:
        try:
            limits.append(int(file.read_text()))
        except (OSError, ValueError):  # there is no such file, or it says "max"
            continue
    return limits


def _own_group() -> str:
    """The path of this process's control group, of the second version."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return ""
    return next((line.removeprefix("0::/") for line in lines if line.startswith("0::/")), "")


def _is_installed(distribution: str) -> bool:
    try:
        importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True
