"""The admin: users and keys, stored data, and the server's processes.

Imported once Django's apps are ready; importing it registers everything with :data:`.site.site`.
"""

from .accounts import attempts, keys, people, projects
from .server import models, processes
from .store import items, responses, usage

__all__ = ["attempts", "items", "keys", "models", "people", "processes", "projects", "responses", "usage"]
