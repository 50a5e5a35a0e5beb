#!/usr/bin/env python3
"""Writes rust/sparsek/src/*/generated.rs: setters of problems, arguments, pointers, plans and calls, of each operation what the library's tables
say of it (scripts/operations_tables.py). What is Rust's own is written by hand beside it: how a problem is made, how many elements a slice
needs (extents.rs), and what generator/names.py lists as made by hand.

    rust/generate.py LIBRARY            write; LIBRARY is the path of libsparsek.so
    rust/generate.py --check LIBRARY    tell which files differ from what would be written
"""
import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "rust")]
from generator.arguments import extents, pointers, slices  # noqa: E402
from generator.calls import calls  # noqa: E402
from generator.model import Model  # noqa: E402
from generator.names import RUST  # noqa: E402
from generator.setters import setters  # noqa: E402
from operations_tables import Operation, read  # noqa: E402

IMPORTS = {  # by module, and what each name looks like where it is used
    "crate::context": {"Context": "impl Context"}, "crate::pattern": {"Pattern": "impl Pattern"},
    "crate::operands": {"Addend": "Addend", "Needed": "Needed", "Target": "Target", "input": " input(", "output": " output("},
    "crate::types": {"Activation": ": Activation", "Bias": ": Bias", "Element": ": Element", "Layout": ": Layout", "Product": ": Product", "Scale": ": Scale",
                     "size": " size(", "sized": "sized!"},
    "super": {"Diagonal": ": Diagonal"}, "super::fixed": {"Fixed": "Fixed<"}, "std::mem": {"MaybeUninit": "MaybeUninit"},
    "crate::attention::extents": {"scale_of": "scale_of("},
}
ALWAYS = ("crate::call::Problem", "crate::error::Result", "crate::plan::{PlanInfo, RawPlan}", "crate::report::Report", "crate::sys",
          "crate::tune::{Race, TuneOptions}", "std::ffi::c_void", "std::fmt", "std::marker::PhantomData", "std::ptr")


def problem(model: Model) -> str:
    return ("// SAFETY: the struct begins with its size and its operation.\n"
            f"unsafe impl Problem for sys::{model.op.problem_type} {{\n    type Args = sys::{model.op.args_type};\n"
            f"    const OPERATION: sys::spk_operation = sys::{model.constant};\n}}\n")


def forward(model: Model) -> "list[str]":
    """Of gradients: from and to the problem that they belong to."""
    if model.forward is None:
        return []
    other, own = model.forward.problem_type, model.op.problem_type
    given = "".join(f"    raw.{field.name} = forward.{field.name};\n" for field in model.taken_over())
    taken = "".join(f"    forward.{field.name} = raw.{field.name};\n" for field in model.taken_over())
    return [f"/// Takes over what both problems have.\npub(super) fn copy_forward(forward: &sys::{other}, raw: &mut sys::{own}) {{\n{given}}}\n",
            f"/// The attention whose gradients are wanted.\npub(super) fn forward_of(raw: &sys::{own}) -> sys::{other} {{\n"
            f"    let mut forward = sized!({other}, {other.upper()});\n{taken}    forward\n}}\n"]


def file(model: Model) -> str:
    body = "\n".join([problem(model), *forward(model), setters(model), extents(model), slices(model), pointers(model), calls(model)])
    lines = [*ALWAYS, f"super::{model.type}"]
    for module, names in IMPORTS.items():
        used = [name for name, shape in names.items() if shape in body]
        lines += [f"{module}::{used[0] if len(used) == 1 else '{' + ', '.join(used) + '}'}"] if used else []
    imports = "".join(f"use {line};\n" for line in sorted(lines))
    return f"// Generated from the library's tables by rust/generate.py: do not edit.\n{imports}\n{body}"


def files(operations: "dict[str, Operation]") -> "dict[Path, str]":
    unknown = set(operations) - set(RUST)
    if unknown:
        raise RuntimeError(f"rust/generator/names.py does not know what Rust calls {', '.join(sorted(unknown))}: see RUST")
    made = {}
    for name, op in operations.items():
        belongs = operations.get(name.removesuffix("_backward")) if name.endswith("_backward") else None
        made[ROOT / "rust/sparsek/src" / RUST[name].room / "generated.rs"] = file(Model(op, belongs))
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 where a file differs")
    parser.add_argument("library", help="the path of libsparsek.so")
    given = parser.parse_args()
    stale = []
    for path, text in files(read(given.library)).items():
        if path.is_file() and path.read_text() == text:
            continue
        stale.append(str(path.relative_to(ROOT)))
        if not given.check:
            path.write_text(text)
    if given.check and stale:
        sys.exit(f"{', '.join(stale)}: not what rust/generate.py writes: run it with the path of libsparsek.so")


if __name__ == "__main__":
    main()
