"""A clamped beam under many loads at once: conjugate gradients on the stiffness matrix in its natural 3 x 3 blocks.

The matrix is that of a box of elastic cubes, clamped at one end (`sparsek gen elasticity`). A load walks along the middle of the beam's upper side, one
case for each of its places; all cases are solved together, so that each step multiplies the matrix by a dense one with a column for each case. SciPy's BSR
product is the yardstick, in the same solver.

    python examples/python/finite_elements.py
"""

import pathlib
import subprocess
import sys
import tempfile
import time

import torch

import shared
import sparse_autotune as sa


def stiffness(cells, device):
    """K of a box of unit cubes, its end x = 0 clamped; three unknowns for each node with x > 0, nodes numbered along x first, then y, then z."""
    from safetensors.torch import load_file

    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "stiffness.safetensors"
        size = "x".join(str(n) for n in cells)
        command = [sys.executable, "-m", "sparse_autotune", "gen", "elasticity", "--cells", size, "-o", str(path)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        parts = load_file(path)
    rows = 3 * cells[0] * (cells[1] + 1) * (cells[2] + 1)
    return sa.BSR(parts["matrix.row_offsets"].int(), parts["matrix.col_indices"].int(), parts["matrix.values"], (rows, rows)).to(device)


def node(cells, x, y, z):
    return (z * (cells[1] + 1) + y) * cells[0] + x - 1


def walking_load(cells, cases, device):
    """Forces [unknowns, cases]: one unit downwards, in case i at a place of its own on the middle line of the upper side; the last at the end."""
    forces = torch.zeros(3 * cells[0] * (cells[1] + 1) * (cells[2] + 1), cases, dtype=torch.float64, device=device)
    for case in range(cases):
        x = max(1, round(cells[0] * (case + 1) / cases))
        forces[3 * node(cells, x, cells[1] // 2, cells[2]) + 2, case] = -1
    return forces


def diagonal_inverse(matrix):
    """The inverse of the 3 x 3 blocks on the diagonal, as a block-sparse matrix: what CG is preconditioned with."""
    rows = matrix.block_rows_of()
    blocks = torch.linalg.inv(matrix.values[matrix.col_indices == rows])
    count = torch.arange(len(blocks) + 1, dtype=torch.int32, device=matrix.device)
    return sa.BSR(count, count[:-1], blocks, matrix.shape)


def conjugate_gradients(product, precondition, forces, tolerance, limit):
    """Displacements [unknowns, cases], and the residual of each case relative to its force after each step."""
    x, r, work = torch.zeros_like(forces), forces.clone(), torch.empty_like(forces)

    def dot(a, b):
        return torch.mul(a, b, out=work).sum(0)

    z = precondition(r)
    p, rz, scale = z.clone(), dot(r, z), forces.norm(dim=0)
    history = []
    for _ in range(limit):
        q = product(p)
        step = rz / dot(p, q)
        x.addcmul_(p, step)
        r.addcmul_(q, step, value=-1)
        history.append(r.norm(dim=0) / scale)
        if history[-1].max() <= tolerance:
            break
        z = precondition(r)
        rz, before = dot(r, z), rz
        p.mul_(rz / before).add_(z)
    return x, torch.stack(history).cpu()


def ways(matrix, inverse, cases):
    """{name: (product with the matrix, with the preconditioner)}"""
    size = (matrix.shape[0], cases)
    q, z = (torch.empty(size, dtype=matrix.dtype, device=matrix.device) for _ in range(2))
    found = {"sparse_autotune": (lambda p: sa.matmul(matrix, p, out=q), lambda r: sa.matmul(inverse, r, out=z))}
    theirs, diagonal = matrix.to_scipy(), inverse.to_scipy()
    if matrix.device.type == "cpu":
        found["SciPy BSR"] = (lambda p: torch.from_numpy(theirs @ p.numpy()), lambda r: torch.from_numpy(diagonal @ r.numpy()))
    rows, points = torch_csr(theirs, matrix.device), torch_csr(diagonal, matrix.device)
    found["PyTorch CSR"] = (lambda p: rows @ p, lambda r: points @ r)
    return found


def torch_csr(matrix, device):
    matrix = matrix.tocsr()
    return torch.sparse_csr_tensor(*(torch.from_numpy(part).to(device) for part in (matrix.indptr, matrix.indices, matrix.data)), size=matrix.shape)


def beam_theory(cells, young=1.0, poisson=0.3):
    """How far the end of such a beam sinks under a unit load there: bending and shear."""
    length, wide, high = cells
    inertia, shear = wide * high**3 / 12, young / (2 * (1 + poisson))
    return length**3 / (3 * young * inertia) + length / (5 / 6 * shear * wide * high)


def draw(cells, displacement, history):
    """The body as the last case bends it, enlarged; and how the residuals fall."""
    import matplotlib
    import numpy as np

    drawn, (left, right) = shared.figure(2, 10, 3.6)
    left.remove()
    left = drawn.add_subplot(1, 2, 1, projection="3d")
    x_cells, y_cells, z_cells = cells
    moved = np.zeros((z_cells + 1, y_cells + 1, x_cells + 1, 3))  # the clamped nodes stay
    moved[:, :, 1:] = displacement.cpu().reshape(z_cells + 1, y_cells + 1, x_cells, 3)
    sizes = np.linalg.norm(moved, axis=-1)
    places = np.stack(np.meshgrid(*(np.arange(n + 1.0) for n in (z_cells, y_cells, x_cells)), indexing="ij")[::-1], -1)
    places += moved * (0.25 * x_cells / sizes.max())
    colours = matplotlib.colormaps["viridis"](sizes / sizes.max())
    for face in ((slice(None), 0), (-1, ...), (slice(None), slice(None), -1)):  # those that are seen
        p, colour = places[face], colours[face]
        left.plot_surface(p[..., 0], p[..., 1], p[..., 2], facecolors=colour, rstride=1, cstride=1, linewidth=0.2, edgecolor="0.3", shade=False)
    left.set(title="the load at the end, enlarged")
    left.set_box_aspect(np.ptp(places, axis=(0, 1, 2)), zoom=1.2)
    left.view_init(18, -60)
    left.set_axis_off()
    right.semilogy(history, linewidth=0.8)
    right.set(title=f"residuals of {history.shape[1]} load cases, relative to the force", xlabel="step of CG")
    return drawn


def main(arguments=None):
    parser = shared.parser(__doc__)
    parser.add_argument("--cells", type=int, nargs=3, default=[60, 10, 10], metavar=("X", "Y", "Z"))
    parser.add_argument("--cases", type=int, default=32)
    parser.add_argument("--tolerance", type=float, default=1e-8)
    options = shared.parse(parser, arguments)
    if options.small:
        options.cells, options.cases = [16, 4, 4], 8
    cells = options.cells
    matrix = stiffness(cells, options.device)
    inverse, forces = diagonal_inverse(matrix), walking_load(cells, options.cases, options.device)
    print(f"stiffness: {matrix}\n")

    rows, found = [], {}
    every = ways(matrix, inverse, options.cases)
    products = {name: lambda product=product: product(forces) for name, (product, _) in every.items()}
    once = shared.times(products, 3 if options.small else 15, options.device)
    for name, (product, precondition) in every.items():
        conjugate_gradients(product, precondition, forces, options.tolerance, 3)  # tunes what it needs
        shared.wait(options.device)
        begin = time.perf_counter()
        displacement, history = conjugate_gradients(product, precondition, forces, options.tolerance, 20 * max(cells))
        shared.wait(options.device)
        took = time.perf_counter() - begin
        found[name] = displacement, history
        rows.append({"product": name, "one product, ms": once[name], "steps": len(history), "all cases, s": took})
    for row in rows:
        row["x faster"] = rows[1]["all cases, s"] / row["all cases, s"]
    shared.table(rows)

    displacement, history = found["sparse_autotune"]
    left = (forces - torch.from_numpy(matrix.to_scipy() @ displacement.cpu().numpy()).to(forces.device)).norm(dim=0).max().item()
    end = -displacement[3 * node(cells, cells[0], cells[1] // 2, cells[2] // 2) + 2, -1].item()
    apart = max(((other - displacement).norm() / displacement.norm()).item() for other, _ in found.values())
    print(f"largest residual {left:.2g}; the ways differ by {apart:.2g}")
    print(f"the end sinks by {end:.4g}, beam theory says {beam_theory(cells):.4g}\n")
    drawn = draw(cells, displacement[:, -1], history) if options.picture else None
    result = {
        "matrix": repr(matrix),
        "rows": rows,
        "residual": left,
        "apart": apart,
        "end": end,
        "beam theory": beam_theory(cells),
    }
    return shared.finish(options, result, drawn)


if __name__ == "__main__":
    main()
