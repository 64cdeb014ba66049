"""The OpenAPI document: it describes what is served, and allows what is accepted."""

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from django.core.management import call_command
from django.test import Client
from jsonschema import Draft202012Validator  # type: ignore[import-untyped, unused-ignore]
from openapi_spec_validator import OpenAPIV31SpecValidator

from responses_api import errors
from responses_api.api import urls
from responses_api.api.openapi.document import openapi_document
from responses_api.errors import InvalidRequest
from responses_api.protocol import initial_response, parse_create
from responses_api.services.accounts.authenticate import default_project
from responses_api.services.accounts.create_key import create_key
from responses_api.streaming import Outcome
from responses_site.setting_kinds import BASE_DIR
from tests.streaming.steps import Call, Reasoning, Steps, Text
from tests.streaming.test_builder_properties import build

CLIENTS = json.loads((Path(__file__).parents[1] / "protocol" / "client_bodies.json").read_text())
METHODS = ("get", "post", "delete")
STATUSES = {"200", "400", "401", "403", "404", "408", "409", "410", "413", "415", "429", "500", "503"}


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return openapi_document(version="1")


def validator(document: dict[str, Any], name: str) -> Any:
    return Draft202012Validator({"$ref": f"#/components/schemas/{name}", "components": document["components"]})


def walk(value: Any) -> Iterator[dict[str, Any]]:
    """Every object within a value."""
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from walk(inner)


def test_it_is_openapi(document: dict[str, Any]) -> None:
    """A validator of OpenAPI checks all but links, which this test checks."""
    OpenAPIV31SpecValidator(document).validate()
    links = {link["operationId"] for one in walk(document) for link in one.get("links", {}).values()}
    assert links <= {one["operationId"] for methods in document["paths"].values() for one in methods.values()}


def test_every_operation_says_what_it_is_and_how_it_fails(document: dict[str, Any]) -> None:
    for methods in document["paths"].values():
        for one in methods.values():
            assert {"operationId", "summary", "tags"} <= set(one)
            assert {"200", "500"} <= set(one["responses"]) <= STATUSES


def test_every_address_is_described(document: dict[str, Any]) -> None:
    """Each with exactly the methods of its view."""
    served = {
        "/v1/"
        + "/".join("{" + part.split(":")[1][:-1] + "}" if part[0] == "<" else part for part in route.split("/")): {
            name for name in METHODS if hasattr(view, name)
        }
        for route, view in urls.endpoints
    }
    served |= {"/healthz": {"get"}, "/readyz": {"get"}}
    assert {path: set(methods) for path, methods in document["paths"].items()} == served


def test_chat_completions_can_be_turned_off(document: dict[str, Any]) -> None:
    """Then the address neither exists nor is described."""
    assert {route for route, _ in urls.ALL_ENDPOINTS} - {route for route, _ in urls.served(with_chat=False)} == {
        "chat/completions"
    }
    assert set(document["paths"]) - set(openapi_document(version="1", chat=False)["paths"]) == {"/v1/chat/completions"}


@pytest.mark.parametrize("name", sorted(CLIENTS))
def test_bodies_of_real_clients_are_allowed(document: dict[str, Any], name: str) -> None:
    """What the parser accepts matches the schema; what it refuses does not."""
    body = CLIENTS[name]["body"]
    try:
        parse_create(body)
    except InvalidRequest:
        assert not validator(document, "CreateResponse").is_valid(body)
    else:
        validator(document, "CreateResponse").validate(body)


@pytest.mark.parametrize(
    "fields",
    [
        {"stream": None, "metadata": None, "tools": None, "text": {"verbosity": None}, "prompt": None},
        {"input": [{"role": "user", "content": "Hi", "type": None, "status": None}]},
        {"input": [{"id": "msg_1"}, {"type": "item_reference", "id": "msg_2"}]},
        {"conversation": {"id": "conv_1"}, "include": ["reasoning.encrypted_content"]},
        {"service_tier": "auto", "tools": [], "frequency_penalty": 0.0, "tool_choice": "none"},
    ],
)
def test_null_and_other_spellings_are_allowed(document: dict[str, Any], fields: dict[str, Any]) -> None:
    body = {"input": "Hi", **fields}
    parse_create(body)
    validator(document, "CreateResponse").validate(body)


@pytest.mark.parametrize(
    "fields",
    [
        {"max_tokens": 1},
        {"temperature": 3},
        {"prompt": {"id": "x"}},
        {"reasoning": {"mode": "x"}},
        {"input": 1},
        {"input": [{"role": "nobody", "content": "Hi"}]},
        {"metadata": {"k" * 65: "v"}},
        {"text": {"format": {"type": "xml"}}},
    ],
)
def test_what_is_refused_is_not_allowed(document: dict[str, Any], fields: dict[str, Any]) -> None:
    body = {"input": "Hi", **fields}
    with pytest.raises(InvalidRequest):
        parse_create(body)
    assert not validator(document, "CreateResponse").is_valid(body)


def test_examples_are_allowed(document: dict[str, Any]) -> None:
    """Of every body."""
    for methods in document["paths"].values():
        for operation in methods.values():
            for content in operation.get("requestBody", {}).get("content", {}).values():
                schema = {**content["schema"], "components": document["components"]}
                for example in content.get("examples", {"": {"value": content.get("example")}}).values():
                    Draft202012Validator(schema).validate(example["value"])


def test_every_status_that_is_raised_is_documented(document: dict[str, Any]) -> None:
    """And no other, by the error classes that modules import. 405 has no operation that could document it."""
    raised = set()
    for path in (BASE_DIR / "responses_api").rglob("*.py"):
        if path.relative_to(BASE_DIR).as_posix() == "responses_api/api/exceptions.py":
            continue  # imports all of them
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module == "responses_api.errors":
                known: list[Any] = [getattr(errors, alias.name) for alias in node.names]
                raised |= {one.status for one in known if hasattr(one, "status")}
    operations = [one for methods in document["paths"].values() for one in methods.values()]
    assert {int(code) for one in operations for code in one["responses"]} == raised - {405} | {200}


def test_no_parameter_is_left_vague(document: dict[str, Any]) -> None:
    """A validator that the generator doesn't know would give a schema that allows anything."""
    for name, schema in document["components"]["schemas"]["CreateResponse"]["properties"].items():
        assert set(schema) - {"default", "description"}, name
        assert {} not in schema.get("anyOf", ()), name


def test_a_response_is_described_field_by_field(document: dict[str, Any]) -> None:
    request = parse_create({"input": "Hi", "conversation": "conv_1"})
    sent = initial_response(request, id="resp_1", created_at=1, model="m", temperature=1.0, top_p=1.0, store=True)
    described = document["components"]["schemas"]["Response"]
    assert set(described["properties"]) == set(sent)
    validator(document, "Response").validate(sent)


def test_a_stream_is_described_event_by_event(document: dict[str, Any]) -> None:
    """Of all items that are generated; an event with a wrong field is none."""
    steps: Steps = [Reasoning(delta="a"), Text(delta="b"), Call(name="f"), Call(name="g", custom=True, deltas=("c",))]
    described = validator(document, "StreamEvent")
    for outcome in get_args(Outcome):
        events, _ = build(steps, outcome, queued=True, compaction=(9, 8))
        for event in events:
            described.validate(event)
            assert not described.is_valid({**event, "sequence_number": None})
            assert not described.is_valid({**event, "type": "response.unknown"})


def test_the_snapshot_is_up_to_date() -> None:
    """`python manage.py openapi` writes it."""
    call_command("openapi", check=True)


@pytest.mark.django_db
def test_answers_are_as_described(client: Client, document: dict[str, Any]) -> None:
    """For the routes that need no model, with unknown ids."""
    for path, methods in document["paths"].items():
        if "get" not in methods:
            continue
        answer = client.get(path)
        known = methods["get"]["responses"][str(answer.status_code)]
        if "$ref" in known:
            known = document["components"]["responses"][known["$ref"].rpartition("/")[2]]
        kind, _, _ = answer.headers["content-type"].partition(";")
        schema = {**known["content"][kind]["schema"], "components": document["components"]}
        Draft202012Validator(schema).validate(answer.json() if kind == "application/json" else answer.content.decode())


@pytest.mark.django_db
def test_other_methods_are_405(client: Client, document: dict[str, Any]) -> None:
    """The header names the methods that exist; OPTIONS is not among them."""
    for path, methods in document["paths"].items():
        answer = client.options(path)
        assert answer.status_code == 405, path
        assert set(answer.headers["allow"].lower().split(", ")) - {"head"} == set(methods), path
        assert answer.json()["error"]["code"] == "method_not_allowed"


@pytest.mark.django_db
def test_it_is_served_without_a_key(client: Client) -> None:
    """Even where keys exist."""
    create_key(project=default_project(), name="laptop")
    for path in ("/v1/openapi.json", "/openapi.json"):
        answer = client.get(path)
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "application/json"
        assert answer.json()["openapi"] == "3.1.0"
    assert client.post("/openapi.json").status_code == 405


def test_the_page_shows_all_of_it(client: Client, document: dict[str, Any]) -> None:
    """Every path, parameter and schema, by HTML alone; no database."""
    answer = client.get("/docs")
    assert answer.status_code == 200
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    text = answer.content.decode()
    for path in document["paths"]:
        assert f'<code class="path">{path}</code>' in text
    for name, schema in document["components"]["schemas"].items():
        assert f'id="schema-{name}"' in text
        for field in schema.get("properties", ()):
            assert f"<code>{field}</code>" in text
    for name in document["components"]["schemas"]["StreamEvent"]["discriminator"]["mapping"].values():
        assert f'<a href="#schema-{name.rpartition("/")[2]}">' in text
    assert "<script" not in text
    assert "style=" not in text
    assert client.post("/docs").status_code == 405
