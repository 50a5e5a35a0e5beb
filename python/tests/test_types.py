"""Element types: the library's table (src/type/types.def) against the libraries and headers whose names and numbers it has, as far as they
are installed, and Python's lists against the table."""

import ast
import json
import math
import pathlib
import re
import struct

import numpy
import pytest
import torch

import sparse_autotune as sa
from sparse_autotune import _C, _types

ROOT = pathlib.Path(__file__).parents[2]
TABLE = (ROOT / "src/type/types.def").read_text().rpartition("*/")[2]
PACKAGES = pathlib.Path(torch.__file__).parents[1]
NO_NUMBER = -1

# What is meant: CUtensorMapDataType, cudaDataType, cudnnDataType_t, dnnl_data_type_t.
PEERS = {
    "f32": ("FLOAT32", "CUDA_R_32F", "CUDNN_DATA_FLOAT", "dnnl_f32"),
    "f64": ("FLOAT64", "CUDA_R_64F", "CUDNN_DATA_DOUBLE", "dnnl_f64"),
    "f16": ("FLOAT16", "CUDA_R_16F", "CUDNN_DATA_HALF", "dnnl_f16"),
    "bf16": ("BFLOAT16", "CUDA_R_16BF", "CUDNN_DATA_BFLOAT16", "dnnl_bf16"),
    "f8e4m3": ("UINT8", "CUDA_R_8F_E4M3", "CUDNN_DATA_FP8_E4M3", "dnnl_f8_e4m3"),
    "f8e5m2": ("UINT8", "CUDA_R_8F_E5M2", "CUDNN_DATA_FP8_E5M2", "dnnl_f8_e5m2"),
    "tf32": ("TFLOAT32", None, None, None),
    "i32": ("INT32", "CUDA_R_32I", "CUDNN_DATA_INT32", "dnnl_s32"),
    "i8": ("UINT8", "CUDA_R_8I", "CUDNN_DATA_INT8", "dnnl_s8"),
}


def parts(text):
    """What commas part, brackets left whole."""
    found, depth, last = [], 0, 0
    for at, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if char == "," and depth == 0:
            found.append(text[last:at].strip())
            last = at + 1
    return [*found, text[last:].strip()]


def inside(text):
    return parts(text.strip()[1:-1])


def rows():
    for row in re.findall(r"^SPK_TYPE\((.*?)\)$", TABLE, re.MULTILINE | re.DOTALL):
        yield parts(row)


ROWS = {row[1]: row for row in rows()}


def test_every_row_is_read():
    assert len(ROWS) == TABLE.count("SPK_TYPE(") > 8
    assert set(PEERS) == set(ROWS)
    assert [row[0] for row in _C.types()] == list(ROWS)


def enumerators(name, prefix):
    """The numbers that an installed header gives; skips where there is none."""
    paths = [
        path for folder in (PACKAGES / "nvidia", PACKAGES / "triton/backends/nvidia", PACKAGES / "torch/include") for path in sorted(folder.glob(f"**/{name}"))
    ]
    if not paths:
        pytest.skip(f"there is no {name} beside PyTorch")
    found, number = {}, NO_NUMBER
    for line in re.sub(r"/\*.*?\*/", "", paths[0].read_text(errors="replace"), flags=re.DOTALL).splitlines():
        entry = re.match(rf"\s*({prefix}\w*)(?: \w+_DEPRECATED_ENUM)?\s*(?:=\s*(\w+?)U?)?\s*,?\s*(?://.*)?$", line)
        if entry and (not entry[2] or entry[2] in found or entry[2][0].isdigit()):  # else in terms of what is no type
            number = number + 1 if not entry[2] else found[entry[2]] if entry[2] in found else int(entry[2], 0)
            found.setdefault(entry[1], number)
    assert found, paths[0]
    return found


@pytest.mark.parametrize(
    ("peer", "header", "prefix"),
    [(0, "cuda.h", "CU_TENSOR_MAP_DATA_TYPE_"), (1, "library_types.h", "CUDA_R_"), (2, "cudnn_graph.h", "CUDNN_DATA_"), (3, "dnnl_common_types.h", "dnnl_")],
    ids=["tma", "cuda", "cudnn", "onednn"],
)
def test_numbers_are_those_of_the_headers(peer, header, prefix):
    numbers = enumerators(header, prefix)
    for name, row in ROWS.items():
        meant = PEERS[name][peer]
        number = int(inside(row[8])[peer])
        assert number == (NO_NUMBER if meant is None else numbers[meant if peer else prefix + meant]), (name, meant)


def of_pytorch(row):
    called = inside(row[7])[2]
    return None if called == "none" else getattr(torch, called)


@pytest.mark.parametrize("name", ROWS)
def test_numbers_are_as_in_pytorch(name):
    row = ROWS[name]
    dtype = of_pytorch(row)
    if dtype is None:
        pytest.skip("PyTorch has none")
    significand, least, largest, has_infinity = inside(row[4])
    largest = float.fromhex(largest) if "x" in largest else float(largest)
    assert dtype.itemsize == {"float": 4, "double": 8}.get(inside(row[3])[0]) or f"{8 * dtype.itemsize}_t" in inside(row[3])[0]
    if not dtype.is_floating_point:
        assert torch.iinfo(dtype).max == largest == 2 ** int(significand) - 1
        return
    info = torch.finfo(dtype)
    assert (info.max, info.eps, info.smallest_normal) == (largest, 2.0 ** (1 - int(significand)), 2.0 ** int(least))
    assert torch.tensor(math.inf).to(dtype).float().isinf().item() == (has_infinity == "true")


@pytest.mark.parametrize("name", ROWS)
def test_files_call_it_so(name):
    row = ROWS[name]
    dtype = of_pytorch(row)
    npy, stored, _, words = (ast.literal_eval(part) if part[0] == '"' else part for part in inside(row[7]))
    if npy != "NULL":
        assert str(numpy.dtype(npy)) == str(dtype).removeprefix("torch.")
    elif dtype is not None:
        with pytest.raises(TypeError):
            torch.zeros(1, dtype=dtype).numpy()
    if stored == "NULL":
        return
    safetensors = pytest.importorskip("safetensors.torch")
    saved = safetensors.save({"a": torch.zeros(1, dtype=dtype)})
    assert json.loads(saved[8 : 8 + struct.unpack("<Q", saved[:8])[0]])["a"]["dtype"] == stored
    assert words == words.lower()


def test_python_has_the_lists_of_the_table():
    def used(*uses):
        return tuple(of_pytorch(row) for row in ROWS.values() if row[2].removeprefix("SPK_USE_") in uses)

    assert (_types.DTYPES, _types.FACTORS) == (used("VALUES"), used("FACTORS"))
    assert _types.HALVES == (torch.float16, torch.bfloat16)
    assert _types.RESULTS == (torch.float32, torch.float16, torch.bfloat16)
    assert _types.NAMES[torch.bfloat16] == "bf16" and _types.NAMES[torch.int8] == "i8"
    assert _types.listed(_types.FACTORS) == "float8_e4m3fn, float8_e5m2 or int8"


def test_messages_have_the_lists():
    a = torch.zeros(4, 4, dtype=torch.int16)
    with pytest.raises((TypeError, RuntimeError), match="its dtype must be float32, float64, float16 or bfloat16, not int16"):
        sa.gemm(a, a)
    with pytest.raises(ValueError, match="must be torch.float32, torch.float16 or torch.bfloat16, not torch.float64"):
        sa.scaled_matmul(a, a, out_dtype=torch.float64)
