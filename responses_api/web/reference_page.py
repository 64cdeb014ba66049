"""The page at ``/docs``: the OpenAPI document as a page. It shows no stored data and makes no query."""

import re
from functools import cache
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.html import escape, format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from responses_api.api.openapi.view import served_document

from .reading import read_only

Json = dict[str, Any]

NULL = {"type": "null"}
BOUNDS = (
    ("minimum", "at least {}"),
    ("maximum", "at most {}"),
    ("maxLength", "up to {} characters"),
    ("maxItems", "up to {} entries"),
    ("maxProperties", "up to {} entries"),
)


@read_only
def reference_page(request: HttpRequest) -> HttpResponse:
    """The page. It needs no key and no session."""
    response = render(request, "web/reference.html", reference())
    response.headers["Cache-Control"] = "no-cache"
    return response


@cache
def reference() -> Json:
    """The template's context, made from the document."""
    document = served_document()
    operations = [
        {"method": method, "path": path, "tag": described["tags"][0], **operation(described, document)}
        for path, methods in document["paths"].items()
        for method, described in methods.items()
    ]
    return {
        "version": document["info"]["version"],
        "about": prose(document["info"]["description"]),
        "groups": [
            {**tag, "operations": [entry for entry in operations if entry["tag"] == tag["name"]]}
            for tag in document["tags"]
        ],
        "schemas": [
            {
                "name": name,
                "about": prose(schema.get("description", "")),
                "kind": "" if "properties" in schema else kind(schema),
                "fields": fields(schema),
            }
            for name, schema in document["components"]["schemas"].items()
        ],
    }


def operation(described: Json, document: Json) -> Json:
    """One method of one path."""
    body = described.get("requestBody")
    return {
        "id": described["operationId"],
        "summary": described["summary"],
        "about": prose(described.get("description", "")),
        "open": described.get("security") == [],
        "parameters": [
            {
                "name": parameter["name"],
                "where": parameter["in"],
                "required": parameter["required"],
                "kind": kind(parameter["schema"]),
                "about": prose(parameter.get("description", "")),
                "default": default(parameter["schema"]),
            }
            for parameter in described.get("parameters", ())
        ],
        "body": kind(content(body)) if body else "",
        "answers": [answer(status, response, document) for status, response in described["responses"].items()],
    }


def answer(status: str, response: Json, document: Json) -> Json:
    """The response with one status."""
    if "$ref" in response:
        response = document["components"]["responses"][response["$ref"].rpartition("/")[2]]
    return {
        "status": status,
        "good": status.startswith("2"),
        "about": prose(response["description"]),
        "kind": kind(content(response)),
        "types": list(response["content"]),
    }


def content(holder: Json) -> Json:
    """The first schema of a request body or a response."""
    schema: Json = next(iter(holder["content"].values()))["schema"]
    return schema


def fields(schema: Json) -> list[Json]:
    """An object's fields."""
    required = schema.get("required", ())
    return [
        {
            "name": name,
            "required": name in required,
            "kind": kind(field, with_null=name in required),
            "about": prose(field.get("description", "")),
            "default": default(field),
        }
        for name, field in schema.get("properties", {}).items()
    ]


def default(schema: Json) -> str:
    """A schema's default as text; empty for none, an empty value or an object."""
    value = schema.get("default")
    if value in (None, [], {}) or isinstance(value, dict):
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def kind(schema: Json, *, with_null: bool = True) -> SafeString:
    """A schema in a few words, with links to the schemas that it refers to.

    ``with_null`` is False for optional fields of requests, in which null means the same as absence.
    """
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return format_html('<a href="#schema-{}">{}</a>', name, name)
    for key in ("anyOf", "oneOf"):
        if key in schema:
            branches = [branch for branch in flattened(schema[key]) if with_null or branch != NULL]
            return format_html_join(" or ", "{}", ((kind(branch),) for branch in branches))
    if "const" in schema:
        return format_html("<code>{}</code>", literal(schema["const"]))
    if "enum" in schema:
        return format_html_join(" or ", "<code>{}</code>", ((literal(value),) for value in schema["enum"]))
    return format_html("{}{}", named(schema), bounds(schema))


def flattened(branches: list[Json]) -> list[Json]:
    """The branches, with nested alternatives in place of their parents."""
    result: list[Json] = []
    for branch in branches:
        inner = branch.get("anyOf", branch.get("oneOf"))
        result += flattened(inner) if inner else [branch]
    return result


def named(schema: Json) -> SafeString:
    """A schema without alternatives, in a few words."""
    name = schema.get("type", "any value")
    if name == "array":
        if schema.get("maxItems") == 0:
            return mark_safe("empty array")
        entries = schema.get("items")
        return format_html("array of {}", kind(entries)) if entries else mark_safe("array")
    if name == "object" and schema.get("properties"):
        inner = format_html_join(
            ", ", "<code>{}</code>: {}", ((key, kind(field)) for key, field in schema["properties"].items())
        )
        return format_html("object ({})", inner)
    if name == "object" and schema.get("additionalProperties") not in (None, True, False):
        return format_html("map of {}", kind(schema["additionalProperties"]))
    return format_html("{}", name)


def bounds(schema: Json) -> str:
    """The limits of a schema, in a few words."""
    limits = [
        text.format(schema[key]) for key, text in BOUNDS if key in schema and (key, schema[key]) != ("maxItems", 0)
    ]
    return ", " + ", ".join(limits) if limits else ""


def literal(value: object) -> str:
    """A scalar JSON value as text."""
    return f'"{value}"' if isinstance(value, str) else str(value).lower()


def prose(text: str) -> SafeString:
    """Text as HTML, with backquoted parts as code."""
    return mark_safe(re.sub(r"`+([^`]+)`+", r"<code>\1</code>", escape(text)))  # escaped before
