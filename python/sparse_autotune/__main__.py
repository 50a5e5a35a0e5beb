"""python -m sparse_autotune ARGUMENT...: sparsek's command line, as the command `sparsek`."""

from sparsek_command import main

if __name__ == "__main__":
    main()
