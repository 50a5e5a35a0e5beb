"""Text of Rust: comments with examples, and templates."""
import re
import textwrap

WIDTH = 120


def comment(text: str, indent: int = 4) -> str:
    prefix = " " * indent + "/// "
    return "".join(f"{prefix}{line}\n" for line in textwrap.wrap(text, WIDTH - len(prefix), break_long_words=False, break_on_hyphens=False))


def documented(words: str, example: "list[str]", indent: int = 4, fence: str = "") -> str:
    """A comment with an example."""
    start = " " * indent + "///"
    return comment(words, indent) + f"{start}\n" + "".join(f"{start} {line}\n" for line in [f"```{fence}", *example, "```"])


def method(head: str, body: "list[str]") -> str:
    return f"    {head} {{\n" + "".join(f"        {line}\n" for line in body) + "    }\n"


def fill(template: str, values: "dict[str, str | list[str]]") -> str:
    """A template with $name for values. A line that is nothing but one becomes as many lines as the value has, with what stands before it."""
    made = []
    for line in template.splitlines():
        alone = re.fullmatch(r"(\s*(?:/// )?)\$(\w+)", line)
        value = values[alone[2]] if alone else None
        if alone and isinstance(value, list):
            made += [f"{alone[1]}{row}" for row in value]
        else:
            made.append(re.sub(r"\$\{?(\w+)\}?", lambda found: str(values[found[1]]), line).rstrip())
    return "\n".join(made) + "\n"
