"""What happens when another library is imported: transformers learns of block-sparse layers without being asked for."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
from typing import Any

_MODULE = "transformers.modeling_utils"  # the models' base class; whoever loads or saves one has imported it


def _register() -> None:
    from ._transformers import register_with_transformers

    # One that is too old is told so by register_with_transformers, where the user calls it.
    with contextlib.suppress(ImportError, AttributeError):
        register_with_transformers()


class _Finder:
    """Lets the others find the module, and takes note when it has run."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != _MODULE:
            return None
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        loader: Any = None if spec is None else spec.loader
        if loader is not None and hasattr(loader, "exec_module"):
            _then_register(loader)
        return spec


def _then_register(loader: Any) -> None:
    def exec_module(module: Any) -> None:
        del loader.exec_module  # the class's own again
        loader.exec_module(module)
        _register()

    loader.exec_module = exec_module


def watch() -> None:
    """Registers now where transformers' models are there, else when they come."""
    if _MODULE in sys.modules:
        _register()
    elif not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())  # type: ignore[arg-type]
