"""The directives of user messages that the scripted engine follows. Pure, standard library only.

Without directives the answer is `You said: <the last user message>`. Directives are in the last user message, in double
brackets; they run from left to right, and with any of the first six the rest of the message is not echoed. The output
of a tool is such a message, too:

| directive             | effect                                                                                |
|-----------------------|---------------------------------------------------------------------------------------|
| `[[say: text]]`       | answers with this text                                                                |
| `[[think: text]]`     | thinks this, before the rest of the answer                                            |
| `[[call: name {…}]]`  | calls the tool with these arguments, a JSON object; `{"input": "…"}` for a custom one |
| `[[tokens: 500]]`     | emits exactly this many tokens, "1 2 3 …", one number per token                       |
| `[[show-prompt]]`     | answers with the whole rendered prompt, markers included: what the model sees         |
| `[[fail: sentence]]`  | ends here with finish "error" and this sentence (alone: before any token)      |
| `[[slow: 0.05]]`      | every token of this answer takes at least this many seconds                           |
| `[[wait: 0.5]]`       | the first token comes this many seconds after the start                               |
| `[[hang: 60]]`        | the step after the last token takes this many seconds, in which the engine is stuck   |

A directive with an argument it can't read ends in finish "error" with a sentence that says so. Anything else in double
brackets is text.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from inference.dialects import call_text
from inference.scripted.tokenizer import decode, encode, last_user_text

_DIRECTIVE = re.compile(r"\[\[(say|think|call|tokens|show-prompt|fail|slow|wait|hang)(?::\s*(.*?))?\]\]", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Fail:
    """A step that ends a script with an error."""

    error: str


@dataclass(slots=True)
class Script:
    """One answer: its steps, and its pace in seconds."""

    parts: list[tuple[int, ...] | range | Fail] = field(default_factory=list)
    slow: float = 0.0
    wait: float = 0.0
    hang: float = 0.0

    def steps(self) -> Iterator[int | Fail]:
        """Token ids, up to the first Fail if there is one. Lazy."""
        for part in self.parts:
            if isinstance(part, Fail):
                yield part
                return
            if isinstance(part, range):
                yield from (encode(f" {number}" if number > 1 else "1")[0] for number in part)
            else:
                yield from part


def read_script(prompt: tuple[int, ...]) -> Script:
    """The script for a rendered prompt. The same prompt always gives the same tokens."""
    text = last_user_text(prompt)
    script = Script()
    for match in _DIRECTIVE.finditer(text):
        name, argument = match[1], match[2] or ""
        try:
            _add(script, name, argument, prompt)
        except ValueError:
            script.parts.append(Fail(f"The script can't read [[{name}: {argument}]]."))
    if not script.parts:
        script.parts.append(encode(f"You said: {_DIRECTIVE.sub('', text).strip()}"))
    return script


def _add(script: Script, name: str, argument: str, prompt: tuple[int, ...]) -> None:
    match name:
        case "say":
            script.parts.append(encode(argument))
        case "think":
            script.parts.append(encode(f"<think>\n{argument}\n</think>\n\n"))
        case "call":
            tool, _, arguments = argument.partition(" ")
            written = call_text(tool, json.dumps(json.loads(arguments or "{}"), ensure_ascii=False))
            script.parts.append(encode(f"\n{written}" if script.parts else written))
        case "tokens":
            script.parts.append(range(1, int(argument) + 1))
        case "show-prompt":
            script.parts.append(encode(decode(prompt)))
        case "fail":
            script.parts.append(Fail(argument or "The script failed."))
        case "slow":
            script.slow = _seconds(argument)
        case "wait":
            script.wait = _seconds(argument)
        case "hang":
            script.hang = _seconds(argument)


def _seconds(argument: str) -> float:
    seconds = float(argument)
    if not 0 <= seconds <= 3600:
        raise ValueError(argument)
    return seconds
