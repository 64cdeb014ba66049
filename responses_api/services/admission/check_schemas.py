"""Checks that the schemas, tools and grammars of a request can be enforced, before anything is queued."""

from functools import lru_cache

import orjson
from django.conf import settings

from inference.calls import CustomFormat
from inference.calls import Tool as ModelTool
from inference.constraints import Checked, CheckInterrupted, check_within_budget
from inference.grammars import MAX_DEPTH, Unenforceable, json_input, lark_depth
from inference.types import Constraint
from responses_api.errors import InvalidValue, Overloaded, UnsupportedParameter
from responses_api.protocol import CreateResponse
from responses_api.protocol.json.values import Path, format_path
from responses_api.protocol.requests.text_format import JsonSchema
from responses_api.protocol.schemas.check import SchemaLimits, check_form, check_schema
from responses_api.protocol.schemas.nodes import all_nodes
from responses_api.protocol.tools.client import FunctionTool, GrammarInput
from responses_api.protocol.tools.declared import HostedTool

MOST_SUBSCHEMAS = 8_192
MOST_BYTES = 512 * 1024
GRAMMARS_SECONDS = 3.0
"""CPU time that checking all grammars of a request may take."""
MAX_QUOTED = 200
"""Characters of a compiler's error that a message quotes."""


def check_schemas(request: CreateResponse) -> None:
    """Raise an :class:`InvalidRequest` that names the place in the schema, the tool or the grammar."""
    form = request.text.format
    if isinstance(form, JsonSchema):
        check_schema(form.json_schema, path=("text", "format", "schema"), limits=schema_limits(), strict=form.strict)
    if settings.RESPONSES_HOSTED_TOOLS == "reject":
        refuse_hosted_tools(request)
    seconds = 0.0
    for declared in request.declared_tools:
        if isinstance(declared.tool, FunctionTool):
            check_function(declared.tool, path=(*declared.path, "parameters"))
        elif isinstance(declared.tool.format, GrammarInput):
            seconds += check_grammar(declared.tool.format, path=(*declared.path, "format", "definition"))
            if seconds > GRAMMARS_SECONDS:
                raise InvalidValue(
                    "The grammars of `tools` take too long to check together; send fewer or simpler ones.",
                    param="tools",
                )
    check_together(request)


def check_together(request: CreateResponse) -> None:
    """Check the size of all tools together: they become one grammar, and a larger one takes seconds to compile."""
    functions = [declared.tool for declared in request.declared_tools if isinstance(declared.tool, FunctionTool)]
    count = sum(1 for tool in functions for _ in all_nodes(tool.schema_of_arguments, ()))
    if count > MOST_SUBSCHEMAS:
        raise InvalidValue(
            f"`tools` have {count} subschemas together, and {MOST_SUBSCHEMAS} are allowed; send fewer or smaller ones.",
            param="tools",
        )
    size = sum(len(orjson.dumps(dict(tool.enforced_schema))) for tool in request.offered_tools if tool.enforced)
    if size > MOST_BYTES:
        raise InvalidValue(
            f"`tools` have {size} bytes of constraints together, and {MOST_BYTES} are allowed; send fewer or smaller "
            "tools.",
            param="tools",
        )


def check_function(tool: FunctionTool, *, path: Path) -> None:
    """Check that a strict function's schema can be enforced; of others, only that it is a schema within the limits."""
    if tool.parameters is None:
        return
    if tool.strict:
        check_schema(tool.parameters, path=path, limits=schema_limits(), strict=True)
    else:
        check_form(tool.parameters, path=path, limits=schema_limits())


def check_grammar(form: GrammarInput, *, path: Path) -> float:
    """Check that a custom tool's grammar can be enforced in every form in which models write calls.

    Returns the CPU time of the check, in seconds.
    """
    param, limit = format_path(path), schema_limits().max_bytes
    size = len(form.definition.encode())
    if size > limit:
        raise InvalidValue(f"`{param}` is {size} bytes, and {limit} are allowed; use a smaller grammar.", param=param)
    try:
        checked = checked_grammar(CustomFormat(syntax=form.syntax, definition=form.definition))
    except CheckInterrupted:
        raise Overloaded(f"The server could not check `{param}` at the moment. Try again in a few seconds.") from None
    if reason := checked.error:
        shown = reason if len(reason) <= MAX_QUOTED else reason[:MAX_QUOTED] + "…"
        raise InvalidValue(f"`{param}` can't be enforced ({shown}); change the grammar or remove it.", param=param)
    return checked.seconds


@lru_cache(maxsize=256)
def checked_grammar(form: CustomFormat) -> Checked:
    """Check a grammar both as raw text and within the JSON that many models write calls in."""
    if form.syntax == "lark" and (depth := lark_depth(form.definition)) > MAX_DEPTH:
        return Checked(f"its rules and brackets nest up to {depth} levels, and {MAX_DEPTH} are allowed", 0)
    raw = check_within_budget(Constraint(kind=form.syntax, text=form.definition))
    if raw.error:
        return raw
    try:
        text = json_input(ModelTool(name="tool", custom=True, format=form))
    except Unenforceable as error:
        return Checked(str(error).rstrip("."), raw.seconds)
    within = check_within_budget(Constraint(kind="lark", text=f"start: {text}"))
    return Checked(within.error, raw.seconds + within.seconds)


def refuse_hosted_tools(request: CreateResponse) -> None:
    """Refuse the first tool that the server can't run, which it would otherwise only echo."""
    for index, tool in enumerate(request.tools):
        if isinstance(tool, HostedTool):
            param = f"tools[{index}]"
            raise UnsupportedParameter(
                f"`{param}` is the tool '{tool.type}', which this server can't run; remove it.", param=param
            )


def schema_limits() -> SchemaLimits:
    """The limits on a schema by the server's settings."""
    return SchemaLimits(
        max_bytes=settings.RESPONSES_SCHEMA_MAX_BYTES,
        max_nodes=settings.RESPONSES_SCHEMA_MAX_NODES,
        max_depth=settings.RESPONSES_SCHEMA_MAX_DEPTH,
    )
