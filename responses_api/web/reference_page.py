"""The page at ``/docs``: the OpenAPI document to read. It shows nothing of what is stored, and reads no database."""

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
    """Needs no key and no session."""
    response = render(request, "web/reference.html", reference())
    response.headers["Cache-Control"] = "no-cache"
    return response


@cache
def reference() -> Json:
    """What the template shows, out of the document."""
    document = served_document()
    operations = [
        {"method": method, "path": path, "tag": one["tags"][0], **operation(one, document)}
        for path, methods in document["paths"].items()
        for method, one in methods.items()
    ]
    return {
        "version": document["info"]["version"],
        "about": prose(document["info"]["description"]),
        "groups": [
            {**tag, "operations": [one for one in operations if one["tag"] == tag["name"]]} for tag in document["tags"]
        ],
        "schemas": [
            {"name": name, "about": prose(schema.get("description", "")), "fields": fields(schema)}
            for name, schema in document["components"]["schemas"].items()
        ],
    }


def operation(one: Json, document: Json) -> Json:
    """One method of one path."""
    body = one.get("requestBody")
    return {
        "id": one["operationId"],
        "summary": one["summary"],
        "about": prose(one.get("description", "")),
        "open": one.get("security") == [],
        "parameters": [
            {
                "name": parameter["name"],
                "where": parameter["in"],
                "required": parameter["required"],
                "kind": kind(parameter["schema"]),
                "about": prose(parameter.get("description", "")),
                "default": default(parameter["schema"]),
            }
            for parameter in one.get("parameters", ())
        ],
        "body": kind(content(body)) if body else "",
        "answers": [answer(status, known, document) for status, known in one["responses"].items()],
    }


def answer(status: str, known: Json, document: Json) -> Json:
    """One status."""
    if "$ref" in known:
        known = document["components"]["responses"][known["$ref"].rpartition("/")[2]]
    return {
        "status": status,
        "good": status.startswith("2"),
        "about": prose(known["description"]),
        "kind": kind(content(known)),
        "types": list(known["content"]),
    }


def content(holder: Json) -> Json:
    """The first schema of a body or an answer."""
    schema: Json = next(iter(holder["content"].values()))["schema"]
    return schema


def fields(schema: Json) -> list[Json]:
    """An object's fields."""
    required = schema.get("required", ())
    return [
        {
            "name": name,
            "required": name in required,
            "kind": kind(one, with_null=name in required),
            "about": prose(one.get("description", "")),
            "default": default(one),
        }
        for name, one in schema.get("properties", {}).items()
    ]


def default(schema: Json) -> str:
    """A default worth showing."""
    value = schema.get("default")
    if value in (None, [], {}) or isinstance(value, dict):
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def kind(schema: Json, *, with_null: bool = True) -> SafeString:
    """A schema in a few words, with links to those it names. In requests null is absence and goes without saying."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return format_html('<a href="#schema-{}">{}</a>', name, name)
    for key in ("anyOf", "oneOf"):
        if key in schema:
            branches = [one for one in flattened(schema[key]) if with_null or one != NULL]
            return format_html_join(" or ", "{}", ((kind(one),) for one in branches))
    if "const" in schema:
        return format_html("<code>{}</code>", literal(schema["const"]))
    if "enum" in schema:
        return format_html_join(" or ", "<code>{}</code>", ((literal(value),) for value in schema["enum"]))
    return format_html("{}{}", named(schema), bounds(schema))


def flattened(branches: list[Json]) -> list[Json]:
    """Branches of branches."""
    result: list[Json] = []
    for branch in branches:
        inner = branch.get("anyOf", branch.get("oneOf"))
        result += flattened(inner) if inner else [branch]
    return result


def named(schema: Json) -> SafeString:
    """A type without alternatives."""
    name = schema.get("type", "any value")
    if name == "array":
        if schema.get("maxItems") == 0:
            return mark_safe("empty array")
        entries = schema.get("items")
        return format_html("array of {}", kind(entries)) if entries else mark_safe("array")
    if name == "object" and schema.get("properties"):
        inner = format_html_join(
            ", ", "<code>{}</code>: {}", ((key, kind(one)) for key, one in schema["properties"].items())
        )
        return format_html("object ({})", inner)
    if name == "object" and schema.get("additionalProperties") not in (None, True, False):
        return format_html("map of {}", kind(schema["additionalProperties"]))
    return format_html("{}", name)


def bounds(schema: Json) -> str:
    """Limits, said shortly."""
    said = [text.format(schema[key]) for key, text in BOUNDS if key in schema and (key, schema[key]) != ("maxItems", 0)]
    return ", " + ", ".join(said) if said else ""


def literal(value: object) -> str:
    """A JSON value as it is written."""
    return f'"{value}"' if isinstance(value, str) else str(value).lower()


def prose(text: str) -> SafeString:
    """Text in which backquotes mark code."""
    return mark_safe(re.sub(r"`+([^`]+)`+", r"<code>\1</code>", escape(text)))  # escaped before
