"""A model's dialect, and whether it thinks, is detected from its chat template."""
# ruff: noqa: RUF001 - DeepSeek's markers are spelt with full-width bars

import pytest

from inference.calls import Thinking
from inference.dialects import detect

TOOLS = "{%- if tools %}{% for tool in tools %}{{ tool | tojson }}{% endfor %}{% endif %}"
CHATML = "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] }}{% endfor %}"


@pytest.mark.parametrize(
    ("template", "name"),
    [
        (TOOLS + '<tool_call>\n{"name": <function-name>}\n</tool_call>', "hermes"),
        (TOOLS + "<tool_call>\n<function=example>\n<parameter=a>", "qwen-xml"),
        (TOOLS + "<tool_call>{function-name}\n<arg_key>{arg-key-1}</arg_key>", "glm"),
        (TOOLS + '{"name": function name, "parameters": dictionary of argument name and its value}.', "llama"),
        (TOOLS + "{{- '<|python_tag|>' + name }}", "llama"),
        (TOOLS + "[TOOL_CALLS] [", "mistral"),
        (TOOLS + "'<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>' + tool['function']['arguments']", "deepseek"),
        (TOOLS + "<|tool_calls_section_begin|>", "kimi"),
        (TOOLS + "<|start|>assistant<|channel|>analysis<|message|>", "harmony"),
        (TOOLS + "'<|tool_call>call:'", "gemma"),
        (TOOLS + "'<start_function_call>call:'", "function-gemma"),
        (TOOLS + "<|tool_list_start|>[", "pythonic"),
    ],
)
def test_a_template_with_tools(template: str, name: str) -> None:
    dialect = detect(template)
    assert dialect.name == name
    assert not dialect.own_template
    assert dialect.thinks == (name == "harmony")


def test_special_tokens_decide_if_the_template_does_not() -> None:
    assert detect(TOOLS, ["<|tool_calls_section_begin|>"]).name == "kimi"
    assert detect(TOOLS, ["<|im_end|>"]).name == "hermes"


def test_a_template_without_tools_gets_ours() -> None:
    dialect = detect(CHATML, ["<|python_tag|>"])
    assert dialect.own_template
    assert dialect.name == "hermes"
    assert not dialect.thinks


@pytest.mark.parametrize(
    ("template", "thinking"),
    [
        ("{{ content.split('</think>')[-1] }}", Thinking()),
        ("'[THINK]' + thinking + '[/THINK]'", Thinking(start="[THINK]", end="[/THINK]")),
        ("<|channel>thought\n<channel|>", Thinking(start="<|channel>thought", end="<channel|>")),
        (CHATML, None),
    ],
)
def test_thinking(template: str, thinking: Thinking | None) -> None:
    assert detect(template).thinking == thinking


def test_thinking_tokens_are_detected_too() -> None:
    assert detect(CHATML, ["<think>", "</think>"]).thinking == Thinking()


def test_switches_and_the_place_of_reasoning() -> None:
    dialect = detect("{% if enable_thinking is false %}</think>{% endif %}{{ message.reasoning_content }}")
    assert dialect.switches == ("enable_thinking",)
    assert dialect.style.reasoning_key == "reasoning_content"
    assert detect("{{ message.thinking }}<|channel|>analysis{{ reasoning_effort }}").switches == ("reasoning_effort",)


def test_a_template_that_refuses_several_calls() -> None:
    llama = TOOLS + '{{- raise_exception("This model only supports single tool-calls at once!") }}"<|python_tag|>"'
    assert detect(llama).style.one_call_per_message
    assert not detect(TOOLS).style.one_call_per_message


def test_deepseek_arguments_are_text_unless_the_template_dumps_them() -> None:
    template = TOOLS + "'<｜tool▁calls▁begin｜>' + tool['function']['arguments']"
    assert detect(template).style.arguments_as_text
    assert not detect(template + " | tojson").style.arguments_as_text


@pytest.mark.parametrize(
    ("prompt", "opened"),
    [
        ("<|im_start|>assistant\n<think>\n", True),
        ("<｜Assistant｜><think>", True),
        ("<|im_start|>assistant\n", False),
        ("<|im_start|>assistant\n<think>\n\n</think>\n\n", False),
        ("user: what is <think>?\nassistant:", False),
    ],
)
def test_a_prompt_that_opens_the_thinking(prompt: str, opened: bool) -> None:
    assert Thinking().after(prompt).opened is opened
