"""What candidates launch, recorded without a device: the command line binds and runs them on doubles of libcuda and of the vendors' libraries
(tests/record), which write down their launches and calls.

A launch is its program, its grid, block, shared memory and attributes, and the bytes of its parameters: without padding, and with an address in device
memory as "which allocation, how far into it". What was copied to the device before counts as well: a list that the host made is an argument, too.
A library's call is its name and its arguments: with a handle or descriptor as what it was made of and given.
"""

import collections
import concurrent.futures
import functools
import json
import os
import pathlib
import subprocess
import tempfile

from program_text import Trouble

from carry.layouts import layouts

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
RECORD = ROOT / "build" / "release" / "tests" / "record.so"  # it records other trees, too
LIBRARIES = ("CUDA", "NVRTC", "CUBLAS", "CUBLASLT", "CUSPARSE", "CUDNN")  # all are doubled by that file
LOADED = ("libcublasLt.so.99", "libnvrtc.so.99")  # what rows open for cuDNN: of the CUDA that its double names (tests/record/cudnn.c)
# name, compute capability, multiprocessors, bytes of the last cache; what their programs are compiled for
CARDS = {
    "NVIDIA H100 80GB HBM3": ("90:132:52428800", "sm_90a"),
    "NVIDIA H200": ("90:132:62914560", "sm_90a"),
    "NVIDIA A100-SXM4-80GB": ("80:108:41943040", "sm_80"),
}
# Of each operation, problems beside those that find a candidate one that it computes (proved.py): other shapes, and what else a launch depends on.
MORE = {
    "spmm": [
        "--m 1024 --k 1024 --n 256 --block 32 --density 0.2 --dtype f16 --trans-a t --batch 3",
        "--m 1000 --k 900 --n 130 --block 48 --density 0.2 --dtype bf16 --use-c --residual --activation silu",
        "--m 2048 --k 2048 --n 64 --block 64 --density 0.1 --dtype bf16 --layout-b col --layout-d col --pattern power-law",
        "--m 1024 --k 1024 --n 1 --block 32 --density 0.1 --dtype f32",
        "--m 1024 --k 1024 --n 8 --block 16 --density 0.1 --dtype f16",
        "--m 4096 --k 4096 --n 2048 --block 128 --density 0.1 --dtype bf16 --layout-b col --layout-d col",
        "--m 1024 --k 1024 --n 64 --block 32x64 --dtype f64 --pattern power-law",
        "--m 1024 --k 1024 --n 128 --block 8x64 --dtype bf16",
        "--m 1024 --k 1024 --n 64 --block 8x64 --dtype bf16 --pattern power-law",
        "--m 256 --k 16384 --n 16 --block 128 --density 0.5 --dtype bf16",
        "--m 256 --k 16384 --n 64 --block 128 --density 0.5 --dtype bf16",
        "--m 1024 --k 1024 --n 512 --block 16 --density 0.1 --dtype bf16 --layout-b col --layout-d col",
        "--m 512 --k 512 --n 256 --block 32 --density 0.5 --dtype f16 --static-values",
    ],
    "sddmm": [
        "--m 512 --k 8192 --n 512 --block 64 --density 0.1 --dtype f32",
        "--m 512 --k 128 --n 512 --block 16 --density 0.1 --dtype f32 --use-c",
        "--m 1024 --k 4096 --n 1024 --block 64x32 --density 0.1 --dtype f16 --batch 2",
        "--m 512 --k 512 --n 512 --block 8 --density 0.1 --dtype f32",
        "--m 512 --k 2048 --n 512 --block 128 --density 0.1 --dtype f64",
        "--m 1000 --k 500 --n 700 --block 48 --density 0.2 --dtype bf16 --layout-a col --layout-b col",
        "--m 512 --k 1024 --n 512 --block 8x128 --density 0.1 --dtype f64",
        "--m 512 --k 512 --n 512 --block 8x64 --density 0.1 --dtype f16",
    ],
    "gemm": [
        f"--m {m} --k {k} --n {n} --dtype {more}"
        for m, k, n, more in (
            (8192, 4096, 4096, "bf16"),
            (64, 4096, 14336, "bf16"),
            (1024, 14336, 4096, "f16 --layout-b col"),
            (256, 8192, 256, "bf16"),
            (64, 8192, 64, "f16 --use-c"),
            (8, 2048, 256, "bf16"),
            (256, 2048, 8, "bf16"),
            (2048, 512, 2048, "bf16 --bias row --activation gelu_erf --keep-preact"),
            (300, 1000, 500, "f16 --batch 3"),
            (64, 4096, 64, "f64"),
            (16, 2048, 16, "f64"),
            (128, 4096, 128, "f32"),
            (16, 4096, 16, "f32"),
            (1000, 300, 1100, "f32 --layout-a col"),
            (1024, 512, 1024, "f64 --residual"),
            (2048, 1024, 1024, "bf16 --group-axis rows --groups 8"),
            (3000, 2048, 3300, "bf16"),
            (32, 4096, 4096, "f16"),
            (4096, 4096, 32, "f16"),
            (1, 4096, 4096, "bf16"),
            (700, 700, 700, "bf16"),
            (128, 16384, 128, "bf16"),
            (128, 4096, 900, "bf16 --layout-b col"),
            (64, 8192, 900, "f16 --layout-b col"),
            (128, 8192, 16, "f64"),
            (256, 512, 512, "bf16 --bias col --activation relu"),
            (256, 512, 512, "f64 --bias col"),
        )
    ],
    "attention": [
        "--heads 8 --queries 1 --keys 65536 --heads-kv 2 --dtype bf16 --depth 128",
        "--heads 8 --queries 16 --keys 16384 --dtype f16 --depth 64",
        "--heads 4 --queries 2000 --keys 3000 --batch 2 --dtype f16 --depth 128 --causal --diagonal bottom_right --lse",
        "--heads 4 --queries 128 --keys 8192 --dtype bf16 --depth 128",
        "--heads 2 --queries 300 --keys 5000 --dtype f32 --depth 128 --use-softcap",
        "--heads 8 --queries 4096 --keys 4096 --dtype bf16 --depth 64 --causal --diagonal top_left",
        "--heads 4 --queries 64 --keys 4096 --dtype bf16 --depth 192 --depth-v 128",
        "--heads 8 --heads-kv 2 --queries 1024 --keys 1024 --dtype bf16 --depth 64 --causal --diagonal top_left",
        "--heads 8 --heads-kv 2 --queries 700 --keys 900 --dtype f16 --depth 128",
        "--heads 8 --heads-kv 4 --queries 600 --keys 600 --dtype bf16 --depth 32",
        "--heads 4 --queries 300 --keys 500 --dtype f16 --depth 64 --window-left 100 --window-right 20 --diagonal bottom_right --lse",
    ],
    "attention_backward": [
        "--queries 1000 --keys 1500 --heads 4 --batch 2 --dtype bf16 --depth 128 --mask-heads 1 --block 50 --density 0.3",
        "--queries 1024 --keys 1024 --sequences 4 --heads 4 --heads-kv 2 --dtype f16 --depth 64 --causal --diagonal top_left",
        "--queries 512 --keys 512 --heads 2 --dtype bf16 --depth 80 --use-softcap",
    ],
}

Record = collections.namedtuple("Record", "launches programs failed text")  # programs: ((file, entry, options), ...)


@functools.cache
def knows(program, option):
    return option in subprocess.run([program, "tune", "--help"], capture_output=True, text=True, check=True).stdout


def spelled(program, problem):
    """Options as a revision spells them: what is --use-softcap now was --soft-cap."""
    return problem if knows(program, "--use-softcap") else problem.replace("--use-softcap", "--soft-cap")


def command(program, op, problem):
    problem = spelled(program, problem)
    return [program, "tune", "--device", "cuda:0", "--op", op, *problem.split(), "--assume-finite", "--quiet", "--json", "/dev/null"]


def environment(folder, card, text):
    """Nothing of the user's but what programs need to be found."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("SPARSEK_")}
    return {
        **own,
        "LD_PRELOAD": str(RECORD),
        "LD_LIBRARY_PATH": ":".join(filter(None, (folder, own.get("LD_LIBRARY_PATH")))),
        **{f"SPARSEK_{name}": str(RECORD) for name in LIBRARIES},
        "SPARSEK_PROVER": "none",
        "SPARSEK_BUNDLE": "",
        "SPARSEK_CACHE_DIR": f"{folder}/cache",
        "SPARSEK_STORE": f"{folder}/store.db",
        "SPARSEK_RECORD_CARD": f"{card}:{CARDS[card][0]}",
        "SPARSEK_RECORD_OUT": f"{folder}/out",
        "SPARSEK_RECORD_CHOICES": f"{folder}/choices",
        "SPARSEK_RECORD_LAYOUTS": f"{folder}/layouts",
        **({"SPARSEK_RECORD_TEXT": "1"} if text else {}),
    }


def record_problem(program, card, op, problem, choices, layout, text):
    """The lines that one problem gives."""
    with tempfile.TemporaryDirectory() as folder:
        at = pathlib.Path(folder)
        (at / "choices").write_text("".join(f"{choice}\n" for choice in choices), encoding="utf-8")
        (at / "layouts").write_text(layout, encoding="utf-8")
        (at / "out").touch()
        for name in LOADED:
            (at / name).symlink_to(RECORD)
        done = subprocess.run(command(program, op, problem), env=environment(folder, card, text), capture_output=True, text=True)
        if done.returncode != 0:
            raise Trouble(f"{op} {problem}: it is not recorded: {done.stderr.strip()[-400:]}")
        return [json.loads(line) for line in (at / "out").read_text(encoding="utf-8").splitlines()]


def record(source, program, choices, problems, cards=tuple(CARDS), jobs=2, text=False):
    """{(card, choice, problem): Record} of a tree's src and the program that is built of it. choices: {op: ["ROW PARAMS"]}; problems: {op: [options]}."""
    if not RECORD.exists():
        raise Trouble(f"{RECORD} is not there: build the release preset with -DSPARSEK_TESTS=ON")
    with tempfile.TemporaryDirectory() as folder:
        layout = layouts(source, folder)
    work = [(card, op, problem) for card in cards for op in sorted(choices) if choices[op] for problem in problems[op]]
    found = {}

    def one(what):
        return record_problem(program, *what, choices[what[1]], layout, text)

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for (card, op, problem), lines in zip(work, pool.map(one, work), strict=True):
            for line in lines:
                programs = tuple(map(tuple, line["programs"]))
                found[card, line["choice"], f"{op} {problem}"] = Record(line["launches"], programs, line.get("failed"), line.get("text"))
    return found
