#!/usr/bin/env python3
"""The blocks of Rust on pages that are no crate's README, as programs: pages.py CRATE FOLDER writes those of a crate, FOLDER/page_*.rs.

What a block takes for granted comes before it. Where its comment says what a variable is ("// o is [2, 2]"), the program asserts it.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```rust\n(.*?)^```$", re.M | re.S)
IS = re.compile(r"// (\w+) is (\[[-0-9., ]+\])")

# (page, number of the block, crate): what comes before.
BEFORE = {
    ("README.md", 1, "sparsek"): "let values = [1f32; 18]; let b = [1f32; 12]; let mut d = [0f32; 8];",
    ("README.md", 2, "burn-sparse"): "use burn::tensor::{Device, Tensor}; let device = Device::flex(); let x = Tensor::<2>::ones([6, 1], &device);",
    ("docs/attention.md", 1, "sparsek"): "",
    ("docs/attention.md", 2, "sparsek"): "let context = Context::new()?;",
}
LINTS = "#![allow(unused_variables, unused_imports, unused_mut)]"


def program(crate, before, block):
    asserted = "".join(f"assert!({name}.iter().zip({values}).all(|(have, want)| (*have as f64 - want as f64).abs() < 1e-5), \"{{{name}:?}}\");\n"
                       for name, values in IS.findall(block))
    name = crate.replace("-", "_")
    return f"{LINTS}\nuse {name}::*;\n\nfn main() -> {name}::Result<()> {{\n{before}\n{block}{asserted}Ok(())\n}}\n"


def main():
    crate, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    for page in sorted({page for page, _, _ in BEFORE}):
        blocks = FENCE.findall((ROOT / page).read_text(encoding="utf-8"))
        for number, block in enumerate(blocks, 1):
            if (page, number, crate) in BEFORE:
                name = re.sub(r"\W", "_", page.removesuffix(".md").lower())
                (folder / f"page_{name}_{number}.rs").write_text(program(crate, BEFORE[page, number, crate], block))
            elif not any(key[:2] == (page, number) for key in BEFORE):
                sys.exit(f"{page}: block {number} of Rust is not tested: tests/pages.py takes it with what comes before")


if __name__ == "__main__":
    main()
