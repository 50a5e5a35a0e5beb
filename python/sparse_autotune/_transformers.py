"""sa.attention in models of Hugging Face transformers. transformers is imported where it is asked for, not before."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils import _pytree

from . import _interface_words, _ops, _originals, _pretrained, _sdpa
from ._attention import attention
from ._block_mask import BlockMask

MaskMaker = Callable[[nn.Module, Tensor, Tensor], BlockMask | None]

_ATTRIBUTE = "sparse_autotune_block_mask"


@dataclasses.dataclass(frozen=True, eq=False)
class Band:
    """A model's mask in words of sa.attention; what the mask function gives the models, and they the attention function.

    causal, diagonal: as there. left, right: keys on each side of the one beside, 0: no limit. lengths: int32 [batch], or None: all keys.
    A model that does with it what one does with tensors gets what the dense mask gives, booleans [batch, 1, queries, keys].
    """

    batch: int
    queries: int
    keys: int
    causal: bool = False
    left: int = 0
    right: int = 0
    diagonal: str | None = None
    lengths: Tensor | None = None
    device: Any = "cpu"

    ndim = 4  # transformers looks for two dimensions, which are padding

    @property
    def shape(self) -> tuple[int, int, int, int]:
        return self.batch, 1, self.queries, self.keys

    def words(self) -> dict[str, Any]:
        """For sa.attention."""
        if not (self.causal or self.left or self.right):
            return {"lengths": self.lengths}
        window = (self.left or None, self.right or None)
        return {"causal": self.diagonal if self.causal else None, "window": window, "diagonal": self.diagonal, "lengths": self.lengths}

    def pairs(self, device: Any) -> Tensor | None:
        """The dense mask, booleans [batch or 1, 1, queries, keys]; None where all is seen."""
        if not (self.causal or self.left or self.right or self.lengths is not None):
            return None
        key = torch.arange(self.keys, device=device)
        ends: Any = self.keys if self.lengths is None else self.lengths.view(-1, 1, 1, 1)
        beside = torch.arange(self.queries, device=device)[:, None] + (ends - self.queries if self.diagonal == "bottom_right" else 0)
        seen = key < ends if self.lengths is not None else torch.ones_like(key, dtype=torch.bool)
        if self.causal or self.right:
            seen = seen & (key < beside + (1 if self.causal else self.right))
        if self.left:
            seen = seen & (key > beside - self.left)
        return seen.broadcast_to(seen.shape[0] if seen.dim() == 4 else 1, 1, self.queries, self.keys)

    def dense(self) -> Tensor:
        seen = self.pairs(self.device)
        return torch.ones(self.shape, dtype=torch.bool, device=self.device) if seen is None else seen.expand(self.shape)

    def to(self, *given: Any, **words: Any) -> Any:
        """Elsewhere; as another dtype it is the dense mask."""
        device = words["device"] if not given and set(words) <= {"device", "non_blocking"} and "device" in words else None
        if len(given) == 1 and not words and isinstance(given[0], (str, int, torch.device)):
            device = given[0]
        if device is None:
            return self.dense().to(*given, **words)
        return dataclasses.replace(self, device=device, lengths=None if self.lengths is None else self.lengths.to(device))

    def __getitem__(self, index: Any) -> Tensor:
        return self.dense()[index]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.dense(), name)

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, given: Any = (), words: Any = None) -> Any:
        given, words = _pytree.tree_map_only(Band, Band.dense, (given, words or {}))
        return function(*given, **words)


def _on_dense(name: str) -> Callable[..., Any]:
    def apply(band: Band, *others: Any) -> Any:
        return getattr(band.dense(), name)(*(other.dense() if isinstance(other, Band) else other for other in others))

    return apply


for _name in "and rand or ror xor rxor invert add radd sub rsub mul rmul truediv rtruediv eq ne lt le gt ge len".split():
    setattr(Band, f"__{_name}__", _on_dense(f"__{_name}__"))


# ------------------------------------------------------------------------------------------------ masks


@dataclasses.dataclass(frozen=True)
class _Rule:
    """What a mask function of transformers says of a query and a key."""

    causal: bool = False
    left: int = 0
    right: int = 0


# What a function has enclosed cannot be read in code that an older PyTorch compiles: the mask is the dense one there.
_READS_CLOSURES = tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 15)


class _Rules:
    """Tells the mask functions that are a causal mask or a window from all others, by their code and what that has enclosed."""

    def __init__(self, masking: Any):
        self._masking = masking
        self._both = masking.and_masks(masking.causal_mask_function).__code__
        self._before = masking.sliding_window_overlay(1).__code__
        about = getattr(masking, "sliding_window_bidirectional_overlay", None)
        self._about = about(1).__code__ if about else None
        self._all = getattr(masking, "bidirectional_mask_function", None)

    def of(self, function: Any) -> _Rule | None:
        if function is self._masking.causal_mask_function:
            return _Rule(causal=True)
        if function is self._all:
            return _Rule()
        if _ops.is_compiling() and not _READS_CLOSURES:
            return None
        code, closure = getattr(function, "__code__", None), getattr(function, "__closure__", None)
        if code is None or not closure or len(closure) != 1:
            return None
        enclosed = closure[0].cell_contents
        if code is self._before:
            return _Rule(left=int(enclosed))
        if code is self._about:
            return _Rule(left=int(enclosed) + 1, right=int(enclosed) + 1)
        if code is not self._both:
            return None
        rules = [self.of(part) for part in enclosed]
        if any(rule is None for rule in rules):
            return None
        left, right = [rule.left for rule in rules if rule.left], [rule.right for rule in rules if rule.right]  # type: ignore[union-attr]
        return _Rule(any(rule.causal for rule in rules), min(left, default=0), min(right, default=0))  # type: ignore[union-attr]


def _readable(*tensors: Any) -> bool:
    """Whether numbers may be looked at here; on a GPU that waits for it."""
    if _ops.is_compiling() or _ops.transforming() or _ops.is_tracing() or _ops.is_recorded():
        return False
    given = [tensor for tensor in tensors if isinstance(tensor, Tensor)]
    if any(type(tensor) not in (Tensor, nn.Parameter) for tensor in given):
        return False
    return not any(tensor.is_cuda for tensor in given) or not torch.cuda.is_current_stream_capturing()


def _placed(rule: _Rule, batch: int, queries: int, keys: int, first: Any, device: Any) -> Band | None:
    """first: the number of the key beside the first query, a tensor where only that knows it."""
    left, right = (side if side < keys else 0 for side in (rule.left, rule.right))
    band = Band(batch, queries, keys, rule.causal, left, 0 if rule.causal else right, device=device)
    if not (rule.causal or left or right):
        return band
    if not isinstance(first, Tensor):
        if first + queries == keys:
            plain = queries == 1 and not left and not right  # all keys
            return dataclasses.replace(band, causal=rule.causal and not plain, diagonal=None if plain else "bottom_right")
        if first == 0:
            return dataclasses.replace(band, diagonal="top_left")
    if not rule.causal:
        return None
    if isinstance(first, Tensor):
        lengths = (first + queries).reshape(-1).to(device=device, dtype=torch.int32).expand(batch).contiguous()
    elif 0 < first + queries < keys:
        lengths = torch.full((batch,), first + queries, dtype=torch.int32, device=device)
    else:
        return None
    return dataclasses.replace(band, causal=queries > 1 or left > 0, diagonal="bottom_right", lengths=lengths)


def _padded(band: Band, rule: _Rule, padding: Tensor, first: Any, kv_offset: int) -> Band | None:
    """With padding as well, [batch, keys and those before them]; keys behind its end are padding. None where no words say it."""
    if not _readable(padding, first):
        return None
    first = int(first)
    reach = min(first + band.queries, band.keys) if rule.causal else band.keys
    real = padding[:, kv_offset : kv_offset + reach].bool()
    real = functional.pad(real, (0, reach - real.shape[1]))
    lengths = real.sum(-1, dtype=torch.int32)
    if bool((lengths == reach).all()):
        return band
    if not torch.equal(real, torch.arange(reach, device=real.device) < lengths[:, None]):
        return None
    if rule.causal or band.left or band.right:
        if first != 0:
            return None  # the key beside is counted from the end of all keys, not from that of an item's
        band = dataclasses.replace(band, causal=rule.causal, diagonal="top_left")
    return dataclasses.replace(band, lengths=lengths)


def _mask_function(masking: Any) -> Callable[..., Any]:
    rules = _Rules(masking)

    def sparse_autotune_mask(
        batch_size: int,
        q_length: Any = None,
        kv_length: int = 0,
        q_offset: Any = 0,
        kv_offset: int = 0,
        mask_function: Any = masking.causal_mask_function,
        attention_mask: Any = None,
        device: Any = None,
        **rest: Any,
    ) -> Any:
        """A Band where words of sa.attention say the mask, or the dense one, booleans [batch, 1, queries, keys]."""
        if isinstance(attention_mask, Band):
            return attention_mask
        rule = rules.of(mask_function)
        if rule is not None:
            queries, offset = q_length, q_offset
            on = device if device is not None else attention_mask.device if attention_mask is not None else "cpu"
            if isinstance(rest.get("cache_position", q_length), Tensor):  # before transformers 5
                positions = rest.get("cache_position", q_length)
                queries, offset, on = positions.shape[0], positions[0], positions.device
                offset = int(offset) if _readable(offset) else offset
            first = offset - kv_offset
            band = _placed(rule, batch_size, queries, kv_length, first, on)
            if band is not None and attention_mask is not None:
                band = _padded(band, rule, attention_mask, first, kv_offset)
            if band is not None:
                return band
        given = {"q_length": q_length, "q_offset": q_offset, "device": device, **rest} | {"allow_is_causal_skip": False}
        given = {name: value for name, value in given.items() if value is not None} | {"allow_is_bidirectional_skip": False}
        if "cache_position" in given:
            del given["q_offset"]
        masks = {"kv_length": kv_length, "kv_offset": kv_offset, "mask_function": mask_function, "attention_mask": attention_mask}
        return masking.sdpa_mask(batch_size=batch_size, **given, **masks)

    return sparse_autotune_mask


# ------------------------------------------------------------------------------------------------ attention


def _block_mask(module: nn.Module, query: Tensor, key: Tensor, given: Any) -> BlockMask | None:
    mask = getattr(module, _ATTRIBUTE, None) if given is None else given
    if mask is not None and not isinstance(mask, BlockMask):
        if isinstance(mask, Tensor) or not callable(mask):
            raise TypeError(f"block_mask: must be an sa.BlockMask, a function of (module, query, key) or None, not {type(mask).__name__}")
        mask = mask(module, query, key)
        if mask is not None and not isinstance(mask, BlockMask):
            raise TypeError(f"block_mask: the function must return an sa.BlockMask or None, not {type(mask).__name__}")
    if mask is not None:
        _sdpa.check_mask("block_mask", mask, query, key)
    return mask


def _both(extra: Tensor | None, seen: Tensor | None) -> Tensor | None:
    """A mask and the pairs that are seen, as one: booleans, or numbers to add where `extra` is such."""
    if extra is None or seen is None:
        return extra if seen is None else seen
    return extra & seen if extra.dtype is torch.bool else extra.masked_fill(~seen, -torch.inf)


def _dense(band: Band, blocks: BlockMask | None, extra: Tensor | None, query: Tensor) -> Tensor | None:
    """All masks as one."""
    seen = band.pairs(query.device)
    if blocks is not None:
        seen = _both(_sdpa.pairs_of(blocks, query), seen)
    return _both(extra, seen)


def _formula(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout: float, scale: float | None, softcap: float, sinks: Tensor | None
) -> Tensor:
    """What PyTorch's function does not compute: a soft cap, and scores beside those of keys (sinks) that take part in the sum."""
    scores = query @ key.mT * (query.shape[-1] ** -0.5 if scale is None else scale)
    if softcap:
        scores = softcap * torch.tanh(scores / softcap)
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf) if mask.dtype is torch.bool else scores + mask
    if sinks is not None:
        column = sinks.to(scores.dtype).unsqueeze(-1).expand(*scores.shape[:-1], 1)
        scores = torch.cat([scores, column], -1)
    weights = scores.softmax(-1, dtype=torch.float64 if scores.dtype is torch.float64 else torch.float32)
    if mask is not None and sinks is None:
        weights = weights.nan_to_num()  # of queries that see no key
    weights = functional.dropout(weights[..., : key.shape[-2]].to(query.dtype), dropout)
    return weights @ value


def _by_pytorch(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout: float, scale: float | None, softcap: float, sinks: Tensor | None
) -> Tensor:
    share = query.shape[1] // key.shape[1]
    if share > 1 and (mask is not None or softcap or sinks is not None):  # with enable_gqa a mask would leave the formula only, on a GPU
        key, value = key.repeat_interleave(share, 1), value.repeat_interleave(share, 1)
    if softcap or sinks is not None:
        return _formula(query, key, value, mask, dropout, scale, softcap, sinks)
    shared = key.shape[1] != query.shape[1]
    return _originals.scaled_dot_product_attention(query, key, value, mask, dropout, scale=scale, enable_gqa=shared)


def _masks(module: nn.Module, query: Tensor, key: Tensor, mask: Any, is_causal: bool | None, bias: Tensor | None) -> tuple[Band, Tensor | None]:
    """What a model's mask says in words, and what no words say, booleans or numbers to add; the latter with the bias of positions."""
    queries, keys = query.shape[2], key.shape[2]
    if isinstance(mask, Band):
        if (mask.queries, mask.keys) == (queries, keys):
            return mask, bias
        if mask.queries not in (1, queries) or mask.keys not in (1, keys):
            raise ValueError(
                f"attention_mask: is for {mask.queries} queries and {mask.keys} keys, and {type(module).__name__} has {queries} and {keys}, having "
                'added some; attn_implementation="eager" of this model knows which are seen'
            )
        if mask.pairs("cpu") is None:
            return Band(query.shape[0], queries, keys), bias
        mask = mask.dense()  # which broadcasts
    if mask is None:  # all keys, as with "eager": module.is_causal is for functions whose causal masks become None, and here they do not
        causal = bool(is_causal) and queries > 1
        return Band(query.shape[0], queries, keys, causal, diagonal="top_left" if causal else None), bias
    if not isinstance(mask, Tensor):
        raise TypeError(f'attention_mask: must be a tensor or None, not {type(mask).__name__}; attn_implementation="eager" of this model may take it')
    band = Band(query.shape[0], queries, keys)
    if bias is None:
        return band, mask
    return band, bias.masked_fill(~mask, -torch.inf) if mask.dtype is torch.bool else bias + mask


def sparse_autotune_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Any,
    dropout: float = 0.0,
    scaling: float | None = None,
    is_causal: bool | None = None,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    position_bias: Tensor | None = None,
    block_mask: Any = None,
    **rest: Any,
) -> tuple[Tensor, None]:
    """The attention function of register_with_transformers. query: [batch, heads, queries, depth]; gives [batch, queries, heads, depth]."""
    said = _interface_words.read(module, query, key, s_aux, rest)
    cap = _interface_words.cap(softcap)
    _interface_words.check_bias(position_bias, query, key)
    blocks = _block_mask(module, query, key, block_mask)
    band, extra = _masks(module, query, key, attention_mask, is_causal, position_bias)
    extra = _both(extra, said.pairs)
    words = _words(query, key, value, band, blocks, extra, dropout)
    if words is None:
        made = _by_pytorch(query, key, value, _dense(band, blocks, extra, query), dropout, scaling, cap, said.sinks)
        return made.transpose(1, 2).contiguous(), None
    rows = [tensor.transpose(1, 2) for tensor in (query, key, value)]
    if said.sinks is None:
        return attention(*rows, scale=scaling, softcap=cap, layout="bshd", **words), None
    o, lse = attention(*rows, scale=scaling, softcap=cap, layout="bshd", return_lse=True, **words)
    share = torch.sigmoid(lse - said.sinks.to(lse.dtype))  # of the sum of exponentials, to which the sink adds its own
    return o * share.transpose(1, 2).unsqueeze(-1).to(o.dtype), None


def _words(query: Tensor, key: Tensor, value: Tensor, band: Band, blocks: BlockMask | None, extra: Tensor | None, dropout: float) -> Any:
    """Of sa.attention; None where PyTorch must do it."""
    if not _sdpa.takes(query, key, value, dropout, query.shape[1] != key.shape[1], blocks is not None):
        return None
    words = {name: word for name, word in band.words().items() if word is not None}
    if extra is not None:
        said = _sdpa.words_of_mask(extra, query, key) if blocks is None else None
        return None if said is None else words | said
    return words if blocks is None else words | {"mask": blocks}


# ------------------------------------------------------------------------------------------------ for users


def register_with_transformers(name: str = "sparse_autotune") -> None:
    """Makes sa.attention an attention implementation of Hugging Face transformers: attn_implementation="sparse_autotune" of a model; and
    lets from_pretrained load models that sa.to_block_sparse made and save_pretrained saved. Importing sparse_autotune does both, at once or
    when transformers' models are imported; so a call is needed only for another name, or to learn why it cannot be.

    name: what the models call it. A second call changes nothing. ImportError where transformers is not installed, or older than 4.57.

    Causal masks, sliding windows, soft caps, learned sinks (s_aux), shared heads and caches, dynamic or static, are words of sa.attention,
    for which no dense mask is made; so is padding on the right. Other masks (padding on the left, packed sequences, chunks, images) are
    dense, and PyTorch's function computes with them, as it does where dropout or, on CUDA without a mask of blocks, gradients are wanted.
    Weights are not returned.

    What else a model hands to its attention function is obeyed: keys or blocks of keys that an indexer chose (indices, block_indices), learned sinks of
    each query (sinks), biases of positions, ends of sequences in one row (cu_seq_lens_q). Or it needs nothing here, as the mask has it (sliding_window).
    What is not understood is refused by name: ValueError, where output_attentions is wanted, where a model adds keys beside its mask, and for a keyword
    that is new, whether its layer adds it or model(...) was called with it; attn_implementation="eager" of that model does what the model adds.

    A mask of blocks is added by sa.set_block_mask, or for one call by model(..., block_mask=mask), where the model passes its words on.
    """
    try:
        from transformers import AttentionInterface, masking_utils
    except ImportError as error:
        raise ImportError(f"transformers: 4.57 or later is needed ({error}); pip install transformers") from error
    _pretrained.register()
    AttentionInterface.register(name, sparse_autotune_attention)
    masking_utils.AttentionMaskInterface.register(name, _mask_function(masking_utils))


def set_block_mask(model: nn.Module, mask: BlockMask | MaskMaker | None) -> None:
    """Gives the attention of all modules of a transformers model a mask of blocks, beside the model's own; None takes it away.

    mask: an sa.BlockMask of queries x keys, for calls of that size; or a function of (module, query, key) that makes one, or None, at each
    call of each layer. query: [batch, heads, queries, depth], key: [batch, heads of key, keys, depth], as they meet, with their positions
    in them. A query sees what both masks let it see. A layer's number is module.layer_idx. Of one layer alone: set_block_mask(layer, mask).

    TypeError where it is neither; ValueError, when the model runs, where it does not fit the queries and keys. The attention implementation
    must be that of register_with_transformers: others do not look for it.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model: must be a torch.nn.Module, not {type(model).__name__}")
    if mask is not None and not isinstance(mask, BlockMask) and not callable(mask):
        raise TypeError(f"mask: must be an sa.BlockMask, a function of (module, query, key) or None, not {type(mask).__name__}")
    for module in model.modules():
        if mask is not None:
            setattr(module, _ATTRIBUTE, mask)
        elif hasattr(module, _ATTRIBUTE):
            delattr(module, _ATTRIBUTE)
