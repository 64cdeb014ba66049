"""Gets the default model before the first start."""

import subprocess
import sys

from django.conf import settings

from inference import DEFAULT_ALIAS, DEFAULT_MODEL, ModelError, Registry
from responses_site.setting_kinds import BASE_DIR


def ensure_default_model() -> None:
    """Get the default model if this data directory lacks it. Raises :class:`ModelError`.

    In a separate process, with its own progress bars: the conversion uses MLX, and this process may import MLX only
    after a fast BLAS was loaded for it.
    """
    wanted = settings.RESPONSES_DEFAULT_MODEL
    registry = Registry(settings.RESPONSES_DATA_DIR)
    if any(wanted == model.name or wanted in model.aliases for model in registry.list_models()):
        return
    if wanted not in (DEFAULT_ALIAS, DEFAULT_MODEL):
        raise ModelError(
            f"RESPONSES_DEFAULT_MODEL is {wanted!r}, and this machine has no such model. Get it with "
            f"`manage.py models pull REPOSITORY` and `manage.py models alias {wanted} MODEL`, or unset the variable."
        )
    pulled = subprocess.run(
        [sys.executable, BASE_DIR / "manage.py", "models", "pull"], stdout=subprocess.DEVNULL, check=False
    )
    if pulled.returncode < 0 or pulled.returncode == 130:
        raise KeyboardInterrupt
    if pulled.returncode:
        raise ModelError("The default model could not be downloaded; the reason is above.")
