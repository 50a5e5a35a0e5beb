"""SDDMM's data."""
from race.library import DTYPES
from race.operands import Operands


class Sddmm(Operands):
    """D = X Y at the stored blocks of an M x N pattern: lists `x` (M x K), `y` (K x N) and `d` (blocks), an entry for each set."""

    def inner(self):
        return self.case.k

    def dense_elements(self):
        return (self.case.m + self.case.n) * self.case.k

    def fill(self):
        torch, case = self.torch, self.case
        self.x = [self.laid_out(case.m, case.k, case.layout_a, torch.randn) for _ in range(self.sets)]
        self.y = [self.laid_out(case.k, case.n, case.layout_b, torch.randn) for _ in range(self.sets)]
        self.d = self.made(torch.empty, self.nnzb, *case.block)

    def plan(self, **how):
        case = self.case
        fields = dict(k=case.k, dtype_x=DTYPES[case.dtype], layout_x=case.layout_a, layout_y=case.layout_b)
        return self.library.plan("sddmm", case, self.pattern, fields, **how)

    def arguments(self, i, workspace, workspace_bytes):
        return self.library.args("sddmm", workspace, workspace_bytes, x=self.x[i].data_ptr(), y=self.y[i].data_ptr(), d=self.d[i].data_ptr())

    def factors(self):
        """For each set the dense matrices whose product holds D's blocks."""
        return list(zip(self.x, self.y))

    def places(self):
        """Block row and block column of every stored block."""
        if "places" not in self.views:
            counts = (self.offsets[1:] - self.offsets[:-1]).long()
            self.views["places"] = self.torch.repeat_interleave(self.torch.arange(len(counts), device=counts.device), counts), self.columns.long()
        return self.views["places"]

    def error(self, d):
        """The largest error on 64 blocks of set 0 against float64; d is all blocks, or the whole dense product."""
        torch, (height, width) = self.torch, self.case.block
        worst, (rows, cols) = 0.0, self.places()
        for at in torch.randperm(self.nnzb)[:64].tolist():
            top, left = int(rows[at]) * height, int(cols[at]) * width
            x, y = self.x[0][top:top + height].double(), self.y[0][:, left:left + width].double()
            got = d[at] if d.dim() == 3 else d[top:top + height, left:left + width]
            error = (got[:x.shape[0], :y.shape[1]].double() - x @ y).abs() / (x.abs() @ y.abs() + 1e-30)
            worst = max(worst, float("inf") if error.isnan().any() else error.max().item())
        return worst

    def problem(self, seed):
        return dict(super().problem(seed), layout_a=("row", "col")[self.case.layout_a])
