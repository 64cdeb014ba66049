"""JSON Schemas of the wire: requests from the protocol's own models, objects as the protocol builds them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, get_args

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, models_json_schema

from responses_api.protocol import CreateResponse, ListQuery, ResponseStatus, RetrieveQuery
from responses_api.protocol.requests import parameters as p
from responses_api.protocol.requests.compact import CompactRequest
from responses_api.protocol.requests.conversations import CreateConversation, CreateItems, UpdateConversation
from responses_api.protocol.requests.queries import ItemQuery
from responses_api.protocol.validation.markers import NOTHING

Json = dict[str, Any]

REFS: Final = "#/components/schemas/{model}"
BODIES: Final = (CreateResponse, CompactRequest, CreateConversation, UpdateConversation, CreateItems)
QUERIES: Final = (ListQuery, RetrieveQuery, ItemQuery)
NULL: Final[Json] = {"type": "null"}


class WireSchema(GenerateJsonSchema):
    """Pydantic's generator without titles of fields, which would repeat their names."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def generated(models: Iterable[type[BaseModel]]) -> Json:
    """The models' schemas and those they refer to, by name."""
    _, definitions = models_json_schema(
        [(model, "validation") for model in models], ref_template=REFS, schema_generator=WireSchema
    )
    return {name: cleaned(schema) for name, schema in sorted(definitions["$defs"].items())}


def cleaned(schema: Json) -> Json:
    """Without union branches that only refuse, and without defaults that say nothing."""
    result: Json = {}
    for key, value in schema.items():
        if key in ("properties", "$defs"):
            result[key] = {name: cleaned(inner) for name, inner in value.items()}
        elif key in ("items", "additionalProperties") and isinstance(value, dict):
            result[key] = cleaned(value)
        elif key in ("anyOf", "oneOf"):
            result[key] = [branch for branch in map(cleaned, value) if branch != NOTHING]
            if not result[key]:
                return dict(NOTHING)
        elif not (key == "default" and value is None):
            result[key] = value
    for key in ("anyOf", "oneOf"):
        if len(result.get(key, ())) == 1:
            result |= result.pop(key)[0]
    return result


def nullable(schema: Json) -> Json:
    """Null is the same as absent, for every field that may be absent, at every depth."""
    result: Json = {}
    for key, value in schema.items():
        if key == "properties":
            required = schema.get("required", ())
            result[key] = {name: nullable(one) if name in required else or_null(one) for name, one in value.items()}
        elif key in ("items", "additionalProperties") and isinstance(value, dict):
            result[key] = nullable(value)
        elif key in ("anyOf", "oneOf"):
            result[key] = [nullable(branch) for branch in value]
        else:
            result[key] = value
    return result


def or_null(schema: Json) -> Json:
    """The schema of a field that may be null."""
    if schema in (NOTHING, NULL):
        return {**NULL, "description": "Refused by name, unless null."}
    inner = nullable(schema)
    if not inner or NULL in inner.get("anyOf", ()):
        return inner
    about: Json = {key: inner.pop(key) for key in ("default", "description") if key in inner}
    return {"anyOf": [*(inner["anyOf"] if set(inner) == {"anyOf"} else [inner]), dict(NULL)], **about}


def query_parameters(model: type[BaseModel]) -> list[Json]:
    """A query model's arguments. What can't be sent yet is left out."""
    schema = cleaned(model.model_json_schema(schema_generator=WireSchema))
    parameters = []
    for name, argument in schema["properties"].items():
        if NOTHING.items() <= argument.items():
            continue
        if NULL in argument.get("anyOf", ()):
            argument = next(branch for branch in argument["anyOf"] if branch != NULL)
        parameter: Json = {"name": name, "in": "query", "required": False, "schema": argument}
        if argument.get("type") == "array":
            parameter |= {"style": "form", "explode": True, "description": "Also taken as `include[]`."}
        parameters.append(parameter)
    return parameters


def component(name: str) -> Json:
    """A reference."""
    return {"$ref": REFS.format(model=name)}


def schemas() -> Json:
    """All components: bodies and what they are made of, then objects."""
    bodies = {name: nullable(schema) for name, schema in generated(BODIES).items()}
    update = bodies["UpdateConversation"]["properties"]
    update["metadata"] = {"anyOf": [update["metadata"], dict(NULL)]}
    answered = objects()
    if both := bodies.keys() & answered.keys():
        raise ValueError(f"The names {sorted(both)} stand for what is sent and for what is answered.")
    return dict(sorted({**bodies, **answered}.items()))


def record(about: str, properties: Json, *, optional: Iterable[str] = ()) -> Json:
    """An object of which every field is always there."""
    left_out = set(optional)
    return {
        "description": about,
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name not in left_out],
    }


def maybe(schema: Json) -> Json:
    """Or null."""
    return {"anyOf": [schema, dict(NULL)]}


STRING: Final[Json] = {"type": "string"}
NUMBER: Final[Json] = {"type": "number"}
FLAG: Final[Json] = {"type": "boolean"}
COUNT: Final[Json] = {"type": "integer", "minimum": 0}
TIME: Final[Json] = {"type": "integer", "description": "Seconds since 1970."}
METADATA: Final[Json] = {"type": "object", "additionalProperties": STRING}
ANY_OBJECT: Final[Json] = {"type": "object", "additionalProperties": True}


def listing(about: str, name: str, *, paged: bool = True) -> Json:
    """A list of objects, as a page or whole."""
    fields: Json = {"object": {"const": "list"}, "data": {"type": "array", "items": component(name)}}
    if paged:
        fields |= {"first_id": maybe(STRING), "last_id": maybe(STRING), "has_more": FLAG}
    return record(about, fields)


def deletion(kind: str) -> Json:
    """What DELETE answers."""
    return record("What was deleted.", {"id": STRING, "object": {"const": kind}, "deleted": {"const": True}})


def objects() -> Json:
    """What the server answers with."""
    return {
        "Conversation": record(
            "A conversation, without its items.",
            {"id": STRING, "object": {"const": "conversation"}, "created_at": TIME, "metadata": METADATA},
        ),
        "DeletedConversation": deletion("conversation.deleted"),
        "DeletedResponse": deletion("response"),
        "Error": error(),
        "Health": record(
            "Whether the process can serve.",
            {"status": {"enum": ["ok", "unavailable"]}, "reason": STRING, "models": COUNT},
            optional=("reason", "models"),
        ),
        "CompactedHistory": record(
            "A compacted history: kept and retained items, and last the compaction item.",
            {
                "id": STRING,
                "object": {"const": "response.compaction"},
                "created_at": TIME,
                "model": STRING,
                "output": {"type": "array", "items": component("Item")},
                "usage": component("Usage"),
            },
        ),
        "InputTokens": record(
            "How many tokens the rendered input has.",
            {"object": {"const": "response.input_tokens"}, "input_tokens": COUNT},
        ),
        "Item": {
            **record("A message, a call, reasoning: what a turn is made of.", {"id": STRING, "type": STRING}),
            "additionalProperties": True,
        },
        "ItemList": listing("A page of items.", "Item"),
        "Model": record(
            "A served model, or another name of one.",
            {"id": STRING, "object": {"const": "model"}, "created": TIME, "owned_by": STRING},
        ),
        "ModelList": listing("All models that are served.", "Model", paged=False),
        "Response": record("A response, with every field, null where there is nothing.", response_properties()),
        "ServerStatus": status(),
        "Usage": record(
            "Counted tokens.",
            {
                "input_tokens": COUNT,
                "input_tokens_details": record("Of these.", {"cached_tokens": COUNT, "cache_write_tokens": COUNT}),
                "output_tokens": COUNT,
                "output_tokens_details": record("Of these.", {"reasoning_tokens": COUNT}),
                "total_tokens": COUNT,
            },
        ),
    }


def error() -> Json:
    """The envelope of everything that goes wrong."""
    body = record(
        "What is wrong and how to mend it.",
        {"message": STRING, "type": STRING, "param": maybe(STRING), "code": maybe(STRING)},
    )
    return record("The envelope of every error.", {"error": body})


def status() -> Json:
    """`GET /status`."""
    worker: Json = {"host": STRING, "pid": COUNT, "models": {"type": "array", "items": STRING}}
    worker |= {"slots": COUNT, "running": COUNT, "waiting": COUNT, "started_at": TIME}
    model: Json = {"id": STRING, "aliases": {"type": "array", "items": STRING}, "context_length": COUNT}
    background = ("running", "waiting", "events", "event_bytes", "recovered", "cancelled")
    store = ("entries", "bytes", "hits", "misses", "writes", "evictions", "expiries", "refusals")
    return record(
        "What runs and waits, and what is stored.",
        {
            "object": {"const": "server.status"},
            "version": STRING,
            "uptime_seconds": {"type": "number", "minimum": 0},
            "dialects": {"type": "array", "items": STRING},
            "running": COUNT,
            "waiting": COUNT,
            "background": record("Background jobs, which the figures above include.", dict.fromkeys(background, COUNT)),
            "readers": COUNT,
            "web_processes": COUNT,
            "assembly_bytes": COUNT,
            "workers": {"type": "array", "items": record("A worker process.", worker)},
            "models": {"type": "array", "items": record("A model.", model)},
            "store": record("The store's figures.", dict.fromkeys(store, COUNT)),
        },
    )


def response_properties() -> Json:
    """The fields of a response, in the order in which it has them."""
    detail = {"type": "object", "additionalProperties": True}
    return {
        "id": STRING,
        "object": {"const": "response"},
        "created_at": TIME,
        "completed_at": maybe(TIME),
        "status": {"enum": list(get_args(ResponseStatus))},
        "background": FLAG,
        "error": maybe(record("Why it failed.", {"code": STRING, "message": STRING})),
        "incomplete_details": maybe(record("Why it is incomplete.", {"reason": STRING})),
        "instructions": maybe(STRING),
        "model": STRING,
        "output": {"type": "array", "items": component("Item")},
        "previous_response_id": maybe(STRING),
        "usage": maybe(component("Usage")),
        "metadata": METADATA,
        "store": FLAG,
        "frequency_penalty": NUMBER,
        "max_output_tokens": maybe(COUNT),
        "max_tool_calls": maybe(COUNT),
        "parallel_tool_calls": FLAG,
        "presence_penalty": NUMBER,
        "prompt_cache_key": maybe(STRING),
        "prompt_cache_options": maybe(detail),
        "prompt_cache_retention": maybe(STRING),
        "reasoning": maybe(detail),
        "safety_identifier": maybe(STRING),
        "service_tier": STRING,
        "temperature": NUMBER,
        "text": detail,
        "tool_choice": {"anyOf": [STRING, detail]},
        "tools": {"type": "array", "items": detail},
        "top_logprobs": COUNT,
        "top_p": NUMBER,
        "truncation": {"enum": list(get_args(p.Truncation))},
        "user": maybe(STRING),
        "access_programs": maybe({"type": "array"}),
        "conversation": maybe(record("The conversation that it is a turn of.", {"id": STRING})),
        "image": maybe(detail),
        "input_transformations": {},
        "moderation": maybe(detail),
        "prompt": maybe(detail),
        "prompt_cache_diagnostics": maybe(detail),
        "tool_usage": maybe(detail),
    }
