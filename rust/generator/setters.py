"""Setters of a problem, a method for each field."""
from generator.model import Model
from generator.names import BY_HAND, ENUMERATIONS
from generator.text import documented, method
from generator.words import WORDS
from operations_tables import Field

RESIDUALS = {"residual": "SPK_RESIDUAL_ADD", "factor": "SPK_RESIDUAL_MULTIPLY"}
PARAMETERS = {"LD": "ld", "STRIDE": "stride", "HEAD_STRIDE": "stride", "ITEMS": "items"}
ASKED = {"c": ".use_c()", "residual": ".residual()", "grad_lse": ".use_grad_lse()"}  # before an example shares these


def setters(model: Model) -> str:
    hand = BY_HAND[model.op.name]
    unknown = hand - {field.name for field in model.op.fields}
    if unknown:
        raise RuntimeError(f"BY_HAND names fields that {model.op.name} has not: {', '.join(sorted(unknown))}")
    made = [text for field in model.op.fields if field.name not in hand | model.by_forward for text in of_field(model, field)]
    return f"impl {model.type} {{\n" + "\n".join(made) + "}\n"


def setter(model: Model, name: str, words: str, value: str, parameter: str = "", shown: str = "", asked: str = "") -> str:
    """value: what is assigned, with the member before it."""
    made = f"let problem = {model.rust.made}{asked}.{name}({shown});"
    head = f"pub fn {name}(mut self{', ' if parameter else ''}{parameter}) -> Self"
    return documented(words, ["# use sparsek::*;", made, "# let _ = problem;"]) + method(head, [f"self.raw.{value};", "self"])


def of_field(model: Model, field: Field) -> "list[str]":
    name, kind = field.name, field.kind
    noun, told = model.noun(field.operand), f"{field.help[0][0].upper()}{field.help[0][1:]}." if field.help else f"The field `{name}`."
    words = model.words(WORDS, name, by_kind(model, field, noun) or told)
    if kind == "DTYPE":  # those of operands follow from the types of Rust
        return [] if field.operand else [setter(model, "tf32", words, f"{name} = sys::SPK_TF32")]
    if kind == "TRANS":
        return [setter(model, name.replace("trans", "transpose"), words, f"{name} = sys::SPK_TRANS")]
    if kind in ("LAYOUT", "BLOCK_LAYOUT"):
        return [setter(model, name, words, f"{name} = layout.raw()", "layout: Layout", "Layout::ColMajor")]
    if kind == "PROMISE":
        return [setter(model, name, words, f"{name} = yes.into()", "yes: bool", "true")]
    if kind == "SCALE":
        return [setter(model, name, words, f"{name} = scale.raw()", "scale: Scale", "Scale::Whole")]
    if kind == "REAL":
        return [setter(model, name, words, f"{name} = value", "value: f64", "0.5")]
    if field.is_flag:
        return [setter(model, name, words, f"{name} = 1")]
    if name in ENUMERATIONS:
        of, value = ENUMERATIONS[name]
        return [setter(model, name, words, f"{name} = {name}.raw()", f"{name}: {of}", f"{of}::{value}")]
    if name == "residual":
        return [setter(model, option, model.words(WORDS, option, words), f"{name} = sys::{RESIDUALS[option]}") for option in field.option]
    if field.values:
        raise RuntimeError(f"{model.op.name}.{name} is an enumeration that rust/generator/names.py does not know: see ENUMERATIONS")
    parameter = PARAMETERS.get(kind, "count")
    made = [setter(model, name, words, f"{name} = size({parameter})", f"{parameter}: usize", "16")]
    return made + [share(model, field)] if field.may_be_shared and not field.option else made


def by_kind(model: Model, field: Field, noun: str) -> "str | None":
    if model.has_depth:
        return {"LD": f"From row to row of {noun}; 0: tight.", "STRIDE": f"From item to item of {noun}; 0: tight.",
                "HEAD_STRIDE": f"From head to head of {noun}; 0: tight, which is one after the other."}.get(field.kind)
    item = "item (or group)" if model.op.fields_of("GROUPS") else "item"
    return {"LD": f"Leading dimension of {noun}; 0: tight.", "STRIDE": f"From one {item} of {noun} to the next; 0: tight.",
            "LAYOUT": f"The order of {noun}.",
            "SCALE": f"What one scale factor of {noun} covers, for types of eight bits: [`{model.args}::{field.name}`] has them."}.get(field.kind)


def share(model: Model, field: Field) -> str:
    operand = field.operand or ""
    words = f"One {model.noun(operand).removeprefix('the ')} for all items of the batch."
    # Gradients have the batch of their attention.
    batch = ASKED.get(operand, "") if model.forward else f".batch(4){ASKED.get(operand, '')}"
    return setter(model, f"share_{operand}", words, f"{field.name} = sys::SPK_STRIDE_SHARED", asked=batch)
