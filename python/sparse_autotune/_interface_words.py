"""The keywords that models of Hugging Face transformers hand to their attention function: each is obeyed, or needs nothing, or is refused.

A model may add a keyword of its own, and its own implementations do what it says. It also hands on what it was called with and does not know: that
may be meant for attention, too (window, scale, mask). None is dropped here without a reason in _HARMLESS.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from torch import Tensor, nn

_ELSEWHERE = 'attn_implementation="eager" of this model knows it'

# What changes no result, and why.
_HARMLESS = {
    "position_ids": "keys and queries have their positions, and the mask knows packed sequences by them",
    "cache_position": "as position_ids",
    "position_embeddings": "were applied",
    "max_length_q": "of the sequences of cu_seq_lens_q, which are obeyed",
    "max_length_k": "of the sequences of cu_seq_lens_k, which are obeyed",
    "max_seqlen": "as max_length_q",
    "deterministic": "one plan gives the same bits on every run",
    "seq_idx": "for layers of state-space models",
    "use_cache": "of the model",
    "past_key_values": "keys and values of the cache are in key and value",
    "cache": "as past_key_values",
    "output_hidden_states": "of the model",
    "output_router_logits": "of the model",
    "return_dict": "of the model",
    "return_dict_in_generate": "of generate",
    "next_sequence_length": "of generate",
    "encoder_outputs": "keys and values of cross attention come from them",
    "mm_encoder_outputs": "of embeddings",
    "num_items_in_batch": "of the loss",
    "labels": "of the loss",
    "shift_labels": "of the loss",
    "ignore_index": "of the loss",
    "logits_to_keep": "of the last layer",
    "layer_idx": "a number for caches",
    "input_ids": "of embeddings",
    "token_type_ids": "of embeddings and masks",
    "mm_token_type_ids": "of embeddings and masks",
    "special_tokens_mask": "of the tokenizer, for whoever prepares labels",
    "offset_mapping": "of the tokenizer",
    "length": "of the tokenizer",
    "inputs_embeds": "of embeddings",
    "pixel_values": "of embeddings",
    "pixel_values_videos": "of embeddings",
    "image_sizes": "of embeddings",
    "input_features": "of embeddings",
    "input_values": "of embeddings",
    "grid_thw": "of embeddings and positions",
    "image_grid_thw": "of embeddings and positions",
    "video_grid_thw": "of embeddings and positions",
    "second_per_grid_ts": "of positions",
}


@dataclasses.dataclass(frozen=True)
class Said:
    """pairs: the keys that are seen, booleans [batch or 1, heads or 1, queries, keys]; None: all.
    sinks: a score of each head, and of each query where there are several, [batch or 1, heads, queries or 1]; None: there are none."""

    pairs: Tensor | None = None
    sinks: Tensor | None = None


def read(module: nn.Module, query: Tensor, key: Tensor, s_aux: Tensor | None, rest: dict[str, Any]) -> Said:
    """What the keywords say besides mask, scale and cap. ValueError names one that is not understood."""
    given = {name: value for name, value in rest.items() if value is not None and name not in _HARMLESS}
    if not given:
        return Said(sinks=_sinks("s_aux", s_aux, query))
    pairs = [
        _of_keys(given.pop("indices", None), query, key),
        _of_blocks(given.pop("block_indices", None), module, query, key),
        _of_sequences(given.pop("cu_seq_lens_q", None), given.pop("cu_seq_lens_k", None), query, key),
    ]
    sinks = _sinks("s_aux", s_aux, query), _sinks("sinks", given.pop("sinks", None), query)
    if sinks[0] is not None and sinks[1] is not None:
        raise ValueError(f"sinks: s_aux is given as well, and they are two names for one thing; {_ELSEWHERE}")
    if given.pop("output_attentions", False):
        raise ValueError('output_attentions: weights are never formed here, so that there are none to return; attn_implementation="eager" does')
    window = given.pop("sliding_window", None)
    if window is not None and not _is_layers_own(module, window):
        given["sliding_window"] = window
    for name, value in given.items():
        what = f"a tensor of {tuple(value.shape)}" if isinstance(value, Tensor) else repr(value)[:60]
        raise ValueError(
            f"{name}: {type(module).__name__} hands {what} to its attention function, and sa.attention does not know what it means. Leave it out if it "
            f"is a word of your own call; if the model adds it, {_ELSEWHERE}"
        )
    seen = None
    for one in pairs:
        seen = one if seen is None else seen if one is None else seen & one
    return Said(seen, sinks[0] if sinks[1] is None else sinks[1])


def _is_layers_own(module: nn.Module, window: Any) -> bool:
    """Whether a sliding window is that of the layer or its model, by which the mask was made."""
    own = getattr(module, "sliding_window", None), getattr(getattr(module, "config", None), "sliding_window", None)
    return isinstance(window, int) and window in [one for one in own if isinstance(one, int)]


def _check(name: str, value: Any, right: bool, wanted: str) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(f"{name}: must be a tensor, not {type(value).__name__}; {_ELSEWHERE}")
    if not right:
        raise ValueError(f"{name}: must be {wanted}, is {list(value.shape)} of {value.dtype}; {_ELSEWHERE}")


def _sinks(name: str, value: Any, query: Tensor) -> Tensor | None:
    if value is None:
        return None
    batch, heads, queries = query.shape[:3]
    right = isinstance(value, Tensor) and value.shape in ((heads,), (1, heads), (batch, heads, queries, 1))
    _check(name, value, right, f"of {heads} heads, or [{batch}, {heads}, {queries}, 1]")
    return value.view(1, heads, 1) if value.dim() < 3 else value.squeeze(-1)


def check_bias(value: Any, query: Tensor, key: Tensor) -> None:
    """position_bias: numbers that are added to scores."""
    if value is None:
        return
    scores = (*query.shape[:3], key.shape[2])
    right = isinstance(value, Tensor) and value.is_floating_point() and value.dim() <= 4
    right = right and all(own in (1, wanted) for own, wanted in zip(reversed(value.shape), reversed(scores), strict=False))
    _check("position_bias", value, right, f"numbers that broadcast to {list(scores)}")


def cap(value: Any) -> float:
    """softcap: a number, or 0 where scores are not capped."""
    if value is None:
        return 0.0
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"softcap: must be a number or None, not {type(value).__name__}")
    return float(value)


def _kept(indices: Tensor, count: int) -> Tensor:
    """[..., count]: which numbers the last dimension lists; negative ones stand for none."""
    indices = indices.long()
    listed = torch.zeros(*indices.shape[:-1], count + 1, dtype=torch.bool, device=indices.device)
    return listed.scatter(-1, torch.where(indices < 0, count, indices), True)[..., :count]


def _of_keys(indices: Any, query: Tensor, key: Tensor) -> Tensor | None:
    """indices: the keys that an indexer chose for each query, [batch, queries, chosen], or of each head [batch, heads, queries, chosen]."""
    if indices is None:
        return None
    batch, heads, queries = query.shape[:3]
    right = isinstance(indices, Tensor) and not indices.is_floating_point() and indices.dim() in (3, 4)
    right = right and indices.shape[0] == batch and indices.shape[-2] == queries and (indices.dim() == 3 or indices.shape[1] in (1, heads))
    _check("indices", indices, right, f"whole numbers, [{batch}, {queries}, keys]")
    kept = _kept(indices, key.shape[2])
    return kept.unsqueeze(1) if kept.dim() == 3 else kept


def _of_blocks(indices: Any, module: nn.Module, query: Tensor, key: Tensor) -> Tensor | None:
    """block_indices: the blocks of keys that an indexer chose for each query, [batch, groups of heads, queries, blocks]."""
    if indices is None:
        return None
    batch, heads, queries = query.shape[:3]
    size = getattr(getattr(module, "indexer", None), "block_size", None)
    if not isinstance(size, int) or size < 1:
        raise ValueError(f"block_indices: {type(module).__name__} has no indexer whose block_size says how many keys a block has; {_ELSEWHERE}")
    right = isinstance(indices, Tensor) and not indices.is_floating_point() and indices.dim() == 4
    right = right and indices.shape[0] == batch and indices.shape[2] == queries and indices.shape[1] > 0 and heads % indices.shape[1] == 0
    _check("block_indices", indices, right, f"whole numbers, [{batch}, a divisor of {heads}, {queries}, blocks]")
    keys = key.shape[2]
    kept = _kept(indices, -(-keys // size)).repeat_interleave(size, -1)[..., :keys]
    return kept.repeat_interleave(heads // indices.shape[1], 1)


def _of_sequences(of_queries: Any, of_keys: Any, query: Tensor, key: Tensor) -> Tensor | None:
    """cu_seq_lens_q, cu_seq_lens_k: where each of the sequences that lie in one row ends, after a 0."""
    if of_queries is None and of_keys is None:
        return None
    ends = []
    for name, value in (("cu_seq_lens_q", of_queries), ("cu_seq_lens_k", of_keys)):
        _check(name, value, isinstance(value, Tensor) and value.dim() == 1 and query.shape[0] == 1, "one list of ends beside a batch of 1")
        ends.append(value[1:])
    if ends[0].shape[0] <= 1 and ends[1].shape[0] <= 1:
        return None
    of = [torch.bucketize(torch.arange(count, device=query.device), end, right=True) for end, count in zip(ends, (query.shape[2], key.shape[2]), strict=True)]
    return (of[0][:, None] == of[1])[None, None]
