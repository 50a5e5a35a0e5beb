"""torch.mm with K that is no multiple of 8: cuBLAS and cuBLASLt beside the same product with padded operands. Needs PyTorch with CUDA only.

    python3 cublas-unaligned-k.py
"""
import torch


def median_us(run, times=20):
    """The device's time of a call: the median of `times` groups of four, which hide the host's."""
    samples = []
    for _ in range(times + 2):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda._sleep(1_000_000)
        begin.record()
        for _ in range(4):
            run()
        end.record()
        end.synchronize()
        samples.append(begin.elapsed_time(end) * 1e3 / 4)
    return sorted(samples[2:])[times // 2]


def kernels(run):
    """The names of what a call launches."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        run()
        torch.cuda.synchronize()
    return ", ".join(dict.fromkeys(event.name.split("<")[0].split("(")[0][:64] for event in profile.events() if event.device_type == torch.autograd.DeviceType.CUDA))


def padded(a, b, out):
    """Copies A and B into arrays whose K is a multiple of 8, zeros behind it, and multiplies those: the copies are part of the call."""
    k = a.shape[1]
    rounded = (k + 7) // 8 * 8
    wide, high = a.new_zeros(a.shape[0], rounded), b.new_zeros(rounded, b.shape[1])
    def call():
        wide[:, :k].copy_(a)
        high[:k].copy_(b)
        return torch.mm(wide, high, out=out)
    return call


def main():
    torch.manual_seed(1)
    print(f"PyTorch {torch.__version__}, CUDA {torch.version.cuda}, {torch.cuda.get_device_name()}; bf16, sums in f32, row-major")
    for m, n, depths in ((9477, 1152, (584, 588, 590, 591, 592)), (4096, 4096, (4096, 4092, 4094, 4095))):
        for k in depths:
            a, b = (torch.randn(shape, device="cuda", dtype=torch.bfloat16) for shape in ((m, k), (k, n)))
            out = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
            want = a.double() @ b.double()
            print(f"{m} x {n}, K = {k}:")
            ways = [(name, name, lambda: torch.mm(a, b, out=out)) for name in ("cublas", "cublaslt")]
            if k % 8:
                ways.append(("copied into padded arrays, cublas", "cublas", padded(a, b, out)))
            for name, library, run in ways:
                torch.backends.cuda.preferred_blas_library(library)
                out.fill_(float("nan"))
                run()
                wrong = ((out.double() - want).abs().max() / want.abs().max()).item()
                us = median_us(run)
                print(f"  {name:34} {us:8.1f} us {2.0 * m * n * k / us * 1e-6:7.1f} TFLOP/s, largest error {wrong:.1g} of the largest element; {kernels(run)}", flush=True)


if __name__ == "__main__":
    main()
