"""A mixture of experts as one block-sparse product: tokens sorted by expert, each expert's padded to whole block rows, weights of all experts stacked. Results
are compared without the padding, T x width."""
from race.operands import Operands, Spmm
from race.sampled import Sddmm
from race.training import padded


class Routed(Operands):
    """The H[rows, E x hidden] of all experts is sparse: the block rows of expert e hold its columns and no others."""

    def hidden(self):
        return self.case.sparse_shape()[1] // len(self.case.tokens)

    def blocks(self, seed):
        (height, width), offsets, columns = self.case.block, [0], []
        across = self.hidden() // width
        for expert, count in enumerate(self.case.tokens):
            for _ in range(padded((count,), height) // height):
                columns += range(expert * across, (expert + 1) * across)
                offsets.append(len(columns))
        return offsets, columns

    def fill(self):
        """Also `rows`, of each token, and `ends`, of each expert's tokens without padding."""
        super().fill()
        torch, at, rows, ends = self.torch, 0, [], []
        for count in self.case.tokens:
            rows += range(at, at + count)
            ends.append(len(rows))
            at += padded((count,), self.case.block[0])
        self.rows, self.ends = torch.tensor(rows, device="cuda"), torch.tensor(ends, dtype=torch.int32, device="cuda")
        self.flops = self.dense_equivalent_flops()

    def dense_equivalent_flops(self):
        """Of the tokens that there are: padding is not work."""
        return 2.0 * sum(self.case.tokens) * self.weights(0).shape[1] * self.weights(0).shape[2]

    def tokens_of(self, blocks):
        """T x hidden out of H's blocks."""
        (height, width), hidden = self.case.block, self.hidden()
        return blocks.view(-1, hidden // width, height, width).permute(0, 2, 1, 3).reshape(-1, hidden)[self.rows]

    def error(self, result):
        """The largest error of the T x width result of set 0 on 64 tokens, against float64."""
        torch, inputs, weights, worst = self.torch, self.inputs(0), self.weights(0), 0.0
        for token in torch.randperm(len(self.rows))[:64].tolist():
            x, w = inputs[token].double(), weights[int((self.ends <= token).sum())].double()
            error = (result[token].double() - x @ w).abs() / (x.abs() @ w.abs() + 1e-30)
            worst = max(worst, float("inf") if error.isnan().any() else error.max().item())
        return worst

    def problem(self, seed):
        return dict(super().problem(seed), tokens=list(self.case.tokens))


class ExpertsUp(Routed, Sddmm):
    """H = X W1 where a token meets its expert. `y` is [W1 of expert 0, W1 of expert 1, ...], by columns."""

    def inputs(self, i):
        return self.x[i][self.rows]

    def weights(self, i):
        """E x model x hidden."""
        return self.y[i].t().view(len(self.case.tokens), self.hidden(), -1).transpose(1, 2)

    def result(self):
        return self.tokens_of(self.d[0])


class ExpertsDown(Routed, Spmm):
    """H W2, where `b` is every expert's W2 below the one before."""

    def inputs(self, i):
        return self.tokens_of(self.values[i])

    def weights(self, i):
        """E x hidden x model."""
        return self.b[i].view(len(self.case.tokens), self.hidden(), -1)

    def result(self):
        return self.d[0][self.rows]
