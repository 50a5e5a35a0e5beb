"""The operations by name: each is a class whose objects hold a case's data and run sparsek on it (see operands.Operands)."""
from race.dense import Gemm
from race.experts import ExpertsDown, ExpertsUp
from race.layers import Layer
from race.operands import Spmm
from race.sampled import Sddmm

OPERATIONS = {"gemm": Gemm, "spmm": Spmm, "sddmm": Sddmm, "layer": Layer, "experts_up": ExpertsUp, "experts_down": ExpertsDown}
