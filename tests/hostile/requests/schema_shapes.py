"""JSON Schemas and grammars that are expensive to check, to compile or to apply."""

from __future__ import annotations

from .shapes import Shape, nested, numbered, repeated

OBJECT = '{"type":"object",'


def keyword(name: str, start: str, unit: str, end: str, *, between: str = "") -> Shape:
    """A schema with a long value of one keyword."""
    return Shape(
        f"schema: {name}",
        repeated(unit, start=f'{OBJECT}"properties":{{"a":{start}', end=f"{end}}}}}", between=between),
    )


def wide(name: str, template: str, start: str, end: str) -> Shape:
    """A schema with many different entries."""
    return Shape(f"schema: {name}", numbered(template, start=start, end=end))


def _reference_chain(size: int) -> bytes:
    count = max(2, size // 32)
    links = ",".join(f'"n{number}":{{"$ref":"#/$defs/n{number + 1}"}}' for number in range(count))
    return f'{OBJECT}"$ref":"#/$defs/n0","$defs":{{{links},"n{count}":{{"type":"string"}}}}}}'.encode()


def _doubling_references(size: int) -> bytes:
    """Each definition uses the next one twice."""
    count = min(60, max(2, size // 80))
    links = ""
    for number in range(count):
        next_link = f'{{"$ref":"#/$defs/n{number + 1}"}}'
        links += f'"n{number}":{{"type":"array","prefixItems":[{next_link},{next_link}]}},'
    start = f'{OBJECT}"properties":{{"a":{{"$ref":"#/$defs/n0"}}}},"$defs":{{'
    return f'{start}{links}"n{count}":{{"type":"string"}}}}}}'.encode()


def _exponential_alternatives(size: int) -> bytes:
    entry = '{"anyOf":[{"required":["a"]},{"required":["b"]}]}'
    return f'{OBJECT}"allOf":[{",".join([entry] * max(1, size // len(entry)))}]}}'.encode()


def sized(name: str) -> Shape:
    """A keyword whose value is the size."""

    def write(size: int) -> bytes:
        kind = "array" if "Items" in name else "object" if "Properties" in name else "string"
        return f'{OBJECT}"properties":{{"a":{{"type":"{kind}","{name}":{size}}}}}}}'.encode()

    return Shape(f"schema: {name} of this size", write)


COUNTS = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
PATTERNS = {
    "open brackets": "[^",
    "open groups": "(",
    "alternatives": "a|",
    "optional": "a?",
    "nested stars": "(a*)*",
    "counted": "a{1,999}",
    "any counted": ".{0,999}",
    "classes": "[\\\\w\\\\d]",
    "unicode classes": "\\\\p{L}",
    "lookaheads": "(?=a)",
    "escapes": "\\\\u00e9",
    "backslashes": "\\\\\\\\",
    "bars": "|",
    "control tokens": "<|im_end|>",
}
SCHEMAS = (
    wide("properties", '"#":{"type":"string"}', f'{OBJECT}"properties":{{', "}}"),
    wide("patternProperties", '"^#$":{"type":"string"}', f'{OBJECT}"patternProperties":{{', "}}"),
    wide("$defs", '"#":{"type":"string"}', f'{OBJECT}"$defs":{{', "}}"),
    wide("required", '"#"', f'{OBJECT}"required":[', "]}"),
    wide("enum", '"#"', f'{OBJECT}"properties":{{"a":{{"enum":[', "]}}}"),
    wide("enum of objects", '{"a":1#}', f'{OBJECT}"properties":{{"a":{{"enum":[', "]}}}"),
    wide("dependentRequired", '"#":["a"]', f'{OBJECT}"dependentRequired":{{', "}}"),
    wide("anyOf of constants", '{"const":"#"}', f'{OBJECT}"properties":{{"a":{{"anyOf":[', "]}}}"),
    wide("oneOf of objects", '{"type":"object","properties":{"#":{}}}', f'{OBJECT}"oneOf":[', "]}"),
    wide("unknown keywords", '"x#":1', OBJECT, "}"),
    keyword("anyOf", '{"anyOf":[', '{"type":"string"}', "]}", between=","),
    keyword("allOf", '{"allOf":[', '{"minLength":1}', "]}", between=","),
    keyword("prefixItems", '{"type":"array","prefixItems":[', '{"type":"number"}', "]}", between=","),
    keyword("const", '{"const":"', "a", '"}'),
    keyword("description", '{"description":"', "a", '"}'),
    keyword("format", '{"type":"string","format":"', "a", '"}'),
    keyword("$ref", '{"$ref":"#', "/a", '"}'),
    keyword("$ref escapes", '{"$ref":"#/', "%24~1", '"}'),
    keyword("minimum", '{"type":"integer","minimum":', "9", "}"),
    keyword("multipleOf", '{"type":"number","multipleOf":0.', "1", "}"),
    keyword("minLength", '{"type":"string","minLength":', "9", "}"),
    keyword("minItems", '{"type":"array","minItems":', "9", "}"),
    *(keyword(f"pattern, {name}", '{"type":"string","pattern":"', unit, '"}') for name, unit in PATTERNS.items()),
    *map(sized, COUNTS),
    Shape("schema: deep properties", nested('{"type":"object","properties":{"a":', "{}", "}}")),
    Shape(
        "schema: deep items",
        nested('{"type":"array","items":', "{}", "}", start=f'{OBJECT}"properties":{{"a":', end="}}"),
    ),
    Shape("schema: deep anyOf", nested('{"anyOf":[', "{}", "]}", start=f'{OBJECT}"properties":{{"a":', end="}}")),
    Shape("schema: deep allOf", nested('{"allOf":[', "{}", "]}", start=f'{OBJECT}"properties":{{"a":', end="}}")),
    Shape("schema: deep not", nested('{"not":', "{}", "}", start=f'{OBJECT}"properties":{{"a":', end="}}")),
    Shape("schema: chain of references", _reference_chain),
    Shape("schema: doubling references", _doubling_references),
    Shape("schema: exponential alternatives", _exponential_alternatives),
)
LARK = {
    "alternatives": ("start: ", '\\"a\\" | ', '\\"b\\"'),
    "sequence": ("start: ", '\\"a\\" ', '\\"b\\"'),
    "ambiguous": ("start: e\\ne: e e | e e e | /[a-z ]/ | ", "e e | ", ""),
    "open groups": ("start: ", "(", '\\"a\\"'),
    "optional": ("start: ", '[\\"a\\"] ', '\\"b\\"'),
    "nested": ("start: ", "(", '\\"a\\"' + ")"),
    "counted": ("start: ", '\\"a\\"~1..999 ', '\\"b\\"'),
    "long terminal": ('start: \\"', "a", '\\"'),
    "long pattern": ("start: /", "a?", "/"),
    "pattern brackets": ("start: /", "[^", "/"),
    "comments": ('start: \\"a\\"\\n', "// a\\n", ""),
    "blank lines": ('start: \\"a\\"\\n', "\\n", ""),
}
GRAMMARS = (
    *(
        Shape(f"Lark: {name}", repeated(unit, start=f'"{start}', end=f'{end}"'))
        for name, (start, unit, end) in LARK.items()
    ),
    Shape("Lark: many rules", numbered('r#: \\"a\\"', start='"start: r0000000\\n', end='"')),
    Shape(
        "Lark: chain of rules",
        lambda size: (
            '"start: r0\\n'
            + "".join(f"r{number}: r{number + 1}\\n" for number in range(size // 16))
            + f'r{size // 16}: \\"a\\""'
        ).encode(),
    ),
    *(Shape(f"pattern: {name}", repeated(unit, start='"', end='"')) for name, unit in PATTERNS.items()),
)
