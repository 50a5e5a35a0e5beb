"""The words causal, window, sinks and diagonal: which keys a query sees, counted from the one beside it."""

from __future__ import annotations

import operator
from typing import Any

from ._numbers import BOTTOM_RIGHT, CAUSAL, TOP_LEFT, Diagonal

Side = int | None

_MOST = 1 << 40  # keys: more are in no tensor
_DIAGONALS = {"top_left": TOP_LEFT, "bottom_right": BOTTOM_RIGHT}


def _keys(name: str, number: Any) -> int:
    """So many keys; 0: no limit."""
    if number is None:
        return 0
    if type(number) is bool or not (isinstance(number, int) or hasattr(number, "__index__")):  # PyTorch 2.10 traces no hasattr of a symbol
        raise TypeError(f"{name}: must be a whole number of keys, not {number!r}")
    if number < 0:
        raise ValueError(f"{name}: {number} keys; 0 or None: {'none' if name == 'sinks' else 'no limit'}")
    return min(operator.index(number), _MOST) if isinstance(number, int) else number


def _window(window: Any, causal: bool) -> tuple[int, int]:
    if not isinstance(window, (tuple, list)):
        left = _keys("window", window)
        return left, 0 if causal else left
    if len(window) != 2:
        raise ValueError(f"window: must be a number of keys or (left, right), not {window!r}")
    left, right = _keys("window", window[0]), _keys("window", window[1])
    if causal and right:
        raise ValueError(f"window: {right} keys to the right, of which a causal query sees none; give (left, None)")
    return left, right


def _diagonal_of(causal: Any, diagonal: Any) -> Diagonal | None:
    if not (causal is None or isinstance(causal, bool) or causal in _DIAGONALS):
        raise ValueError(f"causal: must be None, False, True, 'top_left' or 'bottom_right', not {causal!r}")
    if diagonal is not None and diagonal not in _DIAGONALS:
        raise ValueError(f"diagonal: must be None, 'top_left' or 'bottom_right', not {diagonal!r}")
    if isinstance(causal, str):
        if diagonal is not None and diagonal != causal:
            raise ValueError(f"diagonal: is {diagonal!r}, but causal {causal!r}")
        return causal  # type: ignore[return-value]
    return diagonal  # type: ignore[no-any-return]


def band_of(causal: Any, window: Any, sinks: Any, diagonal: Any, unclear: str, clear: int) -> tuple[int, int, int, int]:
    """Keys to the left and to the right, first ones, flags. unclear: what does not say which key stands beside which query, "" where that
    is clear; clear: the flag that says it then.
    """
    flags = CAUSAL if causal else 0
    beside = _diagonal_of(causal, diagonal)
    left, right = (0, 0) if window is None else _window(window, bool(causal))
    first = _keys("sinks", sinks)
    if first and not left:
        raise ValueError("sinks: are seen whatever the window to the left says, but there is none")
    if beside is not None:
        return left, right, first, flags | _DIAGONALS[beside]
    if not (causal or left or right):
        return left, right, first, flags
    if unclear:
        what, give = ("causal: True", "causal") if causal else ("window:", "diagonal")
        raise ValueError(f"{what} with {unclear} does not say which key stands beside which query; give {give}='top_left' or 'bottom_right'")
    return left, right, first, flags | clear
