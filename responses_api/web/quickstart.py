"""Snippets for a first request, which the front page, the server's banner and the page of a new key show."""

import json
from dataclasses import dataclass

PLACEHOLDER = "YOUR_API_KEY"
UNUSED = "not-needed"
QUESTION = "Why is the sky blue?"
STORY = "Tell me a short story about a lighthouse."


@dataclass(frozen=True, slots=True, kw_only=True)
class Quickstart:
    """Snippets to paste into a shell, a file, or Python's prompt."""

    curl: str
    python: str
    python_stream: str


def quickstart(base_url: str, model: str, needs_key: bool, *, key: str = PLACEHOLDER) -> Quickstart:
    """The snippets for a server at ``base_url`` (with ``/v1``). ``key`` is used where one is needed."""
    base_url = base_url.rstrip("/")
    client = (
        "client = OpenAI(\n"
        f"    base_url={_literal(base_url)},\n"
        f"    api_key={_literal(key if needs_key else UNUSED)},\n"
        ")"
    )
    return Quickstart(
        curl=_curl(base_url, model, key if needs_key else None),
        python=(
            "from openai import OpenAI\n\n"
            f"{client}\n"
            "response = client.responses.create(\n"
            f"    model={_literal(model)},\n"
            f"    input={_literal(QUESTION)},\n"
            ")\n"
            "print(response.output_text)\n"
        ),
        # The empty line after the loop ends it at Python's prompt.
        python_stream=(
            "from openai import OpenAI\n\n"
            f"{client}\n"
            "stream = client.responses.create(\n"
            f"    model={_literal(model)},\n"
            f"    input={_literal(STORY)},\n"
            "    stream=True,\n"
            ")\n"
            "for event in stream:\n"
            '    if event.type == "response.output_text.delta":\n'
            '        print(event.delta, end="", flush=True)\n'
            "\n"
            "print()\n"
        ),
    )


def _curl(base_url: str, model: str, key: str | None) -> str:
    body = json.dumps({"model": model, "input": QUESTION}, ensure_ascii=False)
    lines = [f"curl {_shell(base_url + '/responses')}", "-H 'Content-Type: application/json'"]
    if key is not None:
        lines.append(f"-H {_shell(f'Authorization: Bearer {key}')}")
    lines.append(f"-d {_shell(body)}")
    return " \\\n  ".join(lines) + "\n"


def _shell(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _literal(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
