"""The README.md beside a saved model: what whoever finds the folder must know to load it."""

from __future__ import annotations

import contextlib
import os
from typing import Any

_TEXT = """---
library_name: transformers
tags:
- sparse_autotune
- block-sparse
---

# {kind} with block-sparse layers

{count} of the linear layers of this model store {share:.3g} % of their blocks. transformers alone does not know such layers: import
sparse_autotune before the model is loaded.

```python
import sparse_autotune
from transformers import {kind}

model = {kind}.from_pretrained("path of this folder")
```
"""


def write(folder: str | os.PathLike[str], kind: str, layers: dict[str, dict[str, Any]]) -> None:
    """Into a folder without a README.md."""
    stored, grid = 0, 0
    for layer in layers.values():
        high, wide = layer["block"]
        stored, grid = stored + layer["blocks"], grid + -(-layer["out_features"] // high) * -(-layer["in_features"] // wide)
    text = _TEXT.format(kind=kind, count=len(layers), share=100 * stored / max(grid, 1))
    with contextlib.suppress(FileExistsError), open(os.path.join(folder, "README.md"), "x", encoding="utf-8") as file:
        file.write(text)
