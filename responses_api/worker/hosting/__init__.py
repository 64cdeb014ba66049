"""The models of a worker: which there are, which are loaded, and which requests wait for one."""

from .catalogue import Catalogue, CatalogueEntry, RegistryCatalogue, ScriptedCatalogue
from .hosted_model import HostedModel, ModelState
from .model_host import ModelHost

__all__ = [
    "Catalogue",
    "CatalogueEntry",
    "HostedModel",
    "ModelHost",
    "ModelState",
    "RegistryCatalogue",
    "ScriptedCatalogue",
]
