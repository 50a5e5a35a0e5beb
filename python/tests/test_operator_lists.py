"""The operators and their numbers stand in one list: what is made of it is current, and what Python registers for them takes their arguments."""

import inspect
import pathlib
import subprocess
import sys

import pytest
import torch
from torch.utils import flop_counter

import sparse_autotune  # noqa: F401  registers the operators
from sparse_autotune import _numbers

MAKER = pathlib.Path(__file__).resolve().parents[2] / "scripts/python_operators.py"
PACKETS = [
    getattr(torch.ops.sparse_autotune, name.split("::")[1].split(".")[0]) for name in torch._C._dispatch_get_all_op_names() if "sparse_autotune::" in name
]


def names_of(function):
    parameters = inspect.signature(function).parameters.values()
    named = [parameter.name for parameter in parameters if parameter.kind is parameter.POSITIONAL_OR_KEYWORD and parameter.name != "out_shape"]
    return named, any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters)


def check_names(function, packet):
    """In the operator's order; a formula that takes the rest as it comes names the first."""
    wanted, (named, takes_rest) = [argument.name for argument in packet.default._schema.arguments], names_of(function)
    if not takes_rest and len(named) > len(wanted):  # one function for operators with and without a last argument
        named = named[: len(wanted)]
    assert named == wanted[: len(named)] and (takes_rest or len(named) == len(wanted)), f"{packet}: {named}, {wanted}"


@pytest.mark.skipif(not MAKER.exists(), reason="the tests are not in the repository")
def test_what_is_made_is_current():
    made = subprocess.run([sys.executable, MAKER, "--check"], capture_output=True, text=True)
    assert made.returncode == 0, made.stdout + made.stderr


@pytest.mark.parametrize("packet", PACKETS, ids=str)
def test_fakes_and_formulas_take_the_arguments(packet):
    kernel = torch._library.simple_registry.singleton.find(packet.default.name()).fake_impl.kernel
    returns_text = [str(returned.type) for returned in packet.default._schema.returns] == ["str"]
    assert (kernel is None) == returns_text
    if kernel is not None:
        check_names(inspect.unwrap(kernel.func), packet)
        check_names(inspect.unwrap(flop_counter.flop_registry[packet]), packet)


def test_an_operator_knows_no_bit_twice():
    of_all = _numbers.OF_SPMM | _numbers.OF_SDDMM | _numbers.OF_GEMM | _numbers.OF_ATTENTION
    assert of_all & _numbers.AS_QUERY == 0 and of_all | _numbers.AS_QUERY == (1 << 16) - 1
    assert max(_numbers.ACTIVATIONS.values()) <= _numbers.ACTIVATION_MASK
