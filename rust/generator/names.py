"""What the library's tables cannot know of Rust: names, types, what has setters of another shape, and how examples show an operation."""
import dataclasses
from typing import Any

# Fields with setters of another shape, or that a problem is made with.
BY_HAND: "dict[str, set[str]]" = {
    "spmm": {"n"},
    "sddmm": {"k"},
    "gemm": {"m", "n", "k", "group_axis", "groups"},
    "attention": {"queries", "keys", "depth", "causal", "mask_heads", "mask_items", "sequences", "key_lengths", "page_keys", "pages", "tiles"},
    "attention_backward": set(),
}
# Operands whose setters take more than one array.
PAIRED = {"tile_numbers", "tile_bits"}
# Enumerations of Rust by the name of the field, each with a value for examples. None of them has the C one's 0, which is none.
ENUMERATIONS = {"bias": ("Bias", "PerCol"), "activation": ("Activation", "Relu"), "diagonal": ("Diagonal", "BottomRight")}
# Element types of operands that have another one than the matrices.
ELEMENTS = {"offsets": "i32", "query_ends": "i32", "key_ends": "i32", "page_table": "i32", "tile_numbers": "i32", "tile_bits": "u32",
            "lse": "T::Sum", "grad_lse": "T::Sum"}
INDICES = {name for name, kind in ELEMENTS.items() if kind in ("i32", "u32")}
# Defaults of scalars. "None": 1 / sqrt(depth).
SCALARS = {"alpha": "1.0", "beta": "0.0", "scale": "None", "softcap": "0.0"}


@dataclasses.dataclass(frozen=True)
class Rust:
    """What an operation is called in Rust, and how examples show it."""
    type: str
    room: str  # the folder in rust/sparsek/src
    receiver: str  # what the calls belong to
    at_once: str  # the call that computes
    what: str  # is bound to a kernel, of which types
    made: str  # a problem, for setters
    arrays: str  # makes the arrays of arguments, for their setters
    args: str  # makes these
    small: str  # the problem of an example that computes
    inputs: "tuple[str, ...]"  # its arrays
    result: str  # what comes out
    extent: str  # "A is 2 x 2", for the example with pointers
    larger: str  # a problem to tune
    largest: str  # a problem to race
    bounds: str = "T: Element"  # of the type parameters
    declared: str = "T: Element"  # likewise, with defaults, where a type needs no bounds
    verb: str = "Computes"

    @property
    def parameters(self) -> "list[str]":
        return [bound.split(":")[0] for bound in self.bounds.split(", ")]

    @property
    def generics(self) -> str:
        return ", ".join(self.parameters)

    @property
    def length(self) -> int:
        return self.result.count(",") + 1


def product(letter: str, **rest: Any) -> Rust:
    return Rust(bounds=f"{letter}: Product<D>, D: Element", declared=f"{letter}, D = {letter}", verb="Multiplies", **rest)


RUST = {
    "spmm": product("A", type="Spmm", room="spmm", receiver="Pattern", at_once="matmul",
                    what="a problem to a kernel: A and B of `A`, D of `D`, a type that [`Product`] allows", made="Spmm::new(8)",
                    arrays="let (values, b, mut d) = ([1f32; 4], [1f32; 6], [0f32; 6]);", args="SpmmArgs::new(&values, &b, &mut d)",
                    small="Spmm::new(1)", inputs=("[1., 0., 0., 2.]", "[3., 4.]"), result="[3., 8.]",
                    extent="A is one block of 2 x 2, B and D are 2 x 1.", larger="Spmm::new(4)", largest="Spmm::new(512)"),
    "sddmm": product("X", type="Sddmm", room="sddmm", receiver="Pattern", at_once="matmul_sampled",
                     what="a problem to a kernel: X and Y of `X`, D of `D`, a type that [`Product`] allows", made="Sddmm::new(8)",
                     arrays="let (x, y, mut d) = ([1f32; 6], [1f32; 6], [0f32; 6]);", args="SddmmArgs::new(&x, &y, &mut d)",
                     small="Sddmm::new(1)", inputs=("[1., 2.]", "[3., 4.]"), result="[3., 4., 6., 8.]",
                     extent="X is 2 x 1, Y is 1 x 2, D is one block of 2 x 2.", larger="Sddmm::new(4)", largest="Sddmm::new(512)"),
    "gemm": product("A", type="Gemm", room="gemm", receiver="Context", at_once="gemm",
                    what="a dense product to a kernel: A and B of `A`, D of `D`, a type that [`Product`] allows", made="Gemm::new(8, 8, 8)",
                    arrays="let (a, b, mut d) = ([1f32; 4], [1f32; 6], [0f32; 6]);", args="GemmArgs::new(&a, &b, &mut d)",
                    small="Gemm::new(2, 1, 2)", inputs=("[1., 0., 0., 2.]", "[3., 4.]"), result="[3., 8.]",
                    extent="A is 2 x 2, B and D are 2 x 1.", larger="Gemm::new(16, 16, 16)", largest="Gemm::new(512, 512, 512)"),
    "attention": Rust(type="Attention", room="attention", receiver="Context", at_once="attention",
                      what="an attention to a kernel, for operands of `T`", made="Attention::new(8, 8, 8)",
                      arrays="let (q, k, v, mut o) = ([1f32; 4], [1f32; 6], [1f32; 6], [0f32; 4]);", args="AttentionArgs::new(&q, &k, &v, &mut o)",
                      small="Attention::new(1, 2, 1)", inputs=("[0.]", "[5., 6.]", "[1., 3.]"), result="[2.]",
                      extent="one query and two keys, of depth 1.", larger="Attention::new(16, 16, 16)",
                      largest="Attention::new(512, 512, 64).heads(8)"),
    # Its arguments and pointers are made by hand, beside those of the attention.
    "attention_backward": Rust(type="AttentionBackward", room="attention/backward", receiver="Context", at_once="attention_backward",
                               what="gradients of attention to a kernel, for operands of `T`", made="Attention::new(8, 8, 8).backward()",
                               arrays="let (one, mut q, mut k, mut v) = ([1f32], [0f32], [0f32], [0f32]);",
                               args="AttentionBackwardArgs::new([&one; 3], (&one, &one), &one, [&mut q, &mut k, &mut v])",
                               small="Attention::new(1, 1, 1).backward()", inputs=(), result="[vec![0.], vec![0.], vec![7.]]",
                               extent="one query and one key, of depth 1.", larger="Attention::new(16, 16, 16).backward()",
                               largest="Attention::new(512, 512, 64).heads(8).backward()"),
}
