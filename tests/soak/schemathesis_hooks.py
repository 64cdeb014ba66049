"""What Schemathesis loads beside its own checks: bodies that can be answered more often, our envelope, and figures.

It counts every operation's statuses, and writes them where `SOAK_FIGURES` says when its process ends.
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

ERROR = {"message", "type", "param", "code"}
NAMES = ("model", "previous_response_id", "conversation")

statuses: dict[str, Counter[str]] = {}


@schemathesis.hook
def map_body(context: Any, body: Any) -> Any:
    """Leaves out most names of what doesn't exist: a body with one gets no further than a 404."""
    if not isinstance(body, dict):
        return body
    left_out = {name: None for name in NAMES if is_name(body.get(name)) and len(body[name]) % 4}
    return {**body, **left_out, **({"model": MODEL} if "model" in left_out else {})}


def is_name(value: Any) -> bool:
    """Whether the schemas allow it: what they don't must stay as it is."""
    return isinstance(value, str) and 1 <= len(value) <= MAX_CLIENT_ID_LENGTH


@schemathesis.check
def every_answer_has_an_id_and_every_fault_an_envelope(context: Any, response: Any, case: Any) -> None:
    statuses.setdefault(case.operation.label, Counter())[str(response.status_code)] += 1
    assert response.headers["x-request-id"][0].startswith("req_")
    if response.status_code < 400 or case.method == "HEAD":
        return
    assert response.headers["content-type"][0] == "application/json"
    assert set(response.json()) == {"error"}
    error = response.json()["error"]
    assert set(error) == ERROR
    assert error["message"].endswith((".", "?"))


@atexit.register
def write_figures() -> None:
    Path(os.environ["SOAK_FIGURES"]).write_text(json.dumps(statuses))
