"""Every architecture of the installed transformers as a small model: found in its mappings, made of its own default config with smaller numbers.

small(name) is the model, inputs(model) what it is called with. No list of architectures stands here: a rule is for the name of a number.
"""

import inspect
import itertools
import math
import re
import time

import numpy
import torch
from transformers.models.auto import configuration_auto, modeling_auto

ROWS, COUNT = 2, 12
VOCABULARY, SPECIAL = 128, 100  # numbers from SPECIAL on are special tokens
MOST_PARAMETERS = 30e6
MOST_SECONDS = 1.5  # of processor time, for one call
MOST_KINDS = 4  # of layers, of which there is one each


class CannotBeSmall(Exception):
    """No recipe made a model that runs; says why."""


# ------------------------------------------------------------------------------------------------ what there is

_HEADS = ("CAUSAL_LM", "SEQ_TO_SEQ_CAUSAL_LM", "IMAGE_TEXT_TO_TEXT", "SPEECH_SEQ_2_SEQ", "MASKED_LM")


def _mapping(kind):
    return getattr(modeling_auto, f"MODEL_FOR_{kind}_MAPPING_NAMES")


def architectures():
    """{type of config: the names of its classes, the most promising first}, sorted."""
    names = [name for name in vars(modeling_auto) if name.startswith("MODEL_") and name.endswith("MAPPING_NAMES")]
    others = [vars(modeling_auto)[name] for name in names]
    found = {}
    for kind in sorted(set().union(*others)):
        if kind not in configuration_auto.CONFIG_MAPPING_NAMES:
            continue
        made = []
        for mapping in [*(_mapping(head) for head in _HEADS), modeling_auto.MODEL_MAPPING_NAMES, *others]:
            one = mapping.get(kind, ())
            made += [name for name in ((one,) if isinstance(one, str) else one) if name not in made]
        found[kind] = made
    return found


# ------------------------------------------------------------------------------------------------ smaller numbers

_NUMBERS = [  # the first pattern that a name matches in full; a number that is smaller already stays
    (r"vocab_size|.*_vocab_size|vocab_size_.*|num_embeddings", VOCABULARY),
    (r"mamba_d_head|mamba_head_dim", 32),
    (r"index_head_dim|v_head_dim|qk_nope_head_dim|(q|kv)_lora_rank|.*lora_rank|d_kv|(.*_)?(head_dim|dim_head|d_head|head_size|kv_channels)", 16),
    (r"qk_rope_head_dim|rotary_dim", 8),
    (r"index_kpool", 2),
    (r"qk_head_dim", 24),
    (r"(.*_)?(index_topk|indexer_topk|topk_tokens)", 4),
    (r"index_block_size|(.*_)?block_size_k", 4),
    (r"index_topk_blocks|index_n_heads|.*experts_per_tok.*|moe_top_?k.*|moe_k|.*top_k_experts", 2),
    (r"n_group|topk_group|(mamba_)?n_groups|first_k_dense_replace|n_shared_experts|num_shared_experts|num_expert_groups?", 1),
    (r"(.*_)?(num_experts|n_routed_experts|num_local_experts|moe_num_experts|n_experts|num_routed_experts)", 4),
    (r"(.*_)?(num_key_value_heads|num_kv_heads|n_head_kv|num_kv_groups|multi_query_group_num)", 2),
    (r"mamba_n_heads|mamba_num_heads|(linear_)?num_(key|value)_heads|linear_num_(key|value)_heads", 4),
    (r"(.*_)?(attention_heads|num_heads|n_heads?|num_attention_heads|heads|nhead)", 4),
    (r"(.*_)?(hidden_layers|num_layers|n_layers?|encoder_layers|decoder_layers|depth|layers|num_blocks)", 2),
    (r"moe_intermediate_size|shared_.*intermediate_size|expert_intermediate_size", 32),
    (r"(.*_)?(intermediate_size|intermediate_dim|ffn_dim|d_ff|mlp_dim|n_inner|ffn_hidden_size|linear_units|ffn_size|mlp_hidden_size|d_inner|dim_ff)", 96),
    (
        r"(.*_)?(hidden_size|d_model|n_embd|embed_dim|hidden_dim|dim|width|model_dim|embedding_size|projection_dim|embedding_dim|fpn_hidden_size|query_dim|d_latents)",
        64,
    ),
    (r"(.*_)?(mask_feature_size|decoder_hidden_dim|encoder_hidden_dim|word_embed_proj_dim|latent_dim|output_dim|feature_size|emb_dim|out_hidden_size)", 64),
    (r"max_source_positions|max_audio_positions", 32),
    (r"max_position_embeddings|n_positions|max_target_positions|max_seq_len|context_length|n_ctx|max_sequence_length|seq_length", 256),
    (r"(.*_)?(sliding_window|attention_chunk_size|local_attention|sliding_window_size|window_length)", 16),
    (r"image_size|.*_image_size|input_size|crop_size|tile_size", 32),
    (r"patch_size", 8),
    (r"num_conv_pos_embeddings", 8),
    (r"num_conv_pos_embedding_groups", 4),
    (r"num_queries|num_object_queries|num_query_tokens|num_latents|image_seq_length|mm_tokens_per_image|resampler_n_latents", 8),
    (r"max_length|max_new_tokens", 24),
]
_NUMBERS = [(re.compile(pattern), number) for pattern, number in _NUMBERS]
_LISTS = re.compile(r".*(hidden_sizes|embed_dims|conv_dim|tdnn_dim|widths|hidden_dims|stage_channels|decoder_hidden_sizes|channels)")
_ABSENT = {
    "n_routed_experts": 4,
    "n_shared_experts": 1,
    "num_experts_per_tok": 2,
    "num_key_value_heads": 4,
    "head_dim": 16,
}  # where the default config says None
_SKIPPED = {
    "stage_names",
    "out_features",
    "_out_features",
    "out_indices",
    "_out_indices",
    "attention_layers",
    "transformers_version",
    "architectures",
    "dtype",
    "torch_dtype",
    "id2label",
    "label2id",
    "_name_or_path",
    "_attn_implementation",
}
_TOKEN = re.compile(r".*(token_id|token_index|_token_ids|tokens?_idx|token|_id)$")
_KINDS = re.compile(r".*(layer_types|layers_block_type|indexer_types|block_types?|layers_pattern)$")


_WIDE = {"wide": {64: 256, 4: 2, 16: 128}, "wider": {64: 256, 16: 64}}  # heads of 128 or 64, as most models have them: some code counts on it


def _number(key, value, special, recipe="all"):
    if _TOKEN.match(key):
        return value if value < SPECIAL else SPECIAL + next(special) % (VOCABULARY - SPECIAL)
    if recipe in _WIDE and re.fullmatch(r"(.*_)?(hidden_size|num_attention_heads|num_heads|head_dim)", key):
        small = next(number for pattern, number in _NUMBERS if pattern.fullmatch(key))
        return min(value, _WIDE[recipe].get(small, small))
    number = next((number for pattern, number in _NUMBERS if pattern.fullmatch(key)), None)
    return value if number is None else min(value, number)


def _list(key, value, kinds, special, layers):
    """A list for each layer, for each stage, or of tokens. layers: how many there are."""
    if _KINDS.match(key) and all(isinstance(one, str) for one in value):
        made = [value[min(number, len(value) - 1)] for number in kinds]
        return [*made[:-1], "full_attention"] if set(made) == {"linear_attention"} else made
    if len(value) == layers:
        value = [value[number] for number in kinds]
    if not all(isinstance(one, int) and not isinstance(one, bool) for one in value) or not value:
        return value
    if _TOKEN.match(key):
        return [_number(key, one, special) for one in value]
    if key == "depths" or key.endswith("_depths"):
        return [min(one, 1) for one in value]
    if len(value) == len(kinds) or key in ("image_size", "patch_size"):
        return [_number(key, one, special) for one in value]
    if key == "mrope_section":
        return [2, 3, 3] if sum(value) >= 64 else [1, 1, 2][: len(value)]
    if _LISTS.match(key) and min(value) > 16:
        return [max(16, one * 32 // min(value)) for one in value]
    return value


def _kinds(numbers):
    """Of which layers of the original there is one: each kind once, at most MOST_KINDS, and two at least."""
    lists = [value for key, value in numbers.items() if _KINDS.match(key) and isinstance(value, (list, tuple)) and value and isinstance(value[0], str)]
    if not lists:
        return [0, 1]
    count = max(len(one) for one in lists)
    lists = [one for one in lists if len(one) == count]
    seen, kept = set(), []
    for number in range(count):
        kind = tuple(one[number] for one in lists)
        if kind not in seen and len(kept) < MOST_KINDS:
            seen.add(kind)
            kept.append(number)
    return kept + [number for number in range(count) if number not in kept][: max(0, 2 - len(kept))]


def _shrunk(numbers, recipe, special):
    """A config's dict with smaller numbers, and those within."""
    kinds, made = _kinds(numbers), {}
    layers = re.compile(r"num_hidden_layers|n_layers?|num_layers")
    for key, value in numbers.items():
        if key in _SKIPPED:
            continue
        if isinstance(value, dict):
            layers_of = {one: words for one, words in value.items() if not str(one).isdigit() or int(one) < len(kinds)}  # some are for layers by number
            made[key] = _shrunk(layers_of, recipe, special)
        elif key == "attention_types":
            made[key] = [[["global", "local"], 1]]
        elif value is None:
            made[key] = _ABSENT.get(key) if "hidden_size" in numbers else None
        elif isinstance(value, bool):
            made[key] = value
        elif isinstance(value, int):
            made[key] = value if recipe == "lists" and key in ("image_size", "patch_size") else _number(key, value, special, recipe)
            if key == "num_key_value_heads" and value == numbers.get("num_attention_heads"):
                made[key] = _number("num_attention_heads", value, special)  # a model may know no shared heads
            if layers.fullmatch(key) and any(_KINDS.match(other) for other in numbers):
                made[key] = len(kinds)
        elif isinstance(value, (list, tuple)):
            made[key] = list(value) if recipe == "numbers" else _list(key, list(value), kinds, special, numbers.get("num_hidden_layers"))
        elif isinstance(value, float) and "drop" in key:
            made[key] = 0.0
        else:
            made[key] = value
    return made


_FEW = re.compile(r"vocab_size|.*(hidden_layers|n_layers?|encoder_layers|decoder_layers|num_layers)")


def _few(numbers, special):
    """Only a smaller vocabulary and fewer layers."""
    made = {}
    for key, value in numbers.items():
        if key not in _SKIPPED:
            number = isinstance(value, int) and not isinstance(value, bool) and (_FEW.fullmatch(key) or _TOKEN.match(key))
            drop = isinstance(value, float) and "drop" in key
            made[key] = _few(value, special) if isinstance(value, dict) else _number(key, value, special) if number else 0.0 if drop else value
    return made


RECIPES = ("all", "lists", "wide", "wider", "numbers", "few", "default")


def small_config(kind, recipe):
    """A config of a type with small numbers."""
    made = configuration_auto.CONFIG_MAPPING[kind]
    if recipe == "default":
        return made()
    numbers, special = made().to_dict(), itertools.count()
    numbers.pop("model_type", None)
    return made(**(_few(numbers, special) if recipe == "few" else _shrunk(numbers, recipe, special)))


# ------------------------------------------------------------------------------------------------ models


def _stir(model, generator):
    """Weights with which everything counts: norms are not 1, projections keep the size of what they get."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.is_floating_point():
                size = 0.7 / math.sqrt(parameter.shape[-1]) if parameter.dim() > 1 else 0.05
                parameter.add_(torch.randn(parameter.shape, generator=generator).to(parameter.dtype) * size)


def _made(kind, name, recipe, seed):
    import transformers

    config = small_config(kind, recipe)
    one = getattr(transformers, name)
    with torch.device("meta"):
        count = sum(parameter.numel() for parameter in one(config).parameters())
    if count > MOST_PARAMETERS:
        raise CannotBeSmall(f"{count / 1e6:.0f} million parameters")
    torch.manual_seed(seed)
    model = one(small_config(kind, recipe)).float()
    _stir(model, torch.Generator().manual_seed(seed))
    return model.eval()


def small(kind, names, seed=0):
    """(a model of a type that runs, the inputs it runs with). CannotBeSmall tells the last recipe's reasons."""
    why = []
    for name, recipe in itertools.product(names[:2], RECIPES):
        try:
            model = _made(kind, name, recipe, seed)
        except (Exception, SystemExit) as error:
            why.append(f"{name}, {recipe}: {type(error).__name__}: {error}")
            continue
        for given in inputs(model):
            try:
                before = time.process_time()
                right = runs(model, given)
                took = time.process_time() - before
                if right and took < MOST_SECONDS:
                    return model, given
                if right:
                    why.append(f"{name}, {recipe}: a call takes {took:.0f} s")
                    break
                why.append(f"{name}, {recipe}: gives {'no floating-point tensor' if not outputs(model, given) else 'NaN or infinity'}")
            except Exception as error:
                why.append(f"{name}, {recipe}, {', '.join(given)}: {type(error).__name__}: {error}")
    said = {}
    for one in why:
        where, _, words = " ".join(one.split()).partition(": ")
        said.setdefault(words[:160], where)
    raise CannotBeSmall(" | ".join(f"{where}: {words}" for words, where in said.items())[:600])


# ------------------------------------------------------------------------------------------------ what goes in and comes out


def _grid(config, generator):
    """Patches of two pictures side by side, and how many there are down and across."""
    side, deep = _find(config, "patch_size", default=14), _find(config, "temporal_patch_size", default=1)
    side, deep = (one if isinstance(one, int) else one[0] for one in (side, deep))
    channels = _find(config, "in_channels", "in_chans", "num_channels", default=3)
    grid = torch.tensor([[1, 4, 4], [1, 2, 4]])
    return torch.randn(24, channels * deep * side**2, generator=generator), grid


def _find(config, *names, default):
    """A number of a config, or of one within it."""
    for name in names:
        value = getattr(config, name, None)
        if value is not None and not isinstance(value, dict):
            return value
    for within in vars(config).values():
        if hasattr(within, "to_dict") and within is not config:
            value = _find(within, *names, default=None)
            if value is not None:
                return value
    return default


def _images(config, generator):
    size = _find(config, "image_size", "input_size", "crop_size", default=64)
    high, wide = size if isinstance(size, (list, tuple)) else (size, size)
    channels = _find(config, "num_channels", "in_channels", "in_chans", default=3)
    channels = channels if isinstance(channels, int) else channels[0]
    if max(high, wide) > 256:
        return
    yield torch.randn(ROWS, channels, high, wide, generator=generator)
    frames = _find(config, "num_frames", "frames_per_clip", "tubelet_size", default=4)
    yield torch.randn(ROWS, frames if isinstance(frames, int) else frames[0], channels, high, wide, generator=generator)
    yield torch.randn(ROWS, channels, 64, 64, generator=generator)
    yield torch.randn(ROWS, channels, 224, 224, generator=generator)


def _features(config, generator):
    mel = _find(config, "num_mel_bins", "n_mels", "feature_size", "input_feat_per_channel", "input_dim", "input_size", default=80)
    for count in (2 * _find(config, "max_source_positions", default=32), 96):
        yield torch.randn(ROWS, mel, count, generator=generator)
        yield torch.randn(ROWS, count, mel, generator=generator)


def _sounds(config, generator):
    if hasattr(config, "num_mel_bins"):
        yield torch.randn(ROWS, _find(config, "max_length", default=24), config.num_mel_bins, generator=generator)
    yield torch.randn(ROWS, 4000, generator=generator)
    yield torch.randn(ROWS, 1, 4000, generator=generator)


def _tokens(count, generator):
    return torch.randint(5, SPECIAL - 5, (ROWS, count), generator=generator)


def inputs(model):
    """Dicts of arguments that such a model may take, the likeliest first."""
    taken = inspect.signature(inspect.unwrap(type(model).forward)).parameters
    generator = torch.Generator().manual_seed(1)
    fixed = {}
    if "input_ids" in taken:
        fixed["input_ids"] = _tokens(COUNT, generator)
        if "attention_mask" in taken:
            fixed["attention_mask"] = torch.ones(ROWS, COUNT, dtype=torch.long)
    if "decoder_input_ids" in taken and getattr(model.config, "is_encoder_decoder", False):
        fixed["decoder_input_ids"] = _tokens(7, generator)
    if "bbox" in taken:
        fixed["bbox"] = torch.zeros(ROWS, COUNT, 4, dtype=torch.long)
    if "input_ids" in taken:
        yield fixed
    rest = {name: value for name, value in fixed.items() if name.startswith("decoder")}
    for name, kinds in (("pixel_values", _images), ("input_features", _features), ("input_values", _sounds), ("pixel_values_videos", _images)):
        if name in taken:
            for value in kinds(model.config, generator):
                if "input_ids" in taken:
                    yield fixed | {name: value}
                yield rest | {name: value}
    wide = _find(model.config, "hidden_size", "d_model", default=64)
    for patches, grid in itertools.product(("hidden_states", "pixel_values"), ("grid_thw", "image_grid_thw")):
        if patches in taken and grid in taken:
            yield {**fixed, **dict(zip((patches, grid), _grid(model.config, generator), strict=True))}
            yield dict(zip((patches, grid), _grid(model.config, generator), strict=True))
    for name in ("hidden_states", "inputs_embeds", "query_embeds"):
        if name in taken:
            yield {name: torch.randn(ROWS, COUNT, wide, generator=generator)}
    if "decoder_input_ids" in fixed:
        several = _find(model.config, "num_channels", "num_codebooks", default=4)
        yield fixed | {"decoder_input_ids": torch.randint(5, 50, (ROWS, 7, several), generator=generator)}
    if "audio_mel" in taken:
        mel = torch.randn(ROWS, 64, _find(model.config, "input_feat_size", default=128), generator=generator)
        yield {"audio_mel": mel, "audio_mel_mask": torch.zeros(ROWS, 64, dtype=torch.bool)}


def _flat(value):
    if isinstance(value, torch.Tensor):
        if value.is_floating_point():
            yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from _flat(one)
    elif isinstance(value, (tuple, list)):
        for one in value:
            yield from _flat(one)


def outputs(model, given):
    """The floating-point tensors that a call gives; caches are not among them."""
    torch.manual_seed(2)  # of models that draw numbers, some with NumPy
    numpy.random.seed(2)
    made = model(**{name: value.clone() if isinstance(value, torch.Tensor) else value for name, value in given.items()})
    return list(_flat(made))


@torch.no_grad()
def runs(model, given):
    made = outputs(model, given)
    return bool(made) and all(bool(one.isfinite().all()) for one in made)
