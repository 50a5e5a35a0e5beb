"""One rank tunes, all use what it chose: by way of the stores."""

from __future__ import annotations

import os
import pathlib
import subprocess
from collections.abc import Callable
from typing import Any

import torch.distributed as dist

from .. import _options

_PROGRAM = pathlib.Path(__file__).parent.with_name("sparsek")


def _cache(action: str, text: str | None) -> str:
    """sparsek store, on this process's store."""
    store = _options.get_options().store
    named = [] if store is None else ["--store", os.fspath(store)]
    done = subprocess.run([_PROGRAM, "store", action, "-", "-q", *named], input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        if action == "export" and "does not exist" in done.stderr:  # nothing was tuned yet
            return ""
        raise RuntimeError(f"sparse_autotune: the store cannot {action} what it has: {done.stderr.strip() or done.returncode}")
    return done.stdout


def in_memory() -> bool:
    """Whether the store of this process is not a file, so that nothing can be shared."""
    return _options.get_options().store == ""


def _told(found: list[Any], group: dist.ProcessGroup | None, src: int) -> Any:
    """What the source found; its error is raised at all."""
    dist.broadcast_object_list(found, dist.get_global_rank(group, src) if group is not None else src, group=group)
    text, error = found
    if error is not None:
        raise RuntimeError(f"rank {src}: {error}")
    return text


def share_store(group: dist.ProcessGroup | None = None, src: int = 0) -> None:
    """What the store of rank `src` of the group has goes into the stores of the others; of a class that both have, the newer entry stays.

    A collective: every rank of the group calls it. ValueError where the store is in memory (set_options(store="")).
    """
    tune_once(None, group, src)


def tune_once(call: Callable[[], Any] | None, group: dist.ProcessGroup | None = None, src: int = 0) -> None:
    """Calls `call` at rank `src` of the group, which tunes; sends what is in its store then to the others; they call it under no_tuning().

    call: must do the products in question, and no communication. Ranks whose problems are of one class, as those of dealt layers mostly are, have the same
    choice then; others take the nearest. A collective: every rank of the group calls it. What `call` raises at `src` is raised at all, as RuntimeError.
    """
    if in_memory():
        raise ValueError("store: is in memory, and cannot be shared; set_options(store=...) names a file, of each rank or of all")
    found: list[Any] = [None, None]
    here = dist.get_rank(group) == src
    if here:
        try:
            if call is not None:
                with _options.tuning_at_once():
                    call()
            found[0] = _cache("export", None)
        except Exception as error:  # of the call: others wait
            found[1] = f"{type(error).__name__}: {error}"
    text = _told(found, group, src)
    if here:
        return
    if text:
        _cache("import", text)
        _options.clear_cache()  # plans were made without it
    if call is not None:
        with _options.no_tuning():
            call()
