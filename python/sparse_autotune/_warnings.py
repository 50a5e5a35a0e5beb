"""What the package warns of, and where the warning is said to come from."""

from __future__ import annotations

import os
import sys
import warnings

import torch

from . import _C


class SparseAutotuneWarning(RuntimeWarning):
    """Warnings of sparse_autotune: a busy machine while something was measured, a store that cannot be used, hooks that do not go over.

    warnings.filterwarnings("ignore", category=sa.SparseAutotuneWarning) silences them and no others.
    """


_NOT_USERS = tuple(os.path.dirname(os.path.abspath(module.__file__ or "")) + os.sep for module in (sys.modules[__package__], torch))


def warn(text: str) -> None:
    """Warns at the line of the caller's code: the innermost frame outside of this package and of PyTorch."""
    frame = sys._getframe(1)
    while frame.f_back is not None and os.path.abspath(frame.f_code.co_filename).startswith(_NOT_USERS):
        frame = frame.f_back
    registry = frame.f_globals.setdefault("__warningregistry__", {})
    module = frame.f_globals.get("__name__") or "sparse_autotune"
    warnings.warn_explicit(text, SparseAutotuneWarning, frame.f_code.co_filename, frame.f_lineno, module, registry)


_C.set_warn(warn)
