"""What a refusal says of a wrong name: which there are, and which was meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any


def hint(given: Any, known: Iterable[Any]) -> str:
    """The end of a message: the nearest name, or nothing where none is near."""
    near = difflib.get_close_matches(given.lower(), [name for name in known if isinstance(name, str)], 1) if isinstance(given, str) else []
    return f"; did you mean {near[0]!r}?" if near else ""


def none_of(what: str, given: Any, known: Iterable[Any]) -> str:
    """The message for an argument `what` that is none of the known ones."""
    known = list(known)
    return f"{what}: must be one of {', '.join(map(repr, known))}, not {given!r}{hint(given, known)}"
