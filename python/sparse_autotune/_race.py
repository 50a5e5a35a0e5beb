"""sa.benchmark_attention: sa.attention beside PyTorch's, FlexAttention and FlashAttention-4 in alternated rounds."""

from __future__ import annotations

import contextlib
import dataclasses
import platform
import re
import statistics
from collections.abc import Callable, Iterable
from typing import Any, Literal

import torch
from torch import Tensor

from . import _C, _originals, _tuning
from ._attention import _beside, attention, pattern_of_mask
from ._band import Diagonal, Side, band_of
from ._block_mask import BlockMask
from ._bsr import BSR
from ._nearest import hint
from ._numbers import BOTTOM_RIGHT, CAUSAL
from ._options import tuning_at_once
from ._report import Report, measured_row
from ._types import HALVES, NAMES

PEERS = ("pytorch_sdpa", "flex_attention", "flash_attention_4")
_MOST_PAIRS = 1 << 31  # of dense masks
_MOST_SCORES = 1 << 24  # of the reference
_TF32 = 2e-3  # of float32 on CUDA, where others may multiply so

Forward = Callable[[Tensor, Tensor, Tensor], Tensor]


def _tolerance(dtype: torch.dtype) -> float:
    """Of a result, relative to the largest: 5 of its last places where sums are wider, else what thousands of rounded sums come to."""
    eps = torch.finfo(dtype).eps
    return 5 * eps if dtype in HALVES else max(170 * eps, 1e-12)


class _Cannot(Exception):
    """Why a contestant takes no part."""


@dataclasses.dataclass
class _Problem:
    """q, k, v: [batch, heads, rows, depth], views of what was given."""

    q: Tensor
    k: Tensor
    v: Tensor
    blocks: BlockMask | None
    left: int
    right: int
    first: int
    flags: int
    scale: float
    softcap: float
    lengths: Tensor | None

    @property
    def queries(self) -> int:
        return self.q.shape[2]

    @property
    def keys(self) -> int:
        return self.k.shape[2]

    @property
    def share(self) -> int:
        return self.q.shape[1] // self.k.shape[1]

    @property
    def causal(self) -> bool:
        return bool(self.flags & CAUSAL)

    @property
    def banded(self) -> bool:
        return self.causal or self.left > 0 or self.right > 0

    @property
    def plainly_causal(self) -> bool:
        """In PyTorch's way, and nothing besides."""
        beside_first = not self.flags & BOTTOM_RIGHT or self.queries == self.keys
        return self.causal and not self.left and beside_first and self.blocks is None and self.lengths is None

    @property
    def all_seen(self) -> bool:
        return not self.banded and self.blocks is None and self.lengths is None

    def in_band(self, query: Tensor, key: Tensor, ends: Any) -> Tensor:
        """Whether queries see keys, which broadcast; ends: how many keys there are."""
        beside = query + (ends - self.queries if self.flags & BOTTOM_RIGHT else 0)
        seen = (key < ends) & (query >= 0)
        if self.causal:
            seen = seen & (key <= beside)
        elif self.right:
            seen = seen & (key < beside + self.right)
        if self.left:
            seen = seen & ((key > beside - self.left) | (key < self.first))
        return seen

    def sees(self, rows: Tensor, pairs: Tensor | None) -> Tensor:
        """[batch or 1, heads or 1, rows, keys] of some queries; pairs: the dense mask of the blocks."""
        ends: Any = self.keys if self.lengths is None else self.lengths.view(-1, 1, 1, 1)
        seen = self.in_band(rows[:, None], torch.arange(self.keys, device=self.q.device), ends)
        seen = seen if seen.dim() == 4 else seen[None, None]
        return seen if pairs is None else seen & pairs[:, :, rows]

    def pairs(self) -> Tensor | None:
        """The dense mask of the blocks, with heads of its own or one."""
        if self.blocks is None:
            return None
        made = self.blocks.to_pairs()
        return made if made.shape[1] == 1 else made.repeat_interleave(self.q.shape[1] // made.shape[1], 1)

    def check_dense(self) -> None:
        """Whether the memory of dense masks is bearable."""
        heads, batch = (1, 1) if self.blocks is None else (self.q.shape[1] if self.blocks.heads > 1 else 1, self.blocks.batch)
        entries = heads * max(batch, 1 if self.lengths is None else self.q.shape[0]) * self.queries * self.keys
        if entries > _MOST_PAIRS:
            raise _Cannot(f"mask: would be a dense one of {entries} entries; the limit is {_MOST_PAIRS}")

    def count(self) -> float:
        """Pairs of a query and a key that it sees, of all heads and items."""
        pairs, seen = self.pairs(), 0.0
        rows = max(1, _MOST_SCORES // max(self.keys, 1))
        for part in torch.arange(self.queries, device=self.q.device).split(rows):
            some = self.sees(part, pairs)
            seen += some.sum().item() * self.q.shape[0] * self.q.shape[1] / (some.shape[0] * some.shape[1])
        return seen


# ------------------------------------------------------------------------------------------------ contestants


def _sdpa(p: _Problem, backward: bool) -> tuple[Forward, str]:
    if p.softcap:
        raise _Cannot("softcap: it has none")
    words: dict[str, Any] = {"scale": p.scale}
    if p.all_seen or p.plainly_causal:
        words |= {"enable_gqa": p.share > 1, "is_causal": p.plainly_causal}
        return lambda q, k, v: _originals.scaled_dot_product_attention(q, k, v, **words), ""
    p.check_dense()
    mask = p.sees(torch.arange(p.queries, device=p.q.device), p.pairs())
    if p.share == 1 or p.q.device.type == "cpu":
        return lambda q, k, v: _originals.scaled_dot_product_attention(q, k, v, mask, enable_gqa=p.share > 1, **words), "DENSE_MASK=1"

    def repeated(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """With enable_gqa a mask would leave the slowest kernel only."""
        k, v = k.repeat_interleave(p.share, 1), v.repeat_interleave(p.share, 1)
        return _originals.scaled_dot_product_attention(q, k, v, mask, **words)

    return repeated, "DENSE_MASK=1"


def _flex_mask(p: _Problem, flex: Any) -> Any:
    if p.all_seen:
        return None
    p.check_dense()
    pairs, lengths = p.pairs(), p.lengths
    one_head, one_item = pairs is None or pairs.shape[1] == 1, pairs is None or pairs.shape[0] == 1

    def seen(b: Tensor, h: Tensor, query: Tensor, key: Tensor) -> Tensor:
        found = p.in_band(query, key, p.keys if lengths is None else lengths[b])
        return found if pairs is None else found & pairs[0 if one_item else b, 0 if one_head else h, query, key]

    items = None if lengths is None and one_item else p.q.shape[0]
    return flex.create_block_mask(seen, items, None if one_head else p.q.shape[1], p.queries, p.keys, device=p.q.device)


def _flex(p: _Problem, backward: bool) -> tuple[Forward, str]:
    from torch.nn.attention import flex_attention as flex

    softcap = p.softcap
    words: dict[str, Any] = {"block_mask": _flex_mask(p, flex), "scale": p.scale, "enable_gqa": p.share > 1}
    if softcap:
        words["score_mod"] = lambda score, b, h, query, key: softcap * torch.tanh(score / softcap)

    def run(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return flex.flex_attention(q, k, v, **words)  # type: ignore[return-value]

    run.__code__ = run.__code__.replace()  # another object each time: the limit of compilations is one of each
    return torch.compile(run, dynamic=False), ""


def _lists(p: _Problem, blocks: BlockMask) -> tuple[Tensor, Tensor]:
    """How many blocks each block row of each head has, [batch, heads, block rows], and which, [..., as many as the longest]; int32."""
    lists = blocks.offsets.shape[0] - 1
    counts = torch.diff(blocks.offsets).to(torch.int32)
    indices = torch.zeros(lists, max(int(counts.max()) if lists else 0, 1), dtype=torch.int32, device=blocks.device)
    rows = blocks._rows()
    indices[rows, torch.arange(blocks.nnzb, device=blocks.device) - blocks.offsets[rows]] = blocks.columns.to(torch.int32)

    def of_heads(part: Tensor) -> Tensor:
        part = part.unflatten(0, (blocks.batch, blocks.heads, -1)).repeat_interleave(p.q.shape[1] // blocks.heads, 1)
        return part.expand(p.q.shape[0], *part.shape[1:]).contiguous()

    return of_heads(counts), of_heads(indices)


def _fa4_words(p: _Problem) -> dict[str, Any]:
    """Of flash_attn_func, but the mask; windows do not count the key beside there."""
    if p.lengths is not None or p.first:
        raise _Cannot("lengths, sinks: it has none for items that are not packed")
    if p.banded and not p.flags & BOTTOM_RIGHT and p.queries != p.keys:
        raise _Cannot("causal, diagonal: it has bottom_right only")
    if p.blocks is not None and p.blocks.tile_bits is not None:
        raise _Cannot("mask: has tiles of bits, of which it has none")
    words: dict[str, Any] = {"softmax_scale": p.scale, "causal": p.causal}
    if p.left or (p.right and not p.causal):
        words["window_size"] = (p.left - 1 if p.left else None, 0 if p.causal else p.right - 1 if p.right else None)
    if p.softcap:
        words["softcap"] = p.softcap
    return words


def _fa4(p: _Problem, backward: bool) -> tuple[Forward, str]:
    if p.q.device.type != "cuda":
        raise _Cannot(f"it runs on CUDA, not on {p.q.device.type}")
    if p.q.dtype not in HALVES:
        raise _Cannot(f"it takes f16 and bf16, not {NAMES[p.q.dtype]}")
    try:
        from flash_attn.cute import flash_attn_func
    except ImportError as error:
        raise _Cannot(f"flash_attn.cute is not installed ({error})") from None
    words = _fa4_words(p)
    if p.blocks is not None:
        from flash_attn.cute.block_sparsity import BlockSparseTensorsTorch

        counts, indices = _lists(p, p.blocks)
        none = torch.zeros_like(counts), torch.zeros_like(indices[..., :1])  # blocks of which a function says the pairs
        words["block_sparse_tensors"] = BlockSparseTensorsTorch(*none, counts, indices, block_size=p.blocks.block)

    def run(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        made = flash_attn_func(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), **words)
        return (made[0] if isinstance(made, tuple) else made).transpose(1, 2)  # type: ignore[no-any-return]

    return run, ""


_MAKERS = {"pytorch_sdpa": _sdpa, "flex_attention": _flex, "flash_attention_4": _fa4}


# ------------------------------------------------------------------------------------------------ results


def _attend(q: Tensor, k: Tensor, v: Tensor, seen: Tensor, p: _Problem) -> Tensor:
    """The formula."""
    scores = q @ k.mT * p.scale
    if p.softcap:
        scores = p.softcap * torch.tanh(scores / p.softcap)
    weights = scores.masked_fill(~seen, -torch.inf).softmax(-1)
    return weights.masked_fill(~seen.any(-1, keepdim=True), 0) @ v


class _Reference:
    """O in float64 of some queries of the first and the last head of k, and the gradient of these queries; of k and v where these are
    all."""

    def __init__(self, p: _Problem, gradient: Tensor | None):
        count = min(p.queries, max(16, _MOST_SCORES // max(p.share * p.keys, 1)))
        self.rows = torch.linspace(0, p.queries - 1, count, dtype=torch.float64, device=p.q.device).round().long().unique()
        self.places = sorted({(0, 0), (p.q.shape[0] - 1, p.k.shape[1] - 1)})
        self.p, self.whole, self.want = p, len(self.rows) == p.queries, []
        seen = p.sees(self.rows, p.pairs())
        for item, head in self.places:
            heads = self._heads(head)
            q, k, v = p.q[item, heads][:, self.rows].double(), p.k[item, head].double(), p.v[item, head].double()
            some = seen[item if seen.shape[0] > 1 else 0]
            some = some[heads] if some.shape[0] > 1 else some
            if gradient is None:
                self.want.append([_attend(q, k, v, some, p)])
                continue
            leaves = [t.requires_grad_() for t in (q, k, v)]
            with torch.enable_grad():
                o = _attend(leaves[0], leaves[1], leaves[2], some, p)
                found = torch.autograd.grad(o, leaves, gradient[item, heads][:, self.rows].double())
            self.want.append([o.detach(), *(found if self.whole else found[:1])])

    def _heads(self, head: int) -> slice:
        return slice(head * self.p.share, (head + 1) * self.p.share)

    def error(self, made: tuple[Tensor, ...]) -> float:
        """Of o, and the gradients of q, k and v: the largest norm of a difference, over that of what is wanted."""
        worst = 0.0
        for (item, head), want in zip(self.places, self.want, strict=True):
            heads = self._heads(head)
            got = [t[item, heads][:, self.rows] for t in made[:2]] + [t[item, head] for t in made[2:]]
            for one, wanted in zip(got, want, strict=False):
                off = (one.double() - wanted).norm() / wanted.norm().clamp(min=1e-30) if wanted.numel() else wanted.sum()
                worst = max(worst, off.item() if torch.isfinite(off) else float("inf"))
        return worst


def _called(forward: Forward, p: _Problem, gradient: Tensor | None) -> Callable[[], tuple[Tensor, ...]]:
    if gradient is None:

        def call() -> tuple[Tensor, ...]:
            with torch.no_grad():
                return (forward(p.q, p.k, p.v),)

        return call
    leaves = [t.detach().requires_grad_() for t in (p.q, p.k, p.v)]

    def call_back() -> tuple[Tensor, ...]:
        with torch.enable_grad():
            o = forward(*leaves)
            return o.detach(), *torch.autograd.grad(o, leaves, gradient)

    return call_back


def _first_line(error: BaseException) -> str:
    text = str(error).strip().split("\n")[0]
    return text.removeprefix("sparse_autotune: ") or type(error).__name__


def _processor() -> str:
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as lines:
        for line in lines:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _device(q: Tensor) -> dict[str, Any]:
    cuda = q.device.type == "cuda"
    name = torch.cuda.get_device_name(q.device) if cuda else _processor()
    return dict(kind="cuda" if cuda else "cpu", name=name, threads=torch.get_num_threads(), isa=[], clocks_mhz=None, power_w=None)


def _described(p: _Problem, backward: bool) -> dict[str, Any]:
    """Under the names that `sparsek bench --json` has for them."""
    sizes = dict(queries=p.queries, keys=p.keys, depth=p.q.shape[3], depth_v=p.v.shape[3], dtype=NAMES[p.q.dtype], batch=p.q.shape[0])
    heads = dict(heads=p.q.shape[1], heads_kv=p.k.shape[1])
    diagonal = "bottom_right" if p.flags & BOTTOM_RIGHT or p.banded and p.queries == p.keys else "top_left" if p.banded else "none"
    band = dict(diagonal=diagonal, causal=p.causal, window_left=p.left, window_right=0 if p.causal else p.right, sinks=p.first)
    rest = dict(use_softcap=bool(p.softcap), key_lengths=p.lengths is not None, backward=backward)
    described = dict(op="attention", **sizes, **heads, **band, **rest, seed=0, assume_finite=False, static_values=False, cache="warm")
    if p.blocks is not None:
        tiles = 0 if p.blocks.tile_bits is None else p.blocks.tile_bits.shape[0]
        described |= dict(mask_heads=p.blocks.heads, mask_items=p.blocks.batch, tiles=tiles, density=p.blocks.density)
        described |= dict(block_rows=p.blocks.block[0], block_cols=p.blocks.block[1], nnzb=p.blocks.nnzb)
    return described


def _sentence(p: _Problem, backward: bool) -> str:
    words = "attention of {queries} queries on {keys} keys, depth {depth} and {depth_v}, {heads} heads"
    if p.share > 1:
        words += " on {heads_kv}"
    if p.causal:
        words += ", causal" + (", {diagonal}" if p.queries != p.keys or p.lengths is not None else "")
    if p.left or (p.right and not p.causal):
        words += ", window {window_left}" + ("" if p.causal else " and {window_right}") + (", sinks {sinks}" if p.first else "")
    if p.softcap:
        words += ", soft cap"
    if p.lengths is not None:
        words += ", lengths"
    if p.blocks is not None:
        words += ", in the blocks of a mask {pattern}"
    return words + (", forward and backward" if backward else "")


def _summary(rows: list[dict[str, Any]], kept: float) -> str:
    right = sorted((row for row in rows if row["median_us"] and row["status"] == "ok"), key=lambda row: row["median_us"])
    said = f"A query sees {100 * kept:.3g} % of the keys."
    ours = next((row for row in right if row["name"] == "sparse_autotune"), None)
    if ours is None or len(right) < 2:
        return said
    other = next(row for row in right if row is not ours)
    pairs = [theirs / own for theirs, own in zip(other["samples_us"], ours["samples_us"], strict=True)]
    ratio = statistics.median(pairs)
    longer = f"takes {ratio:.2f}x as long as" if ratio >= 1 else f"has {1 / ratio:.2f}x the speed of"
    return f"{said} The fastest of the others, {other['name']}, {longer} sparse_autotune (median of {len(pairs)} rounds)."


# ------------------------------------------------------------------------------------------------ the race


def _problem_of(q: Any, k: Any, v: Any, layout: str, words: dict[str, Any]) -> _Problem:
    """After sa.attention took them."""
    q, k, v = (t.detach() if layout == "bhsd" else t.detach().transpose(1, 2) for t in (q, k, v))
    lengths, mask = words["lengths"], words["mask"]
    beside = _beside(q.shape[2], k.shape[2], lengths, None, None, None)
    left, right, first, flags = band_of(words["causal"], words["window"], words["sinks"], words["diagonal"], *beside)
    if mask is not None and not isinstance(mask, BlockMask):
        matrix: BSR = pattern_of_mask(mask)
        mask = BlockMask(matrix.row_offsets, matrix.col_indices, matrix.block, (matrix.shape[0], matrix.shape[1]))
    scale = words["scale"] if words["scale"] is not None else max(q.shape[3], 1) ** -0.5
    return _Problem(q, k, v, mask, left, right, first, flags, float(scale), float(words["softcap"]), lengths)


def _contestants(p: _Problem, peers: Iterable[str], backward: bool, ours: Forward) -> Any:
    """The name, what it computes with, its parameters; or why it does not."""
    yield "sparse_autotune", ours, "", None
    for name in peers:
        try:
            forward, params = _MAKERS[name](p, backward)
            yield name, forward, params, None
        except Exception as error:  # of other packages, which fail in ways of their own
            yield name, None, "", _first_line(error)


def _check_peers(peers: Any) -> tuple[str, ...]:
    if peers is None:
        return PEERS
    chosen = (peers,) if isinstance(peers, str) else tuple(peers)
    for name in chosen:
        if name not in PEERS:
            raise ValueError(f"peers: {name!r} is none of {', '.join(PEERS)}{hint(name, PEERS)}")
    return chosen


def benchmark_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    mask: Any = None,
    causal: bool | Diagonal | None = None,
    window: Side | tuple[Side, Side] = None,
    sinks: int = 0,
    diagonal: Diagonal | None = None,
    scale: float | None = None,
    softcap: float = 0.0,
    lengths: Tensor | None = None,
    layout: Literal["bhsd", "bshd"] = "bhsd",
    backward: bool = False,
    peers: Iterable[str] | None = None,
    rounds: int = 20,
    progress: bool | None = None,
) -> Report:
    """The race of sa.attention and others on the same operands, in alternated rounds, with warm caches; on CUDA between events.

    q, k, v, mask, causal, window, sinks, diagonal, scale, softcap, lengths, layout: as in sa.attention, which is tuned first.
    backward: each call is a forward pass and the gradients of q, k and v. peers: the names of those that take part; None: all of

    - pytorch_sdpa: torch.nn.functional.scaled_dot_product_attention, with a dense mask where is_causal does not say all (DENSE_MASK=1);
    - flex_attention: torch.nn.attention.flex_attention, compiled, its mask made beforehand;
    - flash_attention_4: flash_attn.cute, where it is installed.

    rounds: 1 to 100000. progress: a tqdm bar while sa.attention is tuned; by default on a terminal.

    Each result is compared with the formula in float64, on some queries of two heads; one that is off by more than the tolerance of the
    dtype is marked "wrong" and wins nothing. Of one that takes no part the report says why. It prints as a table, and has plot(), to_dict()
    and HTML as that of sa.benchmark. GFLOP/s are of pairs that are seen, two products each; seven in place of two with backward. "x dense"
    is over pytorch_sdpa. Nothing of the peers goes to the store.

    What sa.attention refuses is refused; ValueError or TypeError where peers or rounds are wrong.
    """
    chosen = _check_peers(peers)
    _tuning._check_rounds(rounds, least=1)
    words: dict[str, Any] = dict(mask=mask, causal=causal, window=window, sinks=sinks, diagonal=diagonal, scale=scale, softcap=softcap, lengths=lengths)
    with torch.no_grad(), _tuning._progress(progress), tuning_at_once():
        attention(q, k, v, layout=layout, **words)
    if q.is_meta:
        raise ValueError("q: is on the device meta, where nothing can be measured")
    where = torch.cuda.device(q.device) if q.is_cuda else contextlib.nullcontext()
    with torch.no_grad(), torch.autocast(q.device.type, enabled=False), where, tuning_at_once():
        return _raced(_problem_of(q, k, v, layout, words), layout, words, backward, chosen, rounds)


def _raced(p: _Problem, layout: str, words: dict[str, Any], backward: bool, peers: Iterable[str], rounds: int) -> Report:
    def ours(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        if layout == "bhsd":
            return attention(q, k, v, **words)
        return attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), layout="bshd", **words).transpose(1, 2)

    gradient = None
    if backward:
        generator = torch.Generator(p.q.device).manual_seed(0)
        shape = (*p.q.shape[:3], p.v.shape[3])
        gradient = torch.randn(shape, generator=generator, device=p.q.device, dtype=torch.float32).to(p.q.dtype)
    reference = _Reference(p, gradient)
    tolerance = _tolerance(p.q.dtype) * (4 if backward else 1)
    if p.q.is_cuda and p.q.dtype is torch.float32:
        tolerance = _TF32
    calls, facts, absent = {}, {}, []
    for name, forward, params, why in _contestants(p, peers, backward, ours):
        if why is None:
            call = _called(forward, p, gradient)
            try:
                error = reference.error(call())
            except Exception as refused:
                why = _first_line(refused)
        if why is not None:
            absent.append(measured_row(name, [], why=re.sub(r"\s+", " ", why)))
            continue
        wrong = not error <= tolerance
        kind = {"sparse_autotune": "own", "pytorch_sdpa": "dense"}.get(name, "peer")
        facts[name] = dict(params=params, kind=kind, error=error, tolerance=tolerance, status="wrong" if wrong else "ok")
        facts[name]["why"] = f"off by {error:.2g}, more than {tolerance:.2g}" if wrong else None
        calls[name] = call
    times = _tuning._times(calls, rounds, p.q.is_cuda)
    rows = [measured_row(name, times[name], **facts[name]) for name in calls] + absent
    return _report(p, rows, backward)


def _report(p: _Problem, rows: list[dict[str, Any]], backward: bool) -> Report:
    each = 2.0 * (p.q.shape[3] + p.v.shape[3]) * (3.5 if backward else 1)
    whole = float(p.q.shape[0] * p.q.shape[1] * p.queries * p.keys)
    seen = p.count()
    right = [i for i, row in enumerate(rows) if row["median_us"] and row["status"] == "ok"]
    best = min(right, key=lambda i: rows[i]["median_us"], default=-1)
    found = dict(problem=_described(p, backward), device=_device(p.q), sentence=_sentence(p, backward), flops=each * seen, dense_flops=each * whole)
    found |= dict(from_store=False, tuning_s=sum(sum(row["samples_us"]) for row in rows) * 1e-6, provisional=None, class_key="")
    found |= dict(summary=_summary(rows, seen / whole if whole else 0.0), sparsek=_C.version(), commit=_C.commit(), chosen=best, candidates=rows)
    return Report(found)
