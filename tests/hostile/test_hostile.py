"""The worst requests at small sizes, with limits so wide that only a change of complexity violates them."""

import shutil
from pathlib import Path

import pytest

from tests.live.server import DATABASE_FILE, embedded

from . import KIB, MIB
from .measure import Rules
from .plans import at_random, in_sequence, only
from .run import SETTINGS, Victims, run

RULES = Rules(stall=2.5, slope=25, noticeable=2.5, memory=1000 * MIB, timeout=20)
SECONDS = 3.0
VICTIMS = Victims(tokens=40)
WORST = (
    "POST /v1/responses the body: many arrays (no key)",
    "POST /v1/responses the body: many arrays (wrong key)",
    "POST /v1/responses the body: many arrays",
    "POST /v1/responses input of CreateResponse: control tokens",
    "POST /v1/responses input of CreateResponse: many incomplete items",
    "POST /v1/responses input[].queries of FileSearchCall: many numbers",
    "POST /v1/responses input[].arguments of FunctionCall: JSON text, deep",
    "POST /v1/responses tools[].parameters of FunctionTool: schema: pattern, open brackets",
    "POST /v1/responses text.format.schema of JsonSchema: schema: doubling references",
    "POST /v1/responses metadata of CreateResponse: many keys",
    "POST /v1/responses input: compaction blobs of 4 MB",
    "POST /v1/responses input: outputs without calls",
    "POST /v1/responses/input_tokens input: references to an item of 1 MB",
    "POST /v1/responses/compact input: messages, 2147483647 tokens kept",
    "POST /v1/conversations/{conversation_id}/items items: compaction blobs of 4 MB",
    "GET /v1/responses/{response_id} query include: letters",
    "GET /v1/responses/{response_id} header Authorization: letters",
)


@pytest.mark.timeout(300)
def test_the_worst_requests_do_no_harm(tmp_path: Path, migrated_file: Path) -> None:
    """A stream and a job beside them are complete, no answer is 500, and no client waits for long."""
    shutil.copy(migrated_file, tmp_path / DATABASE_FILE)
    server = embedded(tmp_path, **SETTINGS)
    plan = in_sequence(only(WORST), at_random(seconds=SECONDS, seed=0, max_size=256 * KIB))
    outcome = run(server, plan, rules=RULES, victims=VICTIMS)
    assert not outcome.errors
    assert not [f"{one}: {one.violations}" for one in outcome.violations]
    assert outcome.victims
