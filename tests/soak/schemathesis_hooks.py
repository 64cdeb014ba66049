"""Hooks for Schemathesis: bodies that are more often answered, a check of the error envelope, and figures.

The statuses of every operation are counted, and written to the file `SOAK_FIGURES` when the process ends.
"""

import atexit
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import schemathesis

from responses_api.ids import MAX_CLIENT_ID_LENGTH
from tests.soak import MODEL

ERROR_FIELDS = {"message", "type", "param", "code"}
NAMES = ("model", "previous_response_id", "conversation")

statuses: dict[str, Counter[str]] = {}


@schemathesis.hook
def map_body(context: Any, body: Any) -> Any:
    """Remove most names of objects that don't exist: a body with such a name only gets 404."""
    if not isinstance(body, dict):
        return body
    removed = {name: None for name in NAMES if is_name(body.get(name)) and len(body[name]) % 4}
    return {**body, **removed, **({"model": MODEL} if "model" in removed else {})}


def is_name(value: Any) -> bool:
    """Whether the schemas allow the value. Others must not be changed."""
    return isinstance(value, str) and 1 <= len(value) <= MAX_CLIENT_ID_LENGTH


@schemathesis.check
def every_answer_has_an_id_and_every_error_an_envelope(context: Any, response: Any, case: Any) -> None:
    statuses.setdefault(case.operation.label, Counter())[str(response.status_code)] += 1
    assert response.headers["x-request-id"][0].startswith("req_")
    if response.status_code < 400 or case.method == "HEAD":
        return
    assert response.headers["content-type"][0] == "application/json"
    assert set(response.json()) == {"error"}
    error = response.json()["error"]
    assert set(error) == ERROR_FIELDS
    assert error["message"].endswith((".", "?"))


@atexit.register
def write_figures() -> None:
    Path(os.environ["SOAK_FIGURES"]).write_text(json.dumps(statuses))
