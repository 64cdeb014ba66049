"""What this machine has for models: memory, cores, a GPU. Asks MLX only where that runs on a GPU."""

import importlib.metadata
import os
import sys
from pathlib import Path

SHARE = 0.75
"""The part of a memory that models may use."""
_CGROUPS = Path("/sys/fs/cgroup")
_PROCESSORS = Path("/sys/devices/system/cpu")


def computes_on_cpu() -> bool:
    """Whether the installed MLX has no GPU."""
    return sys.platform == "linux" and not (is_installed("mlx-cuda-12") or is_installed("mlx-cuda-13"))


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


def cores_of_process() -> int:
    """How many cores this Linux process may use at once: those it may run on, hyperthreads counted once, or what its
    container's share of time amounts to.
    """
    cores = set()
    for number in os.sched_getaffinity(0):
        try:
            cores.add((_PROCESSORS / f"cpu{number}" / "topology" / "thread_siblings_list").read_text())
        except OSError:
            cores.add(str(number))
    shares = []
    for folder in _own_groups():
        try:
            quota, period = (folder / "cpu.max").read_text().split()
            shares.append(max(1, int(quota) // int(period)))
        except (OSError, ValueError):  # there is no such file, or it says "max"
            continue
    return min([len(cores), *shares])


def _container_limits() -> list[int]:
    """The limits of the control groups that this process is in; none on other systems."""
    if sys.platform != "linux":
        return []
    limits = []
    first_version = _CGROUPS / "memory" / "memory.limit_in_bytes"
    for file in (first_version, *(folder / "memory.max" for folder in _own_groups())):
        try:
            limits.append(int(file.read_text()))
        except (OSError, ValueError):  # there is no such file, or it says "max"
            continue
    return limits


def _own_groups() -> list[Path]:
    """The folders of the control group, of the second version, that this process is in, and of those above."""
    own = _CGROUPS / _own_group()
    return [folder for folder in (own, *own.parents) if folder.is_relative_to(_CGROUPS)]


def _own_group() -> str:
    """The path of this process's control group, of the second version."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return ""
    return next((line.removeprefix("0::/") for line in lines if line.startswith("0::/")), "")


def is_installed(distribution: str) -> bool:
    """Whether this environment has a distribution of this name."""
    try:
        importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True
