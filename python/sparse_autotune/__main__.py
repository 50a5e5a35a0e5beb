"""python -m sparse_autotune ARGUMENT...: sparsek's command line."""

import os
import pathlib
import sys


def main() -> None:
    program = pathlib.Path(__file__).with_name("sparsek")
    os.execv(program, ["sparsek", *sys.argv[1:]])


if __name__ == "__main__":
    main()
