"""What an installed wheel must do, with the torch beside it: run by scripts/wheel --check, in a folder that is not the repository's."""

import importlib.metadata
import pathlib
import platform
import re
import subprocess
import sys

import torch

import sparse_autotune as sa

package = pathlib.Path(sa.__file__).parent
assert package.is_relative_to(sys.prefix), f"{package} is not the wheel's"
assert sa.__version__ == importlib.metadata.version("sparse-autotune")
bench = [need for need in importlib.metadata.requires("sparse-autotune") or [] if "extra == 'bench'" in need.replace('"', "'")]
assert any(need.startswith("mkl") for need in bench) and any(need.startswith("matplotlib") for need in bench), bench

# Each library that it is linked with is its own, torch's, or of those that every Linux with its manylinux has.
anywhere = r"linux-vdso|ld-linux|libc\.so|libm\.so|libdl\.so|libpthread\.so|librt\.so|libgcc_s\.so|libstdc\+\+\.so|libtorch|libc10|libz\.so"
for file in [*package.iterdir(), *package.with_name("sparse_autotune.libs").iterdir()]:
    if file.is_file() and file.read_bytes()[:4] == b"\x7fELF":
        for name in re.findall(r"\(NEEDED\).*\[(.*)\]", subprocess.run(["readelf", "-d", file], capture_output=True, text=True, check=True).stdout):
            own = any((folder / name).exists() for folder in (package, package.with_name("sparse_autotune.libs")))
            assert own or re.match(anywhere, name), f"{file.name} needs {name}"

matrix = sa.BSR.from_dense(torch.randn(256, 128), block=32, density=0.3)
dense = torch.randn(128, 40, requires_grad=True)
product = sa.matmul(matrix, dense)
torch.testing.assert_close(product, matrix.to_dense() @ dense, rtol=1e-4, atol=1e-4)
product.sum().backward()
assert (sa.BSR.from_dense(torch.eye(4), block=2) @ torch.eye(4)).equal(torch.eye(4))
version = subprocess.run([sys.executable, "-m", "sparse_autotune", "--version"], capture_output=True, text=True, check=True).stdout
assert sa.__version__ in version, version
assert {"sparsek-prover", "sparsek.spdx", "py.typed"} <= {file.name for file in package.iterdir()}
# The extra "bench" brings peers.
raced = {row["name"] for row in sa.benchmark(matrix, dense.detach(), rounds=3).to_dict()["results"][0]["candidates"] if row["median_us"]}
assert "pytorch_dense" in raced and (platform.machine() != "x86_64" or "mkl_bsr" in raced), raced
print(f"wheel {sa.__version__}, torch {torch.__version__}: imported, computed, differentiated")
