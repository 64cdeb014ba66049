"""Bodies, queries and ids for fuzzing: valid ones, and a few mutations of them.

`encode` writes a body as JSON text, also such text as no JSON library writes. Names that end in `_here` are replaced by
ids that exist on the server (`fill_in`).
"""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from hypothesis import strategies as st

from . import MODEL

Json = Any


class Raw(str):
    """JSON text to be sent as it is."""

    __slots__ = ()


def encode(value: Json) -> str:
    """JSON text, with lone surrogates as escapes."""
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(name)}:{encode(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(encode, value)) + "]"
    return json.dumps(value)


def fill_in(text: str, stored_ids: Mapping[str, str]) -> str:
    """Replace the names in a text by ids."""
    for name, value in stored_ids.items():
        text = text.replace(f"{name}_here", value)
    return text


# --- valid values ----------------------------------------------------------------------------------------------------

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40)
SOME_TEXT = st.just("word") | TEXT.map(lambda text: f"a{text}")
IDS = st.text("abcXYZ019_-", min_size=1, max_size=40)
METADATA = st.dictionaries(TEXT, TEXT, max_size=4)


def message(role: str, part: str) -> st.SearchStrategy[Json]:
    """A message of this role, in each of its forms."""
    parts = st.lists(st.fixed_dictionaries({"type": st.just(part), "text": SOME_TEXT}), min_size=1, max_size=3)
    return st.fixed_dictionaries(
        {"role": st.just(role), "content": SOME_TEXT | parts},
        optional={"type": st.just("message") | st.none(), "status": st.sampled_from(["completed", None])},
    )


MESSAGES = st.one_of(
    message("user", "input_text"),
    message("assistant", "output_text"),
    message("system", "input_text"),
    message("developer", "input_text"),
)
REASONING = st.fixed_dictionaries(
    {"type": st.just("reasoning"), "summary": st.lists(TEXT.map(lambda t: {"type": "summary_text", "text": t}))},
)
HOSTED = st.one_of(
    st.fixed_dictionaries({"type": st.just("web_search_call"), "action": st.dictionaries(IDS, TEXT, max_size=3)}),
    st.fixed_dictionaries(
        {
            "type": st.just("mcp_call"),
            **{name: st.just(name) for name in ("name", "server_label")},
            "arguments": TEXT,
        },
        optional={"output": TEXT, "error": st.none()},
    ),
    st.fixed_dictionaries({"type": st.just("file_search_call"), "queries": st.lists(TEXT, max_size=3)}),
)
ITEMS = st.lists(MESSAGES | MESSAGES | REASONING | HOSTED, min_size=1, max_size=5)
STORED = st.sampled_from(
    [
        {"type": "item_reference", "id": "item_here"},
        {"id": "item_here"},
        {"type": "compaction", "encrypted_content": "blob_here"},
    ]
)
CALLS = st.lists(
    st.one_of(
        st.fixed_dictionaries(
            {"type": st.just("function_call"), "call_id": st.sampled_from("ab"), "name": IDS, "arguments": TEXT}
        ),
        st.fixed_dictionaries(
            {
                "type": st.sampled_from(["function_call_output", "custom_tool_call_output"]),
                "call_id": st.sampled_from("ab"),
                "output": TEXT | st.lists(TEXT.map(lambda text: {"type": "input_text", "text": text}), max_size=3),
            }
        ),
        st.fixed_dictionaries(
            {"type": st.just("custom_tool_call"), "call_id": st.sampled_from("ab"), "name": IDS, "input": TEXT}
        ),
        st.just({"type": "compaction_trigger"}),
    ),
    max_size=5,
)
PARAMETERS: dict[str, st.SearchStrategy[Json]] = {
    "model": st.sampled_from([MODEL, None]),
    "instructions": SOME_TEXT | st.none(),
    "temperature": st.sampled_from([0, 0.5, 1, 2.0, None]),
    "top_p": st.sampled_from([0.1, 1, None]),
    "max_output_tokens": st.integers(1, 30) | st.just(2**31 - 1),
    "metadata": METADATA | st.none(),
    "store": st.booleans(),
    "seed": st.integers(0, 2**40),
    "user": st.text("abc", max_size=20),
    "truncation": st.sampled_from(["disabled", "auto", None]),
    "tool_choice": st.sampled_from(["auto", "none", None]),
    "text": st.sampled_from([{}, {"format": {"type": "text"}}, {"verbosity": "low"}, None]),
    "tools": st.sampled_from([[], None]),
    "include": st.sampled_from([[], ["reasoning.encrypted_content"], None]),
    "service_tier": st.sampled_from(["auto", "default", None]),
    "stream_options": st.sampled_from([{"include_obfuscation": False}, None]),
    "background": st.sampled_from([False, None]),
    "stop": st.sampled_from(["said", ["a", "\n"], [], None]),
    "top_k": st.integers(0, 50),
    "min_p": st.sampled_from([0, 0.1, 1]),
    "presence_penalty": st.sampled_from([-2, 0, 0.5, 2]),
    "frequency_penalty": st.sampled_from([-2, 0, 0.5, 2]),
    "repetition_penalty": st.sampled_from([0.5, 1, 1.5]),
    "logit_bias": st.sampled_from([{}, {"5": 1}, {"97": -100, "98": 2.5}]),
    "chat_template_kwargs": st.sampled_from([{}, {"enable_thinking": False}]),
}
QUESTION = {"role": "user", "content": "And now?"}


def with_question(items: list[Json]) -> list[Json]:
    """Items with a question at the end."""
    return [*items, QUESTION]


INPUT = (
    SOME_TEXT | ITEMS.map(with_question) | st.tuples(STORED, ITEMS).map(lambda both: with_question([both[0], *both[1]]))
)
BEFORE = st.sampled_from(
    [
        *({}, {}),
        {"previous_response_id": "response_here"},
        {"conversation": "conversation_here"},
        {"conversation": {"id": "conversation_here"}},
    ]
)
CREATE = st.tuples(st.fixed_dictionaries({"input": INPUT, "stream": st.booleans()}, optional=PARAMETERS), BEFORE).map(
    lambda both: both[0] | both[1]
)
COMPACT = st.fixed_dictionaries(
    {"model": st.just(MODEL), "input": INPUT}, optional={"keep_tokens": st.integers(1, 1000), "instructions": SOME_TEXT}
)
COUNT = st.fixed_dictionaries({"input": INPUT, "stream": st.booleans()}, optional=PARAMETERS)
CONVERSATION = st.fixed_dictionaries({}, optional={"items": ITEMS, "metadata": METADATA | st.none()})
UPDATE = st.fixed_dictionaries({"metadata": METADATA | st.none()})
ADDITION = st.fixed_dictionaries({"items": ITEMS})

# --- mostly invalid values -------------------------------------------------------------------------------------------

ODD_TEXT = st.sampled_from(
    ["", "\0", "a\0b", "\ud800", "\udfff\ud800", "\ufeff", "\u202e", "\uffff", "🙂" * 50, "x" * 5000, "[[tokens: x]]"]
)
ODD_NUMBERS = st.sampled_from(
    [0, -1, 2**31, 2**53, 2**63 - 1, 2**63, -(2**63) - 1, 10**40, -0.0, 1e308, 5e-324, float("nan"), float("inf")]
)
ODD_JSON = st.sampled_from(
    [
        *map(Raw, ("1e400", "-1e400", "1e-400", "1E+9999999", "9" * 5000, "0." + "1" * 5000, "-", "01", "1.", "tru")),
        *map(Raw, ('{"a":1,"a":2}', '{"a":1,}', "[1,]", '"\\ud800\\u0041"', '"\t"', '"\\x41"', "{'a':1}", '"')),
        *(Raw("[" * depth + "1" + "]" * depth) for depth in (20, 99, 100, 101, 1000, 5000)),
        *(Raw('{"a":' * depth + "1" + "}" * depth) for depth in (20, 99, 100, 101, 1000, 5000)),
        Raw('{"input":' * 200),
        Raw('[{"content":' * 100 + '"x"' + "}]" * 100),
    ]
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | TEXT
ODD: st.SearchStrategy[Json] = st.one_of(
    SCALARS,
    ODD_TEXT,
    ODD_NUMBERS,
    ODD_JSON,
    st.lists(SCALARS, max_size=3),
    st.dictionaries(TEXT, SCALARS, max_size=3),
    ITEMS,
    CALLS,
    st.sampled_from([[], {}, [[]], [{}], {"": None}, {"type": "message"}, {"id": "x"}, [None] * 300]),
)
NAMES = st.one_of(
    st.sampled_from(["type", "role", "content", "id", "input", "__proto__", "__class__", "", "self", "x" * 10_000]),
    st.sampled_from(["\0", "\ud800", "model_fields", "[0]", "a.b", "call_id", "previous_response_id", "conversation"]),
    st.sampled_from(sorted(PARAMETERS)),
)
STEPS = ("replace", "drop", "add", "rename", "double")


def paths(value: Json, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of a value and of all values in it."""
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(inner_path for step, inner in steps for inner_path in paths(inner, (*path, step)))]


def change(value: Json, path: tuple[Any, ...], step: str, name: str, odd: Json) -> Json:
    """A copy with one change at this path."""
    if not path:
        return odd if step in ("replace", "drop") else extend(value, step, name, odd)
    head, *rest = path
    if rest or step in ("replace", "add"):
        inner = change(value[head], tuple(rest), step, name, odd)
        return {**value, head: inner} if isinstance(value, dict) else [*value[:head], inner, *value[head + 1 :]]
    if isinstance(value, list):
        replacement = {"drop": [], "double": [value[head]] * 2}.get(step, [odd])
        return [*value[:head], *replacement, *value[head + 1 :]]
    others = {key: inner for key, inner in value.items() if key != head}
    if step == "double":
        pairs = [(head, odd), *value.items()]
        return Raw("{" + ",".join(f"{json.dumps(key)}:{encode(inner)}" for key, inner in pairs) + "}")
    return others if step == "drop" else {**others, name: value[head]}


def extend(value: Json, step: str, name: str, odd: Json) -> Json:
    """The value with one more entry, or in a new array or object."""
    if isinstance(value, dict):
        return {**value, name: odd}
    if isinstance(value, list):
        return [*value, odd]
    return [value] if step == "add" else {name: value}


@st.composite
def mutated(draw: st.DrawFn, valid: st.SearchStrategy[Json]) -> Json:
    """A valid body with one to three changes."""
    value = draw(valid)
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(paths(value)))
        value = change(value, path, draw(st.sampled_from(STEPS)), draw(NAMES), draw(ODD))
    return value


@st.composite
def broken(draw: st.DrawFn, valid: st.SearchStrategy[Json]) -> bytes:
    """The bytes of a body, damaged or in another encoding."""
    text = encode(draw(valid))
    data = text.encode()
    match draw(st.sampled_from(["cut", "insert", "overwrite", "encoding", "twice", "bytes"])):
        case "cut":
            return data[: draw(st.integers(0, len(data)))]
        case "insert":
            index = draw(st.integers(0, len(data)))
            return data[:index] + draw(st.binary(min_size=1, max_size=4)) + data[index:]
        case "overwrite":
            index = draw(st.integers(0, len(data) - 1))
            return data[:index] + draw(st.binary(min_size=1, max_size=1)) + data[index + 1 :]
        case "encoding":
            return text.encode(draw(st.sampled_from(["utf-16", "utf-16-le", "utf-32", "utf-8-sig", "utf-7"])))
        case "twice":
            return data + draw(st.sampled_from([b"", b"\n", b",", b"\0"])) + data
        case _:
            return draw(st.binary(max_size=200))


CONTENT_TYPES = st.sampled_from(
    [
        "application/json",
        "application/json",
        "application/json; charset=utf-16",
        "application/json; charset=nonsense",
        "application/vnd.api+json",
        "APPLICATION/JSON;;=",
    ]
)

# --- targets ---------------------------------------------------------------------------------------------------------

METHODS = st.sampled_from(
    ["GET", "GET", "GET", "DELETE", "POST", "PUT", "PATCH", "HEAD", "OPTIONS", "TRACE", "BREW", "get", "Post"]
)
QUERY_NAMES = st.sampled_from(
    ["limit", "order", "after", "before", "include", "include[]", "stream", "starting_after", "include_obfuscation"]
)
QUERY_VALUES = st.one_of(
    st.sampled_from(["1", "100", "0", "-1", "101", "1e3", "٣", "9" * 5000, "asc", "desc", "true", "false", "", "null"]),
    st.sampled_from(["message.input_image.image_url", "reasoning.encrypted_content", "nonsense", "\0", "a&b=c", "%"]),
    TEXT,
)
QUERIES = st.one_of(
    st.just(""),
    st.lists(st.tuples(QUERY_NAMES | TEXT, QUERY_VALUES), max_size=4).map(
        lambda pairs: "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in pairs)
    ),
    st.text("%&=;+[]#?abf019", max_size=20).map(lambda text: text.replace("#", "%23")),
    st.just("%ff=%fe&%ed%a0%80"),
    st.just("&".join(["limit=1"] * 2000)),
)
UNKNOWN_IDS = st.one_of(
    st.sampled_from(
        ["x", "resp_unknown", "conv_unknown", "%00", "%ff", "%ed%a0%80", "..", "%2e%2e", "%2f", "a" * 5000]
    ),
    TEXT.map(lambda text: quote(text, safe="") or "x"),
)
PATHS = st.sampled_from(
    [
        "/v1/responses",
        "/v1/responses/response_here",
        "/v1/responses/response_here",
        "/v1/responses/response_here/input_items",
        "/v1/responses/response_here/input_items",
        "/v1/responses/input_tokens",
        "/v1/responses/compact",
        "/v1/conversations",
        "/v1/conversations/conversation_here",
        "/v1/conversations/conversation_here/items",
        "/v1/conversations/conversation_here/items/item_here",
        "/v1/chat/completions",
        "/v1/models",
        "/v1/models/model_here",
        "/v1/status",
        "/metrics",
        "/v1/openapi.json",
        "/healthz",
        "/readyz",
        "/docs",
        "/responses/response_here",
        "/v1/nothing/response_here",
    ]
)
