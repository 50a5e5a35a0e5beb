"""cuSPARSE's BSR and Blocked-ELL SpMM beside dense cuBLAS. Needs PyTorch with CUDA only: it brings libcusparse, called here through ctypes.

    python3 cusparse-bsr.py [N = 4096] [DENSITY... = 0.125 0.5]
"""
import ctypes as C
import os
import re
import sys
import warnings

import torch

I32, BASE_ZERO, R_16F, R_32F, ORDER_COL, ORDER_ROW, BLOCKED_ELL_ALG1, BSR_ALG1 = 2, 0, 2, 0, 1, 2, 13, 14  # of cusparse.h and library_types.h
torch.cuda.init()
path = next(m.group() for m in (re.search(r"/\S*libcusparse\.so\S*", line) for line in open("/proc/self/maps")) if m)
lib = C.CDLL(path)
ONE, ZERO = C.c_float(1), C.c_float(0)


def call(name, *arguments):
    status = getattr(lib, name)(*arguments)
    if status:
        raise RuntimeError(f"{name}: status {status}")


def pointer(tensor):
    return C.c_void_p(tensor.data_ptr())


def size(number):
    return C.c_int64(number)


def dense_matrix(x):
    made = C.c_void_p()
    call("cusparseCreateDnMat", C.byref(made), size(x.shape[0]), size(x.shape[1]), size(x.shape[1]), pointer(x), R_16F, ORDER_ROW)
    return made


def bsr_matrix(rows, cols, values, crow, col, order=ORDER_ROW):
    made = C.c_void_p()
    call("cusparseCreateBsr", C.byref(made), size(rows), size(cols), size(values.shape[0]), size(values.shape[1]), size(values.shape[2]), pointer(crow), pointer(col),
         pointer(values), I32, I32, BASE_ZERO, R_16F, order)
    return made


def ell_matrix(m, k, block, slots, col, values):
    made = C.c_void_p()
    call("cusparseCreateBlockedEll", C.byref(made), size(m), size(k), size(block), size(slots * block), pointer(col), pointer(values), I32, BASE_ZERO, R_16F)
    return made


def product(handle, a, b, d, algorithm):
    """A function that multiplies once."""
    bytes_needed = C.c_size_t()
    call("cusparseSpMM_bufferSize", handle, 0, 0, C.byref(ONE), a, b, C.byref(ZERO), d, R_32F, algorithm, C.byref(bytes_needed))
    buffer = torch.empty(max(bytes_needed.value, 1), dtype=torch.uint8, device="cuda")
    return lambda: call("cusparseSpMM", handle, 0, 0, C.byref(ONE), a, b, C.byref(ZERO), d, R_32F, algorithm, pointer(buffer))


def median_us(run, times=20):
    samples = []
    for i in range(times + 3):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        run()
        end.record()
        end.synchronize()
        samples.append(begin.elapsed_time(end) * 1e3)
    return sorted(samples[3:])[times // 2]


def attempt(what, make, flops, out=None, want=None):
    try:
        run = make()
        us = median_us(run)
        wrong = "" if out is None else f", largest error {((out.double() - want).abs().max() / want.abs().max()).item():.1g} of the largest element"
        print(f"  {what:34} {us:9.1f} us {flops / us * 1e-6:8.1f} TFLOP/s on stored blocks{wrong}")
    except RuntimeError as problem:
        C.CDLL(None).fflush(None)  # what cuSPARSE said of it
        print(f"  {what:34} {problem}")


def race(handle, m, k, n, density, b, b_made, d, d_made):
    for block in (32, 64, 128):
        grid, slots = m // block, max(1, round(density * k / block))
        col = torch.stack([torch.randperm(k // block)[:slots].sort().values for _ in range(grid)]).int().cuda()
        crow = (torch.arange(grid + 1) * slots).int().cuda()
        values = torch.randn(grid * slots, block, block, device="cuda", dtype=torch.float16)
        ell = values.view(grid, slots, block, block).transpose(1, 2).contiguous()
        dense = torch.sparse_bsr_tensor(crow, col.view(-1), values, size=(m, k)).to_dense()
        flops = 2.0 * values.numel() * n
        want = dense.double() @ b.double()
        print(f" block {block}x{block}:")
        attempt("BSR", lambda: product(handle, bsr_matrix(grid, k // block, values, crow, col), b_made, d_made, BSR_ALG1), flops, d, want)
        attempt("Blocked-ELL", lambda: product(handle, ell_matrix(m, k, block, slots, col, ell), b_made, d_made, BLOCKED_ELL_ALG1), flops, d, want)
        attempt("dense cuBLAS", lambda: lambda: torch.mm(dense, b, out=d), flops, d, want)
        attempt("BSR, column order inside blocks", lambda: product(handle, bsr_matrix(grid, k // block, values, crow, col, ORDER_COL), b_made, d_made, BSR_ALG1), flops)


def main():
    warnings.filterwarnings("ignore")  # PyTorch: BSR tensors are in beta state
    sys.stdout.reconfigure(line_buffering=True)  # cuSPARSE prints, too
    m = k = 4096
    n, densities = int(sys.argv[1]) if len(sys.argv) > 1 else 4096, [float(word) for word in sys.argv[2:]] or [0.125, 0.5]
    handle, version = C.c_void_p(), C.c_int()
    call("cusparseCreate", C.byref(handle))
    call("cusparseGetVersion", handle, C.byref(version))
    call("cusparseSetStream", handle, C.c_void_p(torch.cuda.current_stream().cuda_stream))
    print(f"cuSPARSE {version.value} ({os.path.basename(path)}), PyTorch {torch.__version__}, {torch.cuda.get_device_name()}; {m} x {k} x {n}, f16")
    torch.manual_seed(1)
    b, d = torch.randn(k, n, device="cuda", dtype=torch.float16), torch.empty(m, n, device="cuda", dtype=torch.float16)
    b_made, d_made = dense_matrix(b), dense_matrix(d)
    for density in densities:
        print(f"{density * 100:g} % of the blocks:")
        race(handle, m, k, n, density, b, b_made, d, d_made)
    values = torch.randn(64 * 8, 64, 32, device="cuda", dtype=torch.float16)
    crow, col = (torch.arange(65) * 8).int().cuda(), (torch.arange(8).repeat(64)).int().cuda()
    print("Blocks that are not square: 64x32")
    attempt("BSR", lambda: product(handle, bsr_matrix(64, k // 32, values, crow, col), b_made, d_made, BSR_ALG1), 2.0 * values.numel() * n)


if __name__ == "__main__":
    main()
