"""Query strings are checked as strictly as bodies."""

from urllib.parse import parse_qsl

import pytest

from responses_api.errors import ApiError, UnknownParameter
from responses_api.protocol import parse_list_query, parse_retrieve_query, refuse_query


def pairs(query: str) -> list[tuple[str, str]]:
    return parse_qsl(query, keep_blank_values=True)


def test_defaults_are_openais() -> None:
    query = parse_list_query([])
    assert (query.order, query.limit, query.after, query.include) == ("desc", 20, None, ())


@pytest.mark.parametrize("spelling", ["include", "include[]"])
def test_arguments_are_read(spelling: str) -> None:
    """OpenAI's SDKs write arrays with brackets."""
    text = (
        f"order=asc&limit=100&after=msg_1&{spelling}=web_search_call.results&{spelling}=code_interpreter_call.outputs"
    )
    query = parse_list_query(pairs(text))
    assert (query.order, query.limit, query.after) == ("asc", 100, "msg_1")
    assert query.include == ("web_search_call.results", "code_interpreter_call.outputs")
    assert parse_list_query(pairs("limit=5&limit=6")).limit == 6


@pytest.mark.parametrize(
    ("query", "param", "code"),
    [
        ("limit=0", "limit", "invalid_value"),
        ("limit=101", "limit", "invalid_value"),
        ("limit=-1", "limit", "invalid_value"),
        ("limit=", "limit", "invalid_value"),
        ("limit=1.5", "limit", "invalid_value"),
        ("limit=٣", "limit", "invalid_value"),
        ("limit=" + "9" * 5000, "limit", "invalid_value"),
        ("order=up", "order", "invalid_value"),
        ("order=", "order", "invalid_value"),
        ("after=", "after", "invalid_value"),
        ("after=a%00b", "after", "invalid_value"),
        ("include=nothing", "include[0]", "invalid_value"),
        ("include[]=message.output_text.logprob", "include[0]", "invalid_value"),
        ("limitt=5", "limitt", "unknown_parameter"),
        ("before=msg_1", "before", "unknown_parameter"),
    ],
)
def test_bad_arguments_of_a_list_are_named(query: str, param: str, code: str) -> None:
    with pytest.raises(ApiError) as caught:
        parse_list_query(pairs(query))
    assert (caught.value.status, caught.value.param, caught.value.code) == (400, param, code)


def test_retrieve_accepts_parameters_without_an_effect() -> None:
    query = parse_retrieve_query(pairs("stream=false&include_obfuscation=true&include[]=web_search_call.results"))
    assert (query.stream, query.include) == (False, ("web_search_call.results",))


def test_retrieve_accepts_a_position_in_the_stream() -> None:
    query = parse_retrieve_query(pairs("stream=true&starting_after=12"))
    assert (query.stream, query.starting_after) == (True, 12)


@pytest.mark.parametrize(
    ("query", "param", "code"),
    [
        ("stream=maybe", "stream", "invalid_value"),
        ("starting_after=3", "starting_after", "invalid_value"),
        ("stream=true&starting_after=-1", "starting_after", "invalid_value"),
        ("stream=true&starting_after=x", "starting_after", "invalid_value"),
        ("stream=true&starting_after=1e3", "starting_after", "invalid_value"),
        ("limit=3", "limit", "unknown_parameter"),
    ],
)
def test_retrieve_refuses_other_parameters_by_name(query: str, param: str, code: str) -> None:
    with pytest.raises(ApiError) as caught:
        parse_retrieve_query(pairs(query))
    assert (caught.value.param, caught.value.code) == (param, code)


def test_routes_without_options_refuse_any() -> None:
    refuse_query([])
    with pytest.raises(UnknownParameter, match="`force`"):
        refuse_query(pairs("force=1"))
