"""Options of tuning, for the whole process."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypedDict

from . import _C
from ._nearest import hint, none_of
from ._numbers import EFFORTS, TUNINGS, Effort, Tuning

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Changes(TypedDict, total=False):
    """The options that set_options takes."""

    effort: Effort
    tuning: Tuning
    warm: bool
    budget_s: float
    only: str | None
    exclude: str | None
    choice: str | None
    store: str | os.PathLike[str] | None


@dataclasses.dataclass(frozen=True)
class Options:
    """What set_options sets."""

    effort: Effort = "measure"
    tuning: Tuning = "in_place"
    warm: bool = False
    budget_s: float = 0.0
    only: str = ""
    exclude: str = ""
    choice: str = ""
    store: str | os.PathLike[str] | None = None


_current = Options()
_forbidden = 0  # contexts of no_tuning
_at_once = 0  # of tuning_at_once
_at_once_lock = threading.Lock()


def _apply(options: Options) -> None:
    global _current
    if options.effort not in tuple(EFFORTS):
        raise ValueError(none_of("effort", options.effort, EFFORTS))
    if options.tuning not in tuple(TUNINGS):
        raise ValueError(none_of("tuning", options.tuning, TUNINGS))
    if options.warm not in (False, True):
        raise TypeError(f"warm: must be True or False, not {options.warm!r}")
    if not hasattr(options.budget_s, "__float__"):
        raise TypeError(f"budget_s: must be a number from 0 to 86400, not {options.budget_s!r}")
    if not 0 <= options.budget_s <= 86400:
        raise ValueError(f"budget_s: must be from 0 to 86400, not {options.budget_s}")
    for name in ("only", "exclude", "choice"):
        if not isinstance(getattr(options, name), str):
            raise TypeError(f"{name}: must be a text or None, not {getattr(options, name)!r}")
    if options.store is not None and not isinstance(options.store, (str, os.PathLike)):
        raise TypeError(f"store: must be a path, a text or None, not {options.store!r}")
    store = None if options.store is None else os.fspath(options.store)
    _C.set_options(EFFORTS[options.effort], TUNINGS[options.tuning], int(options.warm), options.budget_s, options.only, options.exclude, options.choice, store)
    _current = options


_apply(_current)  # the extension begins with C's defaults


def set_options(**changes: Unpack[Changes]) -> Options:
    """Sets options of tuning for the whole process, and returns what was before (restore with set_options(**dataclasses.asdict(before))).

    effort: "measure" (the default: the promising candidates within the budget), "estimate" (nothing is run), "exhaustive".
    tuning: when a class of products that the store does not know is tuned.
        "in_place" (the default): nobody waits, and the product's own next calls are made by a few candidates in turn, until the fastest is known. The last
        bits may differ from call to call meanwhile, so that under torch.use_deterministic_algorithms it is "now". On a GPU candidates are compiled and
        proved by idle processors first, while the first choice works.
        "now": the first call waits and measures. "now_each": so does each new number of tokens of a layer that is known; otherwise such a number takes
        the nearest one's choice.
        "never": the nearest class or the cost model's estimate decides; nothing is measured.
        "ahead": what was tuned ahead decides (sa.warm_up, sa.tune), the nearest number of tokens too, else RuntimeError; "ahead_each": the class itself alone.
    budget_s: seconds of one tuning; 0: 2 on the CPU, 5 on a GPU. warm: measure with operands in the caches.
    only, exclude: comma-separated names of kernels. choice: a pinned candidate, as Report.choice says. None or "" takes each of them back.
    store: file of decisions; None: $SPARSEK_STORE or the user's cache folder; "": in memory.
    """
    before = _current
    names = {field.name for field in dataclasses.fields(Options)}
    for name in changes:
        if name not in names:
            raise TypeError(f"set_options: unknown option {name!r}; there are {', '.join(sorted(names))}{hint(name, names)}")
    for name in ("only", "exclude", "choice"):
        if name in changes and changes[name] is None:  # type: ignore[literal-required]
            changes[name] = ""  # type: ignore[literal-required]
    _apply(dataclasses.replace(before, **changes))  # type: ignore[arg-type]
    return before


def get_options() -> Options:
    """The options in force."""
    return _current


@contextlib.contextmanager
def no_tuning() -> Iterator[None]:
    """Inside, nothing is measured: what the store does not know is estimated, or, where tuning is "ahead" or "ahead_each", is an error as outside. For the
    whole process, other threads included."""
    global _forbidden
    _C.forbid_tuning(1)
    _forbidden += 1
    try:
        yield
    finally:
        _forbidden -= 1
        _C.forbid_tuning(-1)


@contextlib.contextmanager
def tuning_at_once() -> Iterator[None]:
    """Inside, what would be tried in place is tuned, as the caller is about to measure, or to tell others. For the whole process, as backward passes may run on
    another thread, until the last that is inside leaves."""
    global _at_once
    with _at_once_lock:
        if _at_once == 0 and _current.tuning == "in_place":
            set_options(tuning="now")
            _at_once = 1
        elif _at_once > 0:
            _at_once += 1
        counted = _at_once > 0
    try:
        yield
    finally:
        with _at_once_lock:
            _at_once -= counted
            if counted and _at_once == 0 and _current.tuning == "now":
                set_options(tuning="in_place")


@contextlib.contextmanager
def tuning_each() -> Iterator[None]:
    """Inside, this thread tunes every class that is not known."""
    _C.tune_each(1)
    try:
        yield
    finally:
        _C.tune_each(-1)


def may_tune() -> bool:
    """Whether somebody who asks for a tuning gets one."""
    return _forbidden == 0 and _current.effort != "estimate"


def may_measure() -> bool:
    """Whether what is not known may be measured."""
    return may_tune() and _current.tuning in ("in_place", "now", "now_each")


def clear_cache() -> None:
    """Forgets patterns, plans, converted masks and devices of this process (not the store)."""
    from ._sdpa import converted

    _C.clear()
    converted.clear()
