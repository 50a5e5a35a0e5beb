"""The command `sparsek` of the package: runs its program, and imports neither the package nor torch, which takes seconds."""

import importlib.util
import os
import pathlib
import sys


def main() -> None:
    package = importlib.util.find_spec("sparse_autotune")
    folders = package.submodule_search_locations if package else None
    if not folders:
        sys.exit("sparsek: the package sparse_autotune is not installed in this environment")
    program = pathlib.Path(folders[0]) / "sparsek"
    try:
        os.execv(program, ["sparsek", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"sparsek: {program} cannot be run: {error.strerror}")
