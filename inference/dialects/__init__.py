"""Dialects: how families of models call tools and think, one file each. Standard library only.

A new family is a new file here, with a `Dialect` that has its markers, its parser, its grammar and its style of
messages, and an entry in `DIALECTS`. `detect` finds a model's dialect by its chat template.
"""

from inference.dialects.detection import DIALECTS, detect
from inference.dialects.dialect import Dialect
from inference.dialects.own_template import OWN_TEMPLATE, call_text

__all__ = ["DIALECTS", "OWN_TEMPLATE", "Dialect", "call_text", "detect"]
