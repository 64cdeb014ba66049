"""What models write when they miss their own format: what was a call is cut, and markup never becomes text."""

from inference.calls.pieces import Text

from .parameter_corpus import dsml, invoke
from .transcripts import case, cut

MALFORMED = [
    case("deepseek-dsml", "a marker in a sentence", f"Use {dsml().splitlines()[0]} here", Text("Use  here")),
    case("gemma", "a marker in a sentence", "Use <|tool_call> here", Text("Use  here")),
    case("gemma", "nothing after the name", "<|tool_call>call:now<tool_call|>b", Text("b")),
    case("kimi", "a marker in a sentence", "Use <|tool_calls_section_begin|> here", Text("Use  here")),
    case("pythonic", "a marker in a sentence", "Use <|tool_call_start|> here", Text("Use  here")),
    case("pythonic", "an argument twice", "[now(a=1, a=2)]", *cut("now", '{"a": 1')),
    case("pythonic", "an argument without a name", "[now(=1)]", *cut("now", "")),
    case(
        "glm",
        "an argument without a name",
        "<tool_call>now\n<arg_key></arg_key>\n<arg_value>1</arg_value>\n</tool_call>b",
        *cut("now", ""),
        Text("b"),
    ),
    case("qwen-xml", "no name", "<tool_call>\n<function=>\n</function>\n</tool_call>b", Text("b")),
    case("deepseek-dsml", "no name", dsml(invoke("now")).replace('name="now"', "") + "b", Text("b")),
    case(
        "harmony",
        "a header without a message",
        "<|channel|>final<|end|><|start|>assistant<|channel|>final<|message|>Ok",
        Text("Ok", "final_answer"),
    ),
]
