#!/usr/bin/env python3
"""Block-sparse products of sparsek beside what else a user of an NVIDIA GPU would run, in one process on the same data.

Peers: PyTorch's BSR product as a user calls it (torch_eager), PyTorch's Triton kernel with the best of 48 configurations (triton_tuned), dense cuBLAS
through PyTorch (cublas_dense: A with its zeros; cublas_dense_full: random numbers everywhere), 2:4 sparsity through cuSPARSELt (cusparselt_2to4), cuSPARSE's
BSR and Blocked-ELL (sparsek's rows), and a kernel that only reads the values (plain_read). And sparsek beside itself on problems that differ in one thing:
types, layouts, patterns, what is known of B. The suite `training` has what a layer's training needs: SDDMM (beside dense cuBLAS and PyTorch's Triton
kernel), the transposed product, the three products of a layer, a mixture of experts (beside a cuBLAS call for each expert and PyTorch's _grouped_mm).
The suite `gemm` has dense products, beside the best of cuBLASLt's algorithms, and those of groups, beside _grouped_mm. The suite `small` has blocks of 8 to 32,
and few columns of larger ones.

Everything is timed alike: CUDA graphs of several launches (but torch_eager), operands that rotate through more than the L2 cache (cold) or stay (warm),
alternated rounds; a ratio is the median over the rounds. Needs PyTorch with CUDA and Triton. Writes JSON in the shape of `sparsek bench`.

    bench/peers.py --device cuda:0 --library build/release/libsparsek.so --out FILE --resume [--suite gemm] [--case NAME ...] [--limit-s 560]

--resume keeps the cases that the file has; with --limit-s no case begins after that time, and the same command goes on where it stopped. bench/gpu.sh runs
this and all else that is measured on a GPU.
"""
import argparse
import datetime
import os
import sys
import time
import warnings

from race import report
from race.cases import SUITES, chosen_cases


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", default="build/release/libsparsek.so")
    parser.add_argument("--device", default="cuda:0", help="as sparsek and PyTorch count it")
    parser.add_argument("--out", help="the file to write, or with --resume to go on with")
    parser.add_argument("--suite", choices=list(SUITES), default="peers", help="which cases (default: peers)")
    parser.add_argument("--case", action="append", help="a name, or the beginning of names, of any suite; repeatable (default: all of the suite)")
    parser.add_argument("--resume", action="store_true", help="keep the cases that the file has already")
    parser.add_argument("--stale", action="store_true", help="with --resume: measure again what a library of another commit measured")
    parser.add_argument("--again", action="store_true", help="with --resume: measure the named cases again, keep the others")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--store", default="", help="sparsek's store (default: in memory)")
    parser.add_argument("--fresh", action="store_true", help="tune though the store knows the class")
    parser.add_argument("--no-peers", dest="peers", action="store_false", help="dense cuBLAS only")
    parser.add_argument("--triton-s", type=float, default=60, help="most seconds for tuning Triton, per case")
    parser.add_argument("--workers", type=int, default=max(1, min(12, (os.cpu_count() or 1) - 2)), help="processes that compile for Triton, before any case (1: none)")
    parser.add_argument("--compile-s", type=float, default=150, help="most seconds for that")
    parser.add_argument("--limit-s", type=float, default=float("inf"), help="begin no case after so many seconds")
    parser.add_argument("--list", action="store_true", help="the names of the cases, chosen by --case")
    return parser, parser.parse_args()


def begin(torch, library, options):
    from race.harness import card
    document = report.read(options.out) if options.resume else {"schema": 1, "results": []}
    facts = card()
    document.update(sparsek=library.version, commit=library.commit, date=datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                    command="bench/peers.py " + " ".join(sys.argv[1:]),
                    versions={"torch": torch.__version__, "cuda": torch.version.cuda, "triton": __import__("triton").__version__},
                    device={"kind": "cuda", "name": facts.get("name", torch.cuda.get_device_name()), "threads": None,
                            "isa": ["sm_%d%da" % torch.cuda.get_device_capability()], "clocks_mhz": facts.get("sm_mhz"), "power_w": facts.get("power_w"),
                            "driver": facts.get("driver")})
    return document


def main():
    begun = time.monotonic()
    parser, options = arguments()
    cases = chosen_cases(options.case, options.suite)
    if options.list:
        print("\n".join(c.name for c in cases))
        return 0
    if not cases or not options.out:
        parser.error("--out FILE is needed" if cases else f"no case begins with {' or '.join(options.case)}; see --list")
    import torch

    from race.contestants import compile_triton
    from race.harness import card
    from race.library import Library
    from race.trial import measure
    warnings.simplefilter("ignore")  # PyTorch: BSR is in beta state, parameters of its kernel are not tuned
    torch.cuda.set_device(options.device)
    library = Library(options.library, options.device, options.store)
    document = begin(torch, library, options)
    done = {r["case"] for r in document["results"] if not options.again and (not options.stale or r["commit"] == library.commit)}
    cases, failed, left = [c for c in cases if c.name not in done], [], []
    if options.peers:
        compile_triton(cases, options)
    for case in cases:
        if time.monotonic() - begun > options.limit_s:
            left.append(case.name)
            continue
        started = time.monotonic()
        try:
            result = measure(torch, library, case, options)
        except Exception as problem:  # the others still count
            print(f"{case.name}: {type(problem).__name__}: {problem}", file=sys.stderr, flush=True)
            failed.append(case.name)
            continue
        result.update(card=card(), commit=document["commit"], date=document["date"])  # a resumed file has cases of several runs
        report.merge(document, result)
        report.write(options.out, document)
        report.show(result, time.monotonic() - started)
        torch.cuda.empty_cache()
    if failed or left:
        print(f"{len(failed)} failed: {' '.join(failed)}; {len(left)} not begun: {' '.join(left)}", file=sys.stderr)
    return 1 if failed or left else 0


if __name__ == "__main__":
    sys.exit(main())
