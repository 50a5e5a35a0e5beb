"""Runs of several products: the three of a layer."""
from race.operands import Spmm
from race.sampled import Sddmm
from race.training import layer_parts

BETWEEN = "; "  # choices of the products in one text


class Layer:
    """Forward, gradient of the input, gradient of the values, one after the other. As Operands, with a result for each product."""

    def __init__(self, torch, library, case, seed, sets=None):
        self.case = case
        self.products = [{"spmm": Spmm, "sddmm": Sddmm}[part.op](torch, library, part, seed, sets) for part in layer_parts(case).values()]
        self.dtype, self.sets = self.products[0].dtype, max(part.sets for part in self.products)
        self.flops = sum(part.flops for part in self.products)

    def parts(self):
        return self.products

    def launches(self):
        return max(6, self.sets)

    def clear(self):
        for part in self.products:
            part.clear()

    def result(self):
        return [part.result() for part in self.products]

    def error(self, results):
        return max(part.error(result) for part, result in zip(self.products, results))

    def tolerance(self):
        return self.products[0].tolerance()

    def choose(self, fresh):
        chosen = [part.choose(fresh) for part in self.products]
        return BETWEEN.join(choice for choice, _ in chosen), sum(took for _, took in chosen)

    def runner(self, choice):
        runs = [part.runner(one) for part, one in zip(self.products, choice.split(BETWEEN))]

        def run(i):
            for one in runs:
                one(i)

        return run

    def problem(self, seed):
        return dict(self.products[0].problem(seed), op=self.case.op)

    def dense_equivalent_flops(self):
        return sum(part.dense_equivalent_flops() for part in self.products)

    def close(self):
        for part in self.products:
            part.close()
