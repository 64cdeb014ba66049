"""Transcripts of the dialects that write a call's arguments as one JSON object."""
# ruff: noqa: RUF001 - DeepSeek's markers are spelt with full-width bars

from inference.calls import Thinking
from inference.calls.pieces import CallArguments, CallClosed, CallOpened, Reasoning, Text

from .transcripts import MARKUP, NESTED, OPENED, PARIS, RAW, THINK, UNICODE, call, case, cut, dump, patch


def _hermes(name: str, arguments: object) -> str:
    return f'<tool_call>\n{{"name": "{name}", "arguments": {dump(arguments)}}}\n</tool_call>'


HERMES = [
    case("hermes", "plain", " Hello,\n\n a < b. \n", Text(" Hello,\n\n a < b. \n")),
    case("hermes", "one call", _hermes("get_weather", PARIS), *call("get_weather", PARIS)),
    case("hermes", "text before", "Let me look.\n\n" + _hermes("now", {}), Text("Let me look."), *call("now", {})),
    case(
        "hermes",
        "several, text between and after",
        f"{_hermes('now', {})}\n{_hermes('get_weather', PARIS)} and {_hermes('now', {})}\n done",
        *call("now", {}),
        *call("get_weather", PARIS),
        Text("and"),
        *call("now", {}),
        Text("done"),
    ),
    case(
        "hermes",
        "reasoning before",
        f"<think>\nHm, <tool_call> or not?\n</think>\n\nSo:\n{_hermes('now', {})}\n",
        Reasoning("Hm, <tool_call> or not?"),
        Text("So:"),
        *call("now", {}),
        thinking=THINK,
    ),
    case(
        "hermes",
        "reasoning that the prompt opened",
        "Hm.\n</think>\n\nYes.",
        Reasoning("Hm."),
        Text("Yes."),
        thinking=OPENED,
    ),
    case("hermes", "reasoning cut", "<think>\nHm, </th", Reasoning("Hm, </th"), thinking=THINK),
    case("hermes", "empty reasoning", "<think>\n\n</think>\n\nYes.", Text("Yes."), thinking=THINK),
    case(
        "hermes",
        "reasoning between calls",
        f"{_hermes('now', {})}\n<think>And?</think>\n{_hermes('now', {})}",
        *call("now", {}),
        Reasoning("And?"),
        *call("now", {}),
        thinking=THINK,
    ),
    case("hermes", "an end of thinking alone", "</think>\nYes.", Text("Yes."), thinking=THINK),
    case("hermes", "no thinking model", "<think>a</think>", Text("<think>a</think>")),
    case("hermes", "strings with markup", _hermes("get_weather", MARKUP), *call("get_weather", MARKUP)),
    case("hermes", "nested", _hermes("get_weather", NESTED), *call("get_weather", NESTED)),
    case("hermes", "unicode", _hermes("get_weather", UNICODE), *call("get_weather", UNICODE)),
    case(
        "hermes",
        "escapes are kept",
        '<tool_call>{"name":"get_weather","arguments":{"city":"\\u6771\\ud83d\\ude00\\/\\n"}}</tool_call>',
        *call("get_weather", '{"city": "\\u6771\\ud83d\\ude00\\/\\n"}'),
    ),
    case(
        "hermes",
        "raw line break in a string",
        '<tool_call>{"name": "get_weather", "arguments": {"city": "a\nb"}}</tool_call>',
        *call("get_weather", {"city": "a\nb"}),
    ),
    case(
        "hermes",
        "arguments before the name",
        '<tool_call>{"id": 1, "arguments": {"city": "Paris"}, "name": "get_weather"}</tool_call>',
        *call("get_weather", PARIS),
    ),
    case("hermes", "no arguments", '<tool_call>{"name": "now"}</tool_call>', *call("now", {})),
    case("hermes", "null arguments", '<tool_call>{"name": "now", "arguments": null}</tool_call>', *call("now", {})),
    case(
        "hermes",
        "arguments as text",
        '<tool_call>{"name": "get_weather", "arguments": "{\\"city\\": \\"Paris\\"}"}</tool_call>',
        *call("get_weather", PARIS),
    ),
    case(
        "hermes",
        "namespace",
        _hermes("agents::close", {"target": "x"}),
        *call("close", {"target": "x"}, namespace="agents"),
    ),
    case("hermes", "custom", _hermes("apply_patch", {"input": RAW}), *patch(RAW)),
    case(
        "hermes",
        "custom, escaped",
        '<tool_call>{"name": "apply_patch", "arguments": {"input": "\\ud83d\\uDDFC \\ud83d \\u00e9\\/"}}</tool_call>',
        *patch("🗼 \ufffd é/"),
    ),
    case(
        "hermes",
        "custom without input",
        _hermes("apply_patch", {}) + " ok",
        CallOpened("apply_patch", None, custom=True),
        CallClosed(complete=False),
        Text("ok"),
    ),
    case("hermes", "cut in the marker", "Yes <tool_ca", Text("Yes <tool_ca")),
    case("hermes", "cut in the name", 'Yes <tool_call>\n{"name": "get_w', Text("Yes")),
    case(
        "hermes",
        "cut in the arguments",
        '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Par',
        *cut("get_weather", '{"city": "Par'),
    ),
    case(
        "hermes",
        "cut after the name",
        '<tool_call>\n{"name": "get_weather", "argu',
        *cut("get_weather", ""),
    ),
    case("hermes", "cut after the call", _hermes("now", {}).removesuffix("</tool_call>"), *call("now", {})),
    case("hermes", "a marker in a sentence", "Use <tool_call> tags.</tool_call>", Text("Use  tags.")),
    case("hermes", "an undeclared tool", f"a {_hermes('rm', PARIS)} b", Text("a"), Text(" b".lstrip())),
    case(
        "hermes",
        "malformed arguments",
        '<tool_call>{"name": "now", "arguments": {"a": nope, "b": 1}}</tool_call>b',
        CallOpened("now"),
        CallArguments('{"a": '),
        CallClosed(complete=False),
        Text("b"),
    ),
    case(
        "hermes",
        "a call that never ended before the next",
        f'<tool_call>{{"name": "now", "arguments": {{"a" {_hermes("now", {})}',
        CallOpened("now"),
        CallArguments('{"a"'),
        CallClosed(complete=False),
        *call("now", {}),
    ),
    case("hermes", "without tools", "a <tool_call> b", Text("a <tool_call> b"), tools=()),
]


_LLAMA = '{"name": "get_weather", "parameters": {"city": "Paris"}}'
LLAMA = [
    case("llama", "plain", "Hello {x}", Text("Hello {x}")),
    case("llama", "one call", _LLAMA, *call("get_weather", PARIS)),
    case("llama", "tagged", "<|python_tag|>" + _LLAMA, *call("get_weather", PARIS)),
    case("llama", "text before the tag", f"Well. <|python_tag|>{_LLAMA}", Text("Well."), *call("get_weather", PARIS)),
    case("llama", "typed", '{"type": "function", "name": "now", "parameters": {}}', *call("now", {})),
    case("llama", "several", f"{_LLAMA}; {_LLAMA};\n", *call("get_weather", PARIS), *call("get_weather", PARIS)),
    case("llama", "json that is no call", '{"city": "Paris", "name": "now"}', Text('{"city": "Paris", "name": "now"}')),
    case("llama", "json with another name", '{"name": "Bob", "age": 3}', Text('{"name": "Bob", "age": 3}')),
    case("llama", "a call later on is text", f"So {_LLAMA}", Text(f"So {_LLAMA}")),
    case(
        "llama",
        "parameters first",
        '{"parameters": {"city": "Paris"}, "name": "get_weather"}',
        *call("get_weather", PARIS),
    ),
    case("llama", "white space before", f"\n\n{_LLAMA}\nOk.", *call("get_weather", PARIS), Text("Ok.")),
    case("llama", "white space alone", " \n", Text(" \n")),
    case("llama", "code after the tag", "<|python_tag|>print(1)", Text("print(1)")),
    case("llama", "nested", f'{{"name": "get_weather", "parameters": {dump(NESTED)}}}', *call("get_weather", NESTED)),
    case("llama", "cut before the name is known", '{"name": "get_w', Text('{"name": "get_w')),
    case("llama", "cut", '{"name": "get_weather", "parameters": {"city": ', *cut("get_weather", '{"city": ')),
    case("llama", "custom", f'{{"name": "apply_patch", "parameters": {dump({"input": RAW})}}}', *patch(RAW)),
    case(
        "llama",
        "reasoning before",
        f"<think>Hm.</think>\n{_LLAMA}",
        Reasoning("Hm."),
        *call("get_weather", PARIS),
        thinking=THINK,
    ),
]

_LISTED = '[{"name": "get_weather", "arguments": {"city": "Paris"}, "id": "a1b2c3d4e"}'
MISTRAL = [
    case("mistral", "plain", "See [1] and [TOOL]", Text("See [1] and [TOOL]")),
    case("mistral", "list", f"[TOOL_CALLS] {_LISTED}]", *call("get_weather", PARIS)),
    case(
        "mistral",
        "list of two",
        f"Ok\n[TOOL_CALLS]{_LISTED}, {_LISTED[1:]}]",
        Text("Ok"),
        *call("get_weather", PARIS),
        *call("get_weather", PARIS),
    ),
    case("mistral", "empty list", "[TOOL_CALLS][] so", Text("so")),
    case("mistral", "named", f"[TOOL_CALLS]get_weather[ARGS]{dump(MARKUP)}", *call("get_weather", MARKUP)),
    case(
        "mistral",
        "named, two",
        '[TOOL_CALLS]now[ARGS]{}[TOOL_CALLS]get_weather[ARGS]{"city":"Paris"}',
        *call("now", {}),
        *call("get_weather", PARIS),
    ),
    case("mistral", "named, with an id", '[TOOL_CALLS]now[CALL_ID]123456789[ARGS]{"a": 1}', *call("now", {"a": 1})),
    case("mistral", "named, without a marker", '[TOOL_CALLS]now{"a": 1}', *call("now", {"a": 1})),
    case("mistral", "namespace", "[TOOL_CALLS]agents::close[ARGS]{}", *call("close", {}, namespace="agents")),
    case("mistral", "custom", f"[TOOL_CALLS]apply_patch[ARGS]{dump({'input': RAW})}", *patch(RAW)),
    case("mistral", "cut in the list", f"[TOOL_CALLS]{_LISTED[:52]}", *cut("get_weather", '{"city": "Pari')),
    case("mistral", "cut in the name", "[TOOL_CALLS]get_we"),
    case("mistral", "cut", '[TOOL_CALLS]now[ARGS]{"a', *cut("now", '{"a')),
    case(
        "mistral", "an undeclared tool", "a[TOOL_CALLS]rm[ARGS]{}[TOOL_CALLS]now[ARGS]{}", Text("a"), *call("now", {})
    ),
    case("mistral", "a marker in a sentence", "The [TOOL_CALLS] marker is", Text("The  marker is")),
    case(
        "mistral",
        "reasoning before",
        "[THINK]Hm[/THINK][TOOL_CALLS]now[ARGS]{}",
        Reasoning("Hm"),
        *call("now", {}),
        thinking=Thinking(start="[THINK]", end="[/THINK]"),
    ),
]

_BEGIN, _CALL, _SEP = "<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>"
_CALL_END, _CALLS_END = "<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>"
DEEPSEEK = [
    case(
        "deepseek",
        "V3.1",
        f"Ok.{_BEGIN}{_CALL}get_weather{_SEP}{dump(MARKUP)}{_CALL_END}{_CALL}now{_SEP}{{}}{_CALL_END}{_CALLS_END}",
        Text("Ok."),
        *call("get_weather", MARKUP),
        *call("now", {}),
    ),
    case(
        "deepseek",
        "R1",
        f"Hm\n</think>\n\n{_BEGIN}{_CALL}function{_SEP}get_weather\n```json\n{dump(NESTED)}\n```{_CALL_END}\n"
        f"{_CALL}function{_SEP}now\n```json\n{{}}\n```{_CALL_END}{_CALLS_END}",
        Reasoning("Hm"),
        *call("get_weather", NESTED),
        *call("now", {}),
        thinking=OPENED,
    ),
    case(
        "deepseek",
        "custom",
        f"{_BEGIN}{_CALL}apply_patch{_SEP}{dump({'input': RAW})}{_CALL_END}{_CALLS_END}",
        *patch(RAW),
    ),
    case(
        "deepseek",
        "namespace",
        f"{_BEGIN}{_CALL}agents::close{_SEP}{{}}{_CALL_END}",
        *call("close", {}, namespace="agents"),
    ),
    case("deepseek", "cut", f'{_BEGIN}{_CALL}now{_SEP}{{"a": 1', *cut("now", '{"a": ')),
    case("deepseek", "an undeclared tool", f"a{_BEGIN}{_CALL}rm{_SEP}{{}}{_CALL_END}{_CALLS_END}", Text("a")),
    case("deepseek", "a marker alone", f"a {_BEGIN} b {_CALLS_END}", Text("a  b")),
]


def _kimi(*calls: tuple[str, str]) -> str:
    inner = "".join(
        f"<|tool_call_begin|>{identity}<|tool_call_argument_begin|>{arguments}<|tool_call_end|>"
        for identity, arguments in calls
    )
    return f"<|tool_calls_section_begin|>{inner}<|tool_calls_section_end|>"


KIMI = [
    case("kimi", "one call", _kimi(("functions.get_weather:0", dump(MARKUP))), *call("get_weather", MARKUP)),
    case(
        "kimi",
        "several, text around",
        "Ok. " + _kimi(("functions.now:0", "{}"), ("functions.agents::close:1", '{"target":"x"}')) + "Done",
        Text("Ok."),
        *call("now", {}),
        *call("close", {"target": "x"}, namespace="agents"),
        Text("Done"),
    ),
    case(
        "kimi",
        "line breaks",
        _kimi(("functions.now:12", '\n{"a": "é"}\n')).replace("<|tool_call_begin|>", "\n<|tool_call_begin|>\n"),
        *call("now", {"a": "é"}),
    ),
    case("kimi", "custom", _kimi(("functions.apply_patch:0", dump({"input": RAW}))), *patch(RAW)),
    case(
        "kimi",
        "reasoning before",
        "<think>Hm</think>" + _kimi(("now:0", "{}")),
        Reasoning("Hm"),
        *call("now", {}),
        thinking=THINK,
    ),
    case("kimi", "cut", _kimi(("functions.now:0", '{"a": "b"}'))[:-50], *cut("now", '{"a')),
    case("kimi", "an id without a number", _kimi(("functions.now", "{}"), ("functions.now:1", "{}")), *call("now", {})),
    case("kimi", "an undeclared tool", "a" + _kimi(("functions.rm:0", "{}")) + "b", Text("a"), Text("b")),
]
