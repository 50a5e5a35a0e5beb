"""Arguments of these programs, checked before anything is measured: what is wrong is named with its limits, and nothing runs for minutes first."""

import argparse
import math
import pathlib


def integer(least, most=2**31 - 1):
    """A whole number between the two."""

    def parse(text):
        try:
            value = int(text)
        except ValueError:
            value = None
        if value is None or not least <= value <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is no whole number from {least} to {most}")
        return value

    return parse


def real(least, most):
    """A number between the two."""

    def parse(text):
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is no number from {least:g} to {most:g}")
        return value

    return parse


def listed(kind):
    """Several of a kind, with commas between."""
    return lambda text: [kind(part) for part in text.split(",")]


def result_file(text):
    """A file to be written, in a folder that is there."""
    path = pathlib.Path(text)
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise argparse.ArgumentTypeError(f"{text!r} cannot be written: {'it is a folder' if path.is_dir() else 'its folder does not exist'}")
    return path


SECONDS = real(0, 1e9)
