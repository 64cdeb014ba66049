"""Rewrites a Lark grammar of raw text to match that text as the inside of a JSON string. Pure.

Escapes are those that `json.dumps` writes. llguidance's lexer never backtracks inside a lexeme, which escapes would
need. So every character becomes a lexeme of its own, terminals become rules, and regular expressions become bodies of
rules. The language is that of the grammar's rules; a grammar that can't be rewritten is refused, never loosened.
"""

import ast
import json
import re
from functools import lru_cache

from inference.grammars.lark import literal

_MOST_QUOTED = 40
_LARGEST = 1 << 20
"""Most characters of a rewritten grammar. A set of one character may become a hundred, and the decoder has limits."""
_SPECIAL = ['"', "\\", *map(chr, range(32))]
_PLAIN_ONLY = r"[^\"\\\x00-\x1f]"
_COMMON = {
    "CNAME": r"[A-Za-z_][A-Za-z0-9_]*", "CR": r"\r", "DIGIT": r"[0-9]", "ESCAPED_STRING": r'"(?:[^"\\\n]|\\.)*"',
    "FLOAT": r"[0-9]+\.[0-9]*", "HEXDIGIT": r"[0-9a-fA-F]", "INT": r"[0-9]+",
    "LCASE_LETTER": r"[a-z]", "LETTER": r"[A-Za-z]",
    "LF": r"\n", "NEWLINE": r"(?:\r?\n)+", "NUMBER": r"[0-9]+(?:\.[0-9]*)?", "SIGNED_INT": r"[+-]?[0-9]+",
    "SIGNED_NUMBER": r"[+-]?[0-9]+(?:\.[0-9]*)?", "UCASE_LETTER": r"[A-Z]", "WORD": r"[A-Za-z]+", "WS": r"[ \t\f\r\n]+",
    "WS_INLINE": r"[ \t]+",
}  # fmt: skip
"""The terminals of `%import common.…`."""
_TOKEN = re.compile(
    r"""(?P<range>"(?:\\.|[^"\\])"\s*\.\.\s*"(?:\\.|[^"\\])")
    |(?P<string>"(?:\\.|[^"\\\n])*+(?:"i?|(?P<open_string>)))
    |(?P<comment>//[^\n]*|\#[^\n]*)
    |(?P<regex>/(?:\\.|\[(?:\\.|[^\]\\])*+(?:\]|(?P<open_set>))|[^/\\\n\[])++(?:/[a-z]*|(?P<open_regex>)))
    |(?P<import>%import[ \t]+common(?:\.(?P<name>\w+)(?:[ \t]*->[ \t]*(?P<alias>\w+))?|[ \t]*\((?P<names>[\w, \t]+)\)))
    |(?P<optional>[\[\]])
    |(?P<never>~(?![0-9])|%\w+|[@<&]|\{[^{}]*+\}\s*:)
    |(?P<terminal>(?<!\w)_?[A-Z][A-Z0-9_]*(?:\.[0-9]+(?=\s*:))?)""",
    re.VERBOSE,
)
"""Tokens without an end are matched too, and refused, so that no character is read twice: reading is linear."""
_ATOM = re.compile(
    r"""(?P<group>\(\?(?P<flags>[a-z]*(?:-[a-z]+)?):|\((?!\?))
    |(?P<close>\))
    |(?P<open>\[(?!\^?\]?(?:\\.|\[:\w+:\]|[^\]\\])*+\]))
    |(?P<set>\[\^?\]?(?:\\.|\[:\w+:\]|[^\]\\])*+\]|\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|[pP]\{\w+\}|.)|\.)
    |(?P<count>(?:\{[0-9]+(?:,[0-9]*)?\}|[*+?])\??)
    |(?P<or>\|)
    |(?P<never>[\^$]|\(\?)
    |(?P<character>.)""",
    re.VERBOSE | re.DOTALL,
)


class Unenforceable(ValueError):
    """The grammar can't be enforced in this model's form of calls. The message is one sentence."""


def escaped_lark(definition: str) -> str:
    """The grammar for the same text with the escapes of a JSON string. Raises Unenforceable."""
    parts, size, end = list[str](), 0, 0
    for match in _TOKEN.finditer(definition):
        part = definition[end : match.start()] + _rewritten(match)
        parts.append(part)
        size, end = size + len(part), match.end()
        if size > _LARGEST:
            raise _too_large()
    return "".join((*parts, definition[end:]))


def _refuse(what: str) -> Unenforceable:
    return Unenforceable(
        f"The grammar's `{what}` can't be enforced within the JSON in which this model writes its calls."
    )


def _too_large() -> Unenforceable:
    return Unenforceable("The grammar is too large within the JSON in which this model writes its calls.")


def _rewritten(match: re.Match[str]) -> str:
    text = match[0]
    if any(match[name] is not None for name in ("open_string", "open_set", "open_regex")):
        raise _refuse(text if len(text) <= _MOST_QUOTED else f"{text[:_MOST_QUOTED]}…")
    if match["import"]:
        names = [name.strip() for name in (match["names"] or match["name"]).split(",")]
        return "\n".join(f"{_as_rule(match['alias'] or name)}: {_common(name)}" for name in names)
    if match["string"]:
        return _literal_of(ast.literal_eval(text.removesuffix("i")), flag="i" if text.endswith("i") else "")
    if match["range"]:
        first, last = (re.escape(ast.literal_eval(part)) for part in re.split(r"(?<=\")\s*\.\.\s*(?=\")", text))
        return _set(f"[{first}-{last}]")
    if match["regex"]:
        pattern, _, flags = text[1:].rpartition("/")
        if set(flags) - set("su"):
            raise _refuse(text)
        return f"({_expression(pattern, dot_all='s' in flags)})"
    if match["terminal"]:
        return _as_rule(text.partition(".")[0])
    if match["optional"]:
        return "(" if text == "[" else ")?"
    if match["never"]:
        raise _refuse(text)
    return ""  # a comment


def _as_rule(terminal: str) -> str:
    return f"terminal_{terminal.lower()}"


def _common(name: str) -> str:
    if name not in _COMMON:
        raise _refuse(f"%import common.{name}")
    return _expression(_COMMON[name], dot_all=False)


def _literal_of(text: str, flag: str = "") -> str:
    if not text:
        return '""'
    return f"({' '.join(literal(_escaped(character)) + (flag if character.isalpha() else '') for character in text)})"


def _expression(pattern: str, *, dot_all: bool) -> str:
    """A regular expression as the body of a rule."""
    out, size, dots = list[str](), 0, [dot_all]  # for each open group, whether a dot matches line breaks
    for match in _ATOM.finditer(pattern):
        size += len(out[-1]) if out else 0
        if size > _LARGEST:
            raise _too_large()
        if match["never"] or match["open"]:
            raise _refuse(match[0])
        if match["group"]:
            on, _, off = (match["flags"] or "").partition("-")
            if set(on + off) - set("su"):
                raise _refuse(match[0])
            dots.append("s" in on or (dots[-1] and "s" not in off))
            out.append("(")
        elif match["close"]:
            dots = dots[:-1] or [dot_all]
            out.append(")")
        elif match["count"]:
            out.append(match[0] if len(match[0]) == 1 else match[0].removesuffix("?"))
        elif match["or"]:
            out.append("|")
        else:
            out.append(_set(match[0], dot_all=dots[-1]) if match["set"] else literal(_escaped(match[0])))
    return re.sub(r" (?=[*+?{](?:[0-9,]+\}|$| ))", "", " ".join(out))


@lru_cache(maxsize=256)
def _set(atom: str, *, dot_all: bool = False) -> str:
    """One character of a set: those that need no escape, and the escapes of the others."""
    if re.match(r"\\[bBAzZG]", atom):
        raise _refuse(atom)
    if atom.startswith(r"\p{L"):  # letters need no escape
        return f"/{atom}/"
    try:
        holds = re.compile(atom, re.DOTALL if dot_all else 0)
    except re.error:
        raise _refuse(atom) from None
    escapes = [_escaped(character) for character in _SPECIAL if holds.fullmatch(character)]
    if re.fullmatch(r"\\(?:[^\w\s]|[nrtfv0]|x..|u....)", atom) and escapes:
        return literal(escapes[0])
    inner = r"[\s\S]" if atom == "." and dot_all else r"[^\n]" if atom == "." else f"[{atom}]"
    slashed = re.sub(r"(?<!\\)/", r"\/", inner)
    plain = f"/[{slashed}&&{_PLAIN_ONLY}]/"
    if not escapes:
        return plain
    return f"({plain} | /{'|'.join(map(re.escape, escapes))}/)"


def _escaped(character: str) -> str:
    return json.dumps(character, ensure_ascii=False)[1:-1]
