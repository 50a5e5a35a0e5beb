"""Checks a JSON value against the part of JSON Schema that our schema files use; an unknown keyword is an error, so that no rule is
silently skipped."""
import re

KNOWN = {"$schema", "$defs", "$ref", "title", "type", "const", "enum", "pattern", "minLength", "minimum", "maximum", "exclusiveMinimum",
         "required", "properties", "additionalProperties", "items", "minItems"}
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}


def is_type(value, name):
    if name == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if name == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


def check_number(value, schema):
    if "minimum" in schema and value < schema["minimum"]:
        yield f"{value} < {schema['minimum']}"
    if "maximum" in schema and value > schema["maximum"]:
        yield f"{value} > {schema['maximum']}"
    if "exclusiveMinimum" in schema and value <= schema["exclusiveMinimum"]:
        yield f"{value} <= {schema['exclusiveMinimum']}"


def check_text(value, schema):
    if "pattern" in schema and not re.search(schema["pattern"], value):
        yield f"{value!r} does not match {schema['pattern']}"
    if len(value) < schema.get("minLength", 0):
        yield f"{value!r} is too short"


def check_object(value, schema, root, where):
    properties, extra = schema.get("properties", {}), schema.get("additionalProperties", True)
    for key in schema.get("required", []):
        if key not in value:
            yield f"{where}: lacks {key!r}"
    for key, item in value.items():
        if key in properties:
            yield from problems(item, properties[key], root, f"{where}.{key}")
        elif extra is False:
            yield f"{where}: has an unknown key {key!r}"
        elif isinstance(extra, dict):
            yield from problems(item, extra, root, f"{where}.{key}")


def problems(value, schema, root=None, where="$"):
    """Yields a text for everything in value that the schema does not allow."""
    root = root or schema
    unknown = set(schema) - KNOWN
    if unknown:
        raise ValueError(f"keywords that this checker does not know: {sorted(unknown)}")
    if "$ref" in schema:
        target = root
        for part in schema["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        yield from problems(value, target, root, where)
        return
    names = schema.get("type", [])
    names = [names] if isinstance(names, str) else names
    if names and not any(is_type(value, name) for name in names):
        yield f"{where}: {value!r} is not {' or '.join(names)}"
        return
    if "const" in schema and value != schema["const"]:
        yield f"{where}: {value!r} is not {schema['const']!r}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{where}: {value!r} is none of {schema['enum']}"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        yield from (f"{where}: {text}" for text in check_number(value, schema))
    if isinstance(value, str):
        yield from (f"{where}: {text}" for text in check_text(value, schema))
    if isinstance(value, list):
        if len(value) < schema.get("minItems", 0):
            yield f"{where}: has {len(value)} items"
        for index, item in enumerate(value):
            yield from problems(item, schema.get("items", {}), root, f"{where}[{index}]")
    if isinstance(value, dict):
        yield from check_object(value, schema, root, where)
