"""Transcripts of the dialects that write parameter by parameter, and of Harmony's channels."""
# ruff: noqa: RUF001 - DeepSeek's markers are spelt with full-width bars

from inference.calls import Thinking
from inference.calls.pieces import Reasoning, Text

from .transcripts import MARKUP, NESTED, OPENED, PARIS, RAW, THINK, call, case, cut, dump, patch


def _xml(name: str, **values: str) -> str:
    inner = "".join(f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in values.items())
    return f"<tool_call>\n<function={name}>\n{inner}</function>\n</tool_call>"


QWEN_XML = [
    case("qwen-xml", "one call", _xml("get_weather", city="Paris"), *call("get_weather", PARIS)),
    case(
        "qwen-xml",
        "typed values",
        _xml("get_weather", city="12", days="3", exact="true", at='{"lat": 1.5}', tags='["a"]', free="7"),
        *call("get_weather", {"city": "12", "days": 3, "exact": True, "at": {"lat": 1.5}, "tags": ["a"], "free": "7"}),
    ),
    case(
        "qwen-xml",
        "python's words, and a value of no type",
        _xml("get_weather", exact="None", tags="['a', \"b\"]", days="soon"),
        *call("get_weather", {"exact": None, "tags": ["a", "b"], "days": "soon"}),
    ),
    case(
        "qwen-xml",
        "strings with lines and markup",
        _xml("get_weather", city='\na\n\n <b>"x"</b> <param </tool>\n'),
        *call("get_weather", {"city": '\na\n\n <b>"x"</b> <param </tool>\n'}),
    ),
    case("qwen-xml", "no parameters", "Now.\n" + _xml("now"), Text("Now."), *call("now", {})),
    case("qwen-xml", "an undeclared parameter", _xml("now", zone="5"), *call("now", {"zone": "5"})),
    case(
        "qwen-xml",
        "several, one without the outer tag",
        _xml("now") + "\n<function=now>\n</function>\n</tool_call>\nDone",
        *call("now", {}),
        *call("now", {}),
        Text("Done"),
    ),
    case(
        "qwen-xml", "namespace", _xml("agents::close", target="x"), *call("close", {"target": "x"}, namespace="agents")
    ),
    case("qwen-xml", "custom", _xml("apply_patch", input=RAW), *patch(RAW)),
    case(
        "qwen-xml",
        "reasoning before",
        "Hm\n</think>\n\n" + _xml("get_weather", city="東京 🗼"),
        Reasoning("Hm"),
        *call("get_weather", {"city": "東京 🗼"}),
        thinking=OPENED,
    ),
    case(
        "qwen-xml",
        "cut in a string",
        "<tool_call>\n<function=get_weather>\n<parameter=city>\nNew Yo",
        *cut("get_weather", '{"city": "New Yo'),
    ),
    case(
        "qwen-xml",
        "cut in a number",
        "<tool_call>\n<function=get_weather>\n<parameter=days>\n1",
        *cut("get_weather", ""),
    ),
    case(
        "qwen-xml",
        "a parameter that never closed",
        "<tool_call>\n<function=get_weather>\n<parameter=city>\nRome\n</function>\n</tool_call>",
        *call("get_weather", {"city": "Rome"}),
    ),
    case(
        "qwen-xml",
        "a name twice",
        _xml("now", a="1").replace("</function>", "<parameter=a>\n2\n</parameter>\n</function>"),
        *call("now", {"a": "1"}),
    ),
    case("qwen-xml", "an undeclared tool", "a" + _xml("rm", a="b") + "c", Text("a"), Text("c")),
    case("qwen-xml", "a marker in a sentence", "Use <tool_call> tags", Text("Use  tags")),
    case(
        "qwen-xml",
        "malformed",
        "<tool_call><function=now>junk</function></tool_call>c",
        *cut("now", ""),
        Text("c"),
    ),
]


def _glm(name: str, **values: str) -> str:
    inner = "".join(f"<arg_key>{key}</arg_key>\n<arg_value>{value}</arg_value>\n" for key, value in values.items())
    return f"<tool_call>{name}\n{inner}</tool_call>"


GLM = [
    case("glm", "one call", _glm("get_weather", city="Paris"), *call("get_weather", PARIS)),
    case(
        "glm",
        "typed values",
        _glm("get_weather", city="12", days="3", exact="false", at=dump(NESTED["at"]), free='{"a": 1}'),
        *call("get_weather", {"city": "12", "days": 3, "exact": False, "at": NESTED["at"], "free": {"a": 1}}),
    ),
    case("glm", "no arguments", "\n<tool_call>now\n</tool_call>", *call("now", {})),
    case(
        "glm",
        "without line breaks, two",
        "<tool_call>get_weather<arg_key>city</arg_key><arg_value>\na\n</arg_value></tool_call><tool_call>now</tool_call>",
        *call("get_weather", {"city": "\na\n"}),
        *call("now", {}),
    ),
    case(
        "glm",
        "reasoning before",
        "\n<think>Hm.</think>\nSo.\n" + _glm("get_weather", city='<a> "b" 東京'),
        Reasoning("Hm."),
        Text("So."),
        *call("get_weather", {"city": '<a> "b" 東京'}),
        thinking=THINK,
    ),
    case("glm", "namespace", _glm("agents::close", target="x"), *call("close", {"target": "x"}, namespace="agents")),
    case("glm", "custom", _glm("apply_patch", input=RAW), *patch(RAW)),
    case(
        "glm",
        "cut",
        "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Pa",
        *cut("get_weather", '{"city": "Pa'),
    ),
    case("glm", "an undeclared tool", "a" + _glm("rm", a="b") + "c", Text("a"), Text("c")),
    case("glm", "a marker in a sentence", "Use <tool_call> tags.\nOk?", Text("Use  tags.\nOk?")),
]


def dsml(*calls: str) -> str:
    return "<｜DSML｜function_calls>\n" + "\n".join(calls) + "\n</｜DSML｜function_calls>"


def invoke(name: str, *parameters: tuple[str, str, bool]) -> str:
    inner = "\n".join(
        f'<｜DSML｜parameter name="{key}" string="{str(text).lower()}">{value}</｜DSML｜parameter>'
        for key, value, text in parameters
    )
    return f'<｜DSML｜invoke name="{name}">\n{inner}\n</｜DSML｜invoke>'


DSML = [
    case(
        "deepseek-dsml",
        "two calls",
        "Ok.\n\n" + dsml(invoke("get_weather", ("city", "<b>\n", True), ("days", "3", False)), invoke("now")),
        Text("Ok."),
        *call("get_weather", {"city": "<b>\n", "days": 3}),
        *call("now", {}),
    ),
    case(
        "deepseek-dsml",
        "untyped",
        dsml(invoke("get_weather", ("free", "3", False))),
        *call("get_weather", {"free": 3}),
    ),
    case("deepseek-dsml", "custom", dsml(invoke("apply_patch", ("input", RAW, True))), *patch(RAW)),
    case(
        "deepseek-dsml",
        "cut",
        dsml(invoke("get_weather", ("city", "Paris", True)))[:100],
        *cut("get_weather", '{"city": "'),
    ),
]

_ANALYSIS = "<|channel|>analysis<|message|>Hm, I say <think>.<|end|>"
HARMONY = [
    case("harmony", "final", "<|channel|>final<|message|>Hello. <|return|>", Text("Hello. ", "final_answer")),
    case(
        "harmony",
        "reasoning before",
        f"{_ANALYSIS}<|start|>assistant<|channel|>final<|message|>Yes\n",
        Reasoning("Hm, I say <think>."),
        Text("Yes\n", "final_answer"),
    ),
    case(
        "harmony",
        "a call, the channel first",
        f"{_ANALYSIS}<|start|>assistant<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>"
        f"{dump(MARKUP)}<|call|>",
        Reasoning("Hm, I say <think>."),
        *call("get_weather", MARKUP),
    ),
    case(
        "harmony",
        "a call, the recipient first",
        " to=functions.now<|channel|>commentary json<|message|>{}",
        *call("now", {}),
    ),
    case(
        "harmony",
        "a preamble and two calls",
        "<|channel|>commentary<|message|>I look.<|end|><|start|>assistant to=functions.now<|channel|>commentary"
        "<|message|>{}<|call|><|start|>assistant<|channel|>commentary to=functions.agents::close<|message|>{}<|call|>",
        Text("I look.", "commentary"),
        *call("now", {}),
        *call("close", {}, namespace="agents"),
    ),
    case(
        "harmony",
        "custom",
        f"<|channel|>commentary to=functions.apply_patch <|constrain|>json<|message|>{dump({'input': RAW})}",
        *patch(RAW),
    ),
    case("harmony", "no header", "Hello <b>", Text("Hello <b>", "final_answer")),
    case("harmony", "cut in the header", "<|channel|>final<|mess"),
    case("harmony", "cut", '<|channel|>commentary to=functions.now<|message|>{"a": [1', *cut("now", '{"a": [')),
    case(
        "harmony",
        "to somebody else",
        "<|channel|>commentary to=python<|message|>print(1)<|call|><|start|>assistant<|channel|>final<|message|>Ok",
        Text("Ok", "final_answer"),
    ),
    case(
        "harmony",
        "malformed arguments",
        "<|channel|>commentary to=functions.now<|message|>print(1)<|call|>",
        *cut("now", ""),
    ),
]


def _gemma(name: str, inner: str) -> str:
    return f"<|tool_call>call:{name}{{{inner}}}<tool_call|>"


GEMMA = [
    case("gemma", "plain", "a <| b", Text("a <| b")),
    case("gemma", "one call", _gemma("get_weather", 'city:<|"|>Paris<|"|>'), *call("get_weather", PARIS)),
    case(
        "gemma",
        "nested",
        _gemma("get_weather", 'at:{lat:48.85,more:[1,{a:[[]]},null,true]},tags:[<|"|>a<|"|>,<|"|>b c<|"|>],days:3'),
        *call("get_weather", NESTED),
    ),
    case(
        "gemma",
        "strings with markup",
        _gemma("get_weather", 'city:<|"|>a "b" {c}: </tool_call>\n<|<|"|>'),
        *call("get_weather", {"city": 'a "b" {c}: </tool_call>\n<|'}),
    ),
    case(
        "gemma",
        "two",
        "Ok" + _gemma("now", "") + _gemma("agents::close", "target:x"),
        Text("Ok"),
        *call("now", {}),
        *call("close", {"target": "x"}, namespace="agents"),
    ),
    case("gemma", "custom", _gemma("apply_patch", f'input:<|"|>{RAW}<|"|>'), *patch(RAW)),
    case(
        "gemma",
        "reasoning before",
        "<|channel>thought\nHm\n<channel|>" + _gemma("now", ""),
        Reasoning("Hm"),
        *call("now", {}),
        thinking=Thinking(start="<|channel>thought", end="<channel|>"),
    ),
    case("gemma", "cut", '<|tool_call>call:get_weather{city:<|"|>Pa', *cut("get_weather", '{"city": "Pa')),
    case("gemma", "an undeclared tool", "a" + _gemma("rm", "a:1") + "b", Text("a"), Text("b")),
    case(
        "function-gemma",
        "one call",
        "<start_function_call>call:get_weather{city:<escape>New {York}<escape>,days:2}<end_function_call>",
        *call("get_weather", {"city": "New {York}", "days": 2}),
    ),
    case(
        "function-gemma",
        "two, text before",
        "Ok <start_function_call>call:now{}<end_function_call><start_function_call>call:now{}<end_function_call>",
        Text("Ok"),
        *call("now", {}),
        *call("now", {}),
    ),
    case("function-gemma", "cut", "<start_function_call>call:now{a:[1,", *cut("now", '{"a": [1, ')),
]

PYTHONIC = [
    case("pythonic", "plain", "[1] says so", Text("[1] says so")),
    case(
        "pythonic",
        "one call",
        '<|tool_call_start|>[get_weather(city="Paris")]<|tool_call_end|>',
        *call("get_weather", PARIS),
    ),
    case(
        "pythonic",
        "several, text around",
        "Ok\n<|tool_call_start|>[now(), get_weather(city='Pa\\'ris\\n', days=-3, exact=None,)]<|tool_call_end|>Done",
        Text("Ok"),
        *call("now", {}),
        *call("get_weather", {"city": "Pa'ris\n", "days": -3, "exact": None}),
        Text("Done"),
    ),
    case(
        "pythonic",
        "bare",
        "[now(a=1), agents::close(target='x')]",
        *call("now", {"a": 1}),
        *call("close", {"target": "x"}, namespace="agents"),
    ),
    case(
        "pythonic",
        "nested",
        "[get_weather(at={'lat': 48.85, 'more': [1, {'a': ([],)}, None, True]}, tags=['a', \"b c\"], days=3)]",
        *call("get_weather", NESTED),
    ),
    case(
        "pythonic",
        "unicode",
        r'[get_weather(city="Z\u00fcrich \x41 東京 \q")]',
        *call("get_weather", {"city": "Zürich A 東京 \\q"}),
    ),
    case(
        "pythonic",
        "numbers",
        "[now(a=1_000, b=.5, c=1e3, d=0x10)]",
        *call("now", '{"a": 1000, "b": 0.5, "c": 1e3, "d": 16}'),
    ),
    case(
        "pythonic",
        "objects in the list",
        '<|tool_call_start|>[{"name": "now", "arguments": {}}]<|tool_call_end|>',
        *call("now", {}),
    ),
    case(
        "pythonic", "strings with markup", f"[get_weather(city={dump(MARKUP['city'])})]", *call("get_weather", MARKUP)
    ),
    case("pythonic", "custom", f"[apply_patch(input={dump(RAW)})]", *patch(RAW)),
    case("pythonic", "a call later on is text", "So [now()]", Text("So [now()]")),
    case("pythonic", "bare and undeclared is text", "[rm(a=1)]", Text("[rm(a=1)]")),
    case("pythonic", "undeclared", "a<|tool_call_start|>[rm(a=1)]<|tool_call_end|>b", Text("a"), Text("b")),
    case("pythonic", "cut", "<|tool_call_start|>[now(a=[1, 2", *cut("now", '{"a": [1, ')),
    case("pythonic", "malformed", "[now(a=b)]", *cut("now", '{"a": ')),
]
