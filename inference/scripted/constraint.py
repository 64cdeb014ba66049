"""Makes a script follow a constraint: deterministic, and always valid.

Bytes of the script are used while the constraint allows them. Where it doesn't, one byte that is allowed is inserted,
and the script continues after it: `{"a":1}` becomes `{"a": 1}`, and a sentence becomes the text of the first string
that accepts it. What the script leaves open is closed the shortest way, and no thinking is added.
"""

from collections.abc import Iterator

from inference.constraints.matching import END, TOO_COMPLEX, Matcher
from inference.scripted.script import Fail
from inference.scripted.tokenizer import token_bytes

_CLOSING = b'}]",'
_LAST = b"[{-\\"  # opens something, or makes a number or a string longer than necessary
_IN_STRINGS = ord("~")  # allowed in JSON strings and in free text only
_NOT_IN_STRINGS = ord("\n")
_END_OF_TEXT, _START_OF_CALL = b"</think>", b"<tool_call>"
_ANY_EVERY = 16  # how often any byte is chosen, so that no preference leads into a loop


def constrained(steps: Iterator[int | Fail], matcher: Matcher) -> Iterator[int | Fail]:
    """The steps of a script as the matcher allows them: whole tokens if possible, else single bytes."""
    count = 0
    for step in steps:
        if isinstance(step, Fail):
            yield step
            return
        piece = token_bytes(step)
        taken = matcher.advance_while_allowed(piece)
        if taken == len(piece):
            yield step
            continue
        while True:
            yield from piece[:taken]
            piece = piece[taken:]
            if not piece:
                break
            if matcher.error:
                yield Fail(TOO_COMPLEX)
                return
            if matcher.may_end:
                return
            yield from _insert(matcher, count)
            count += 1
            taken = matcher.advance_while_allowed(piece)
    while not matcher.may_end:
        if matcher.error:
            yield Fail(TOO_COMPLEX)
            return
        yield from _insert(matcher, count)
        count += 1
    if matcher.error:
        yield Fail(TOO_COMPLEX)


def _insert(matcher: Matcher, count: int) -> bytes:
    """Choose bytes that can follow: markup, or a byte that closes something, else another one. Every text ends."""
    mask = matcher.mask()
    if matcher.error:
        return b""
    is_text = bool(mask[_IN_STRINGS])
    if is_text:
        markup = _END_OF_TEXT if mask[_NOT_IN_STRINGS] else b""
    else:
        markup = b"{" if mask[ord("{")] and mask[ord("<")] else _START_OF_CALL
    if markup and matcher.count_allowed(markup) == len(markup):
        matcher.advance_while_allowed(markup)
        return markup
    allowed = [byte for byte in range(END) if mask[byte]]
    closing = [byte for byte in (b'"' if is_text else _CLOSING) if mask[byte]]
    plain = [byte for byte in allowed if byte < 128 and byte not in _LAST]
    is_free = count % _ANY_EVERY == _ANY_EVERY - 1
    choice = allowed if is_free else closing[:1] or plain or allowed
    byte = choice[(count * 0x9E3779B1 >> 12) % len(choice)]
    matcher.advance(byte)
    return bytes((byte,))
