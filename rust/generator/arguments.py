"""Arguments of a run: slices in host memory, checked against the problem, and pointers."""
from generator.model import Model
from generator.names import INDICES, PAIRED, SCALARS
from generator.text import comment, documented, method
from generator.words import ARGUMENT_WORDS, EXAMPLES, POINTER_WORDS
from operations_tables import Operand, Scalar

WORKSPACE = (comment("Null: the plan's own, of which there is one for each stream.") + "    pub workspace: *mut c_void,\n"
             + comment("Bytes of the workspace, at least [`PlanInfo::workspace_bytes`].") + "    pub workspace_bytes: usize,\n")


def extents(model: Model) -> str:
    rows = [f"    pub {operand.name}: Needed,\n" for operand in model.op.operands] + ["    pub depth: i64,\n"] * model.has_depth
    named = [f'    ("{operand.name}", self.{operand.name}),' for operand in model.op.operands]
    return ("/// Elements that the problem asks each operand for.\n#[derive(Clone, Copy)]\n"
            f"pub(in crate::{model.rust.room.split('/')[0]}) struct Extents {{\n{''.join(rows)}}}\n\n#[cfg(test)]\nimpl Extents {{\n"
            + method("pub fn named(&self) -> Vec<(&'static str, Needed)>", ["vec![", *named, "]"]) + "}\n")


def slices(model: Model) -> str:
    example = [model.rust.arrays, f"let args = sparsek::{model.rust.args};", "# let _ = args;"]
    lifetimes = f"'a, {model.rust.declared}"
    members = "".join(f"    pub(super) {operand.name}: {member(model, operand)},\n" for operand in model.op.operands)
    members += "".join(f"    pub(super) {scalar.name}: {model.real(scalar)},\n" for scalar in model.scalars)
    methods = [*([] if model.forward else makers(model)), *setters(model), checked(model)]
    return (documented("The operands of a run in host memory.", example, 0) + "///\n"
            + documented("What is written overlaps no operand:", written_twice(model), 0, "compile_fail")
            + f"#[must_use]\npub struct {model.args}<{lifetimes}> {{\n{members}}}\n\n{debug(model)}\n"
            f"impl<'a, {model.bounds}> {model.args}<'a, {model.generics}> {{\n" + "\n".join(methods) + "}\n")


def member(model: Model, operand: Operand) -> str:
    kind = model.element(operand)
    if model.is_addend(operand):
        return f"Addend<'a, {kind}>"
    if operand in model.optional:
        return f"Option<&'a {'mut ' if operand.is_output else ''}[{kind}]>"
    return f"Target<'a, {kind}>" if operand.is_output else f"&'a [{kind}]"


def written_twice(model: Model) -> "list[str]":
    if model.forward:
        return ["let (q, mut both, mut grad_k, mut grad_v) = ([1f32; 4], [1f32; 4], [0f32; 4], [0f32; 4]);",
                "let grads = [&mut both[..], &mut grad_k, &mut grad_v];",
                f"let args = sparsek::{model.args}::new([&q, &q, &q], (&q, &q), &both, grads);", "# let _ = args;"]
    names = [operand.name for operand in model.inputs[:-1]]
    given, ones = "".join(f"&{name}, " for name in names), ", ".join(["[1f32; 4]"] * (len(names) + 1))
    return [f"let ({', '.join(names)}, mut both) = ({ones});", f"let args = sparsek::{model.args}::new({given}&both, &mut both);", "# let _ = args;"]


def debug(model: Model) -> str:
    def length(operand: Operand) -> str:
        name = operand.name
        if model.is_addend(operand):
            return f"self.{name}"
        return f"self.{name}.as_ref().map(|{name}| {name}.len())" if operand in model.optional else f"self.{name}.len()"

    numbers = [operand for operand in model.optional if operand.name in INDICES or operand.name in model.scales]  # arrays of other types
    order: list[Operand | Scalar] = [*model.required, *[operand for operand in model.optional if operand not in numbers], *model.scalars, *numbers]
    rows = [(row.name, length(row) if isinstance(row, Operand) else f"self.{row.name}") for row in order]
    bounds = "T: Element" if model.has_depth else model.generics
    return (f"/// Lengths, not elements.\nimpl<{bounds}> fmt::Debug for {model.args}<'_, {model.generics}> {{\n"
            + method("fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result",
                     [f'let mut out = f.debug_struct("{model.args}");', *[f'out.field("{name}", &{shown});' for name, shown in rows], "out.finish()"])
            + "}\n")


def makers(model: Model) -> "list[str]":
    target, rust, kind = model.target, model.rust, model.element(model.target)
    inputs = "".join(f"{operand.name}: &'a [{model.element(operand)}], " for operand in model.inputs)
    names = "".join(f"{operand.name}, " for operand in model.inputs)
    titles = ", ".join("the values of all stored blocks" if operand.is_values else operand.title for operand in model.inputs)
    usual = "The scale is 1 / sqrt(depth)." if model.has_depth else "Alpha is 1."
    behind = ", or behind the last group," if model.op.fields_of("GROUPS") else ""
    same = f" It cannot be {' or '.join(model.noun(name) for name in target.may_be)}." if target.may_be else ""
    uninit = (f"As [`{model.args}::new`], where nobody wrote {target.title} yet. After a run that succeeded the result is in it; what lies between its lines or"
              f" items (a leading dimension, a stride){behind} stays unwritten.{same}")
    if model.has_depth:
        uninit += " So do rows behind the last of [packed sequences](crate::Attention::sequences)."
    d, length, variable = target.name, rust.length, rust.receiver.lower()
    example = ["# use sparsek::*;", *made_context(model), f"let mut {d} = Vec::<f32>::with_capacity({length});",
               f"let args = {model.args}::uninit({given(model)}, &mut {d}.spare_capacity_mut()[..{length}]);",
               f"{variable}.{rust.at_once}(&{rust.small}, args, &TuneOptions::new().estimate())?;", "// SAFETY: all of them were written.",
               f"unsafe {{ {d}.set_len({length}) }};", f"assert_eq!({d}, {rust.result});", "# Ok::<(), sparsek::Error>(())"]
    rest = [f"{operand.name}: {'Addend::None' if model.is_addend(operand) else 'None'}," for operand in model.optional]
    rest += [f"{scalar.name}: {SCALARS[scalar.name]}," for scalar in model.scalars]
    body = [f"{model.args} {{", *[f"    {row}" for row in [*[f"{operand.name}," for operand in model.required], *rest]], "}"]
    return [documented(f"{titles[0].upper()}{titles[1:]}, and {target.title} to be written. {usual}",
                       [rust.arrays, f"let args = sparsek::{rust.args};", "# let _ = args;"])
            + method(f"pub fn new({inputs}{d}: &'a mut [{kind}]) -> Self", [f"{model.args}::to({names}Target::Slice({d}))"]),
            documented(uninit, example)
            + method(f"pub fn uninit({inputs}{d}: &'a mut [MaybeUninit<{kind}>]) -> Self", [f"{model.args}::to({names}Target::Uninit({d}))"]),
            method(f"fn to({inputs}{d}: Target<'a, {kind}>) -> Self", body)]


def made_context(model: Model) -> "list[str]":
    """Hidden lines of an example: a context, and a pattern of one block where the calls belong to one."""
    lines = ["# let context = Context::builder().store_in_memory().build()?;"]
    return lines + ["# let pattern = Pattern::new(&context, (2, 2), (2, 2), &[0, 1], &[0])?;"] * (model.rust.receiver == "Pattern")


def given(model: Model) -> str:
    return ", ".join(f"&{array}" for array in model.rust.inputs)


def setters(model: Model) -> "list[str]":
    made = []
    for scalar in model.scalars:
        if scalar.operand is None:
            value = f"Some({scalar.name})" if model.real(scalar) == "Option<f64>" else scalar.name
            words = model.words(ARGUMENT_WORDS, scalar.name, f"The scalar `{scalar.name}`, finite.")
            made.append(setter(model, scalar.name, words, f"{scalar.name}: f64", f"self.{scalar.name} = {value};"))
    for operand in model.optional:
        if operand.name not in PAIRED:
            made += of_operand(model, operand)
    return made


def setter(model: Model, name: str, words: str, parameters: str, body: str) -> str:
    before, call = EXAMPLES.get(name, ((), f"{name}(&[1.0; 6])"))
    example = [f"# {model.rust.arrays}", *before, f"let args = sparsek::{model.rust.args}.{call};", "# let _ = args;"]
    return documented(words, example) + method(f"pub fn {name}(mut self{', ' if parameters else ''}{parameters}) -> Self", [body, "self"])


def of_operand(model: Model, operand: Operand) -> "list[str]":
    name, kind = operand.name, model.element(operand)
    words = model.words(ARGUMENT_WORDS, name, f"The operand {operand.title}.")
    if name in model.scales:
        blocks = ", those of stored blocks in the blocks' order" if model.op.operand(model.scales[name]).is_values else ""
        words = (f"Factors of {model.noun(model.scales[name])}, for [`{model.type}::{name}`]: those of tiles row by row{blocks}; item after item where each"
                 " has a matrix of its own.")
    if not model.is_addend(operand):
        mutable = "mut " if operand.is_output else ""
        return [setter(model, name, words, f"{name}: &'a {mutable}[{kind}]", f"self.{name} = Some({name});")]
    same = "." if operand.is_values else ": their leading dimensions must be equal."
    noun, scalar = model.noun(name), operand.scalar
    in_place = f"{noun[0].upper()}{noun[1:]} is what {model.target.title} holds{same}"
    if scalar is None:
        return [setter(model, name, words, f"{name}: &'a [{kind}]", f"self.{name} = Addend::Slice({name});"),
                setter(model, f"{name}_in_place", in_place, "", f"self.{name} = Addend::InPlace;")]
    both = f"(self.{name}, self.{scalar})"
    return [setter(model, name, words, f"{name}: &'a [{kind}], {scalar}: f64", f"{both} = (Addend::Slice({name}), {scalar});"),
            setter(model, f"{name}_in_place", in_place, f"{scalar}: f64", f"{both} = (Addend::InPlace, {scalar});")]


def checked(model: Model) -> str:
    target = model.target.name

    def pointer(operand: Operand) -> str:
        name = operand.name
        if model.is_addend(operand):
            return f'self.{name}.pointer("{name}", &self.{target}, raw.{target}, needed.{name})?'
        if operand in model.required:
            return f'self.{name}.pointer("{name}", needed.{name})?' if operand.is_output else f'input("{name}", Some(self.{name}), needed.{name})?'
        return f'output("{name}", self.{name}.as_deref_mut(), needed.{name})?' if operand.is_output else f'input("{name}", self.{name}, needed.{name})?'

    rows = [f"raw.{operand.name} = {pointer(operand)};" for operand in [*model.required, *model.optional]]
    rows += [f"raw.{scalar.name} = {model.value(scalar, 'needed.depth')};" for scalar in model.scalars]
    return ("    /// Pointers for the library, every one to as many elements as `needed` says.\n    #[inline]\n"
            + method(f"fn checked(&mut self, needed: &Extents) -> Result<sys::{model.op.args_type}>",
                     [f"let mut raw = sized!({model.op.args_type}, {model.constant});", *rows, "Ok(raw)"]))


def pointers(model: Model) -> str:
    members = ""
    for operand in model.op.operands:
        usual = f"Factors of {model.noun(model.scales[operand.name])}; null where the problem has none." if operand.name in model.scales else operand.title
        members += comment(model.words(POINTER_WORDS, operand.name, usual)) + f"    pub {operand.name}: {raw_type(model, operand)},\n"
    for scalar in model.scalars:
        members += comment(model.words(POINTER_WORDS, scalar.name, f"The scalar `{scalar.name}`.")) + f"    pub {scalar.name}: {model.real(scalar)},\n"
    words = f"The operands of a run in the memory of the context's device, for [`{model.plan}::run_pointers`]. Null where the problem has none."
    methods = [*([] if model.forward else [pointers_maker(model)]), pointers_raw(model)]
    return (documented(words, pointers_example(model), 0)
            + f"#[derive(Clone, Copy, Debug)]\npub struct {model.pointers}<{model.rust.declared}> {{\n{members}{WORKSPACE}}}\n\n"
            f"impl<{model.bounds}> {model.pointers}<{model.generics}> {{\n" + "\n".join(methods) + "}\n")


def raw_type(model: Model, operand: Operand) -> str:
    return f"*{'mut' if operand.is_output else 'const'} {model.element(operand)}"


def pointers_example(model: Model) -> "list[str]":
    first, *rest = pointers_made(model)
    return ["# use sparsek::*;", f"# {first}", *rest, "# let _ = pointers;"]


def pointers_made(model: Model) -> "list[str]":
    """Lines of an example that make the arrays of the small problem, and pointers to them."""
    if model.forward:
        return ["let (q, k, v, mut o, mut lse, grad_o) = ([1f32], [2f32], [3f32], [3f32], [2f32], [7f32]);",
                "let (mut grad_q, mut grad_k, mut grad_v) = ([9f32], [9f32], [9f32]);",
                "let mut forward = AttentionPointers::new(q.as_ptr(), k.as_ptr(), v.as_ptr(), o.as_mut_ptr());",
                "forward.lse = lse.as_mut_ptr();",
                "let grads = [grad_q.as_mut_ptr(), grad_k.as_mut_ptr(), grad_v.as_mut_ptr()];",
                f"let pointers = {model.pointers}::of(&forward, grad_o.as_ptr(), grads);"]
    names = ", ".join(operand.name for operand in model.inputs)
    arrays = ", ".join(array.replace(".", "f32", 1) for array in model.rust.inputs)
    to = ", ".join(f"{operand.name}.{'as_mut_ptr' if operand.is_output else 'as_ptr'}()" for operand in model.required)
    return [f"let ({names}, mut {model.target.name}) = ({arrays}, [0f32; {model.rust.length}]);", f"let pointers = {model.pointers}::new({to});"]


def pointers_maker(model: Model) -> str:
    parameters = ", ".join(f"{operand.name}: {raw_type(model, operand)}" for operand in model.required)
    rows = [f"{operand.name}," for operand in model.required]
    rows += [f"{operand.name}: ptr::null{'_mut' if operand.is_output else ''}()," for operand in model.optional]
    rows += [f"{scalar.name}: {SCALARS[scalar.name]}," for scalar in model.scalars] + ["workspace: ptr::null_mut(),", "workspace_bytes: 0,"]
    words = "Q, K, V and O, nothing else." if model.has_depth else "A product with alpha 1 and nothing else."
    return (documented(words, pointers_example(model))
            + method(f"pub fn new({parameters}) -> Self", [f"{model.pointers} {{", *[f"    {row}" for row in rows], "}"]))


def pointers_raw(model: Model) -> str:
    rows = [f"raw.{operand.name} = self.{operand.name}.cast();" for operand in model.op.operands]
    rows += [f"raw.{scalar.name} = {model.value(scalar, 'depth')};" for scalar in model.scalars]
    return method(f"fn raw(&self{', depth: i64' if model.has_depth else ''}) -> sys::{model.op.args_type}",
                  [f"let mut raw = sized!({model.op.args_type}, {model.constant});", *rows,
                   "(raw.workspace, raw.workspace_bytes) = (self.workspace, self.workspace_bytes);", "raw"])
