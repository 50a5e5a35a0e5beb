"""BSR @ dense in PyTorch on CUDA: which block shapes work. Needs PyTorch with CUDA only."""
import warnings

import torch

warnings.filterwarnings("ignore")  # BSR tensors are in beta state; kernel parameters are not tuned
print("PyTorch", torch.__version__, torch.cuda.get_device_name())
torch.manual_seed(1)
for dtype in (torch.float16, torch.bfloat16, torch.float32):
    for block in ((32, 32), (64, 64), (64, 32), (32, 64), (16, 64)):
        dense = torch.randn(256, 256, device="cuda", dtype=dtype)
        b = torch.randn(256, 128, device="cuda", dtype=dtype)
        bsr = dense.to_sparse_bsr(block)
        try:
            error = ((bsr @ b).double() - dense.double() @ b.double()).abs().max().item()
            print(f"{dtype} block {block}: ok, largest difference {error:.3g}")
        except RuntimeError as problem:
            print(f"{dtype} block {block}: {str(problem).splitlines()[0]}")
