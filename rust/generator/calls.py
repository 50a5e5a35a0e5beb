"""Plans and calls of an operation: operation.rs.in, filled."""
from pathlib import Path

from generator.arguments import given, made_context, pointers_made
from generator.model import Model
from generator.text import comment, fill

TEMPLATE = Path(__file__).with_name("operation.rs.in")


def calls(model: Model) -> str:
    rust, first, last = model.rust, model.rust.parameters[0], model.rust.parameters[-1]
    receiver, types, d = rust.receiver.lower(), ", ".join(["f32"] * len(rust.parameters)), model.target.name
    before, after, arguments = [f"let mut {d} = [0f32; {rust.length}];"], [f"assert_eq!({d}, {rust.result});"], f"{model.args}::new({given(model)}, &mut {d})"
    pointed = after[0]
    if model.forward:
        before = ["let (mut grad_q, mut grad_k, mut grad_v) = ([9f32], [9f32], [9f32]);", "let grads = [&mut grad_q[..], &mut grad_k, &mut grad_v];"]
        after = ["assert_eq!((grad_q, grad_k, grad_v), ([0.], [0.], [7.])); // a query with one key"]
        pointed, arguments = "assert_eq!(grad_v, [7.]);", f"{model.args}::new([&[1.], &[2.], &[3.]], (&[3.], &[2.]), &[7.], grads)"
    static = model.is_static
    return fill(TEMPLATE.read_text(), {
        "op": model.op.name, "Type": model.type, "Args": model.args, "Pointers": model.pointers, "Plan": model.plan, "Receiver": rust.receiver,
        "receiver": receiver, "at_once": rust.at_once, "Verb": rust.verb, "what": rust.what, "bounds": model.bounds, "generics": model.generics,
        "plan_bounds": f"{model.bounds} = {first}" if first != last else model.bounds, "First": first, "Last": last, "types": types,
        "wide": "bf16, f32" if first != last else "bf16", "setup": made_context(model),
        "bound": f"let plan = {receiver}.plan_{model.op.name}::<{types}>(&{rust.small}, &TuneOptions::new().estimate())?;",
        "before": before, "given": arguments, "after": after, "pointers": pointers_made(model), "pointed": pointed, "extent": rust.extent,
        "small": rust.small, "larger": rust.larger, "largest": rust.largest, "exact": rust.result,
        "plan_depth": "self.needed.depth" if model.has_depth else "", "question_depth": "question.problem.depth" if model.has_depth else "",
        "fixed_member": [f"pub(super) fixed: Fixed<{first}>,"] * static, "fixed_check": ["self.fixed.check()?;"] * static,
        "fixed_made": ["let fixed = Fixed::of(&question.problem, &mut needed);"] * static, "fixed_name": "fixed, " if static else "",
        "mut_needed": "mut needed" if static else "needed", "shown_fixed": ['out.field("static_values", &self.fixed.is_static);'] * static,
        "shown_pattern": ['out.field("pattern", self.plan.pattern());'] * (model.op.pattern == "NEEDED"), **oracle(model)})


def oracle(model: Model) -> "dict[str, str | list[str]]":
    outputs = [operand.name for operand in model.required if operand.is_output]
    asked = [f'question.oracle(&raw, "{name}")' for name in outputs]
    order = "row-major, item after item" + (", head after head" if model.has_depth else "")
    if model.target.is_values:
        order = "in the order of the values, item after item"
    what = "The result" if len(outputs) == 1 else "The gradients by Q, K and V"
    behind = "; what lies behind the last group is 0" if model.op.fields_of("GROUPS") else ""
    words = f"{what} by plain loops with sums in float64{' (wider for f64)' if model.has_depth else ''}, {order}{behind}. Reads the operands and writes none."
    return {"oracle_words": [line.removeprefix("    /// ") for line in comment(words).splitlines()],
            "oracle_type": "Vec<f64>" if len(outputs) == 1 else f"[Vec<f64>; {len(outputs)}]",
            "oracle": asked[0] if len(outputs) == 1 else f"Ok([{'?, '.join(asked)}?])"}
