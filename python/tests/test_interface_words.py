"""The keywords that models hand to the attention function of register_with_transformers: obeyed, beside a formula, or refused by name."""

import random

import pytest
import torch
from conftest import close

import sparse_autotune as sa
from sparse_autotune import _interface_words, _transformers

transformers = pytest.importorskip("transformers", reason="Hugging Face transformers is not installed: NOTHING of it was tested", exc_type=ImportError)

FLOOR = torch.finfo(torch.float64).min


class Layer(torch.nn.Module):
    """Hands one word on by name, and all that it was called with."""

    is_causal = False

    def forward(self, *operands, **words):
        return _transformers.sparse_autotune_attention(self, *operands, twist=words.pop("twist", None), **words)[0]


class Indexed(Layer):
    def __init__(self, block_size):
        super().__init__()
        self.indexer = torch.nn.Module()
        self.indexer.block_size = block_size


def _drawn(seed):
    """Operands of random sizes: query, key, value, and a generator."""
    draw, generator = random.Random(seed), torch.Generator().manual_seed(seed)
    batch, shared, of, queries, keys, depth = (draw.randint(1, 3), draw.randint(1, 2), draw.randint(1, 3), draw.randint(1, 20), draw.randint(4, 40), 16)
    sizes = (batch, shared * of, queries, depth), (batch, shared, keys, depth), (batch, shared, keys, depth)
    return [torch.randn(size, generator=generator, dtype=torch.float64) for size in sizes], generator, draw


def _formula(operands, added, sinks=None):
    query, key, value = operands
    key, value = (one.repeat_interleave(query.shape[1] // key.shape[1], 1) for one in (key, value))
    scores = query @ key.mT * query.shape[-1] ** -0.5 + added
    if sinks is not None:
        scores = torch.cat([scores, sinks.expand(*scores.shape[:-1], 1)], -1)
    weights = scores.softmax(-1)[..., : key.shape[2]]
    return (weights @ value).transpose(1, 2)


def _mask(operands, generator, kind):
    """A model's mask and what it adds to scores; the first key is always seen."""
    (batch, _, queries, _), keys = operands[0].shape, operands[1].shape[2]
    seen = torch.rand(batch, 1, queries, keys, generator=generator) < 0.7
    seen[..., 0] = True
    added = torch.zeros(seen.shape, dtype=torch.float64).masked_fill(~seen, FLOOR)
    return {"none": (None, 0.0), "bool": (seen, added), "float": (added, added)}[kind]


@pytest.mark.parametrize("mask", ["none", "bool", "float"])
@pytest.mark.parametrize("seed", range(4))
def test_keys_that_an_indexer_chose(mask, seed):
    operands, generator, draw = _drawn(seed)
    batch, queries, keys = operands[0].shape[0], operands[0].shape[2], operands[1].shape[2]
    given, added = _mask(operands, generator, mask)
    chosen = torch.stack([torch.randperm(keys - 1, generator=generator)[:3] + 1 for _ in range(batch * queries)]).view(batch, queries, 3)
    chosen = torch.cat([torch.zeros(batch, queries, 1, dtype=torch.long), chosen, torch.full((batch, queries, 1), -1)], -1)
    kept = torch.zeros(batch, 1, queries, keys, dtype=torch.bool)
    for item in range(batch):
        for row in range(queries):
            kept[item, 0, row, chosen[item, row, :4]] = True
    want = _formula(operands, torch.where(kept, torch.as_tensor(added, dtype=torch.float64), FLOOR))
    close(Layer()(*operands, given, indices=chosen.to(draw.choice([torch.int32, torch.int64]))), want)
    assert not torch.allclose(Layer()(*operands, given), want) or keys == 4


@pytest.mark.parametrize("mask", ["none", "bool", "float"])
@pytest.mark.parametrize("seed", range(4))
def test_blocks_that_an_indexer_chose(mask, seed):
    operands, generator, draw = _drawn(seed)
    (batch, heads, queries, _), (_, groups, keys, _) = operands[0].shape, operands[1].shape
    size = draw.choice([2, 3, 4])
    blocks = -(-keys // size)
    given, added = _mask(operands, generator, mask)
    chosen = torch.randint(blocks, (batch, groups, queries, 3), generator=generator)
    chosen[..., 0], chosen[..., 2] = 0, -1
    kept = torch.zeros(batch, groups, queries, keys, dtype=torch.bool)
    for where in torch.cartesian_prod(*(torch.arange(count) for count in (batch, groups, queries))).view(-1, 3).tolist():
        for block in chosen[tuple(where)].tolist():
            if block >= 0:
                kept[(*where, slice(block * size, (block + 1) * size))] = True
    kept = kept.repeat_interleave(heads // groups, 1)
    want = _formula(operands, torch.where(kept, torch.as_tensor(added, dtype=torch.float64), FLOOR))
    close(Indexed(size)(*operands, given, block_indices=chosen), want)


@pytest.mark.parametrize("mask", ["none", "bool", "float"])
@pytest.mark.parametrize("seed", range(3))
def test_sinks(mask, seed):
    operands, generator, _ = _drawn(seed)
    batch, heads, queries, _ = operands[0].shape
    given, added = _mask(operands, generator, mask)
    of_heads, of_queries = (torch.randn(size, generator=generator, dtype=torch.float64) for size in ((heads,), (batch, heads, queries, 1)))
    close(Layer()(*operands, given, s_aux=of_heads), _formula(operands, added, of_heads.view(1, -1, 1, 1)))
    close(Layer()(*operands, given, sinks=of_queries), _formula(operands, added, of_queries))
    with pytest.raises(ValueError, match="sinks: s_aux is given as well"):
        Layer()(*operands, given, sinks=of_queries, s_aux=of_heads)


def test_sequences_in_one_row():
    operands = [torch.randn(1, 2, 11, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(part)) for part in range(3)]
    ends = torch.tensor([0, 4, 5, 11], dtype=torch.int32)
    parts = [_formula([one[:, :, start:stop] for one in operands], 0.0) for start, stop in ((0, 4), (4, 5), (5, 11))]
    words = dict(cu_seq_lens_q=ends, cu_seq_lens_k=ends, max_length_q=6, max_length_k=6)
    close(Layer()(*operands, None, **words), torch.cat(parts, 1))
    whole = torch.tensor([0, 11])
    close(Layer()(*operands, None, cu_seq_lens_q=whole, cu_seq_lens_k=whole), _formula(operands, 0.0))
    two = [one.expand(2, -1, -1, -1) for one in operands]
    with pytest.raises(ValueError, match="cu_seq_lens_q: must be one list of ends beside a batch of 1"):
        Layer()(*two, None, **words)
    with pytest.raises(TypeError, match="cu_seq_lens_k: must be a tensor, not NoneType"):
        Layer()(*operands, None, cu_seq_lens_q=ends)


def test_words_that_are_not_understood():
    operands, _, _ = _drawn(5)
    for words, name in (
        (dict(twist=0.5), "twist: Layer hands 0.5"),
        (dict(twist=torch.ones(2)), r"twist: Layer hands a tensor of \(2,\)"),
        (dict(tilt=3), "tilt: Layer hands 3"),
        (dict(output_attentions=True), "output_attentions: weights are never formed"),
    ):
        with pytest.raises(ValueError, match=name + ".*attn_implementation=.eager"):
            Layer()(*operands, None, **words)


def test_words_that_need_nothing():
    operands, _, _ = _drawn(5)
    plain = Layer()(*operands, None)
    for words in (dict(twist=None), dict(tilt=None), dict(output_attentions=False), *(dict([(name, torch.ones(3))]) for name in _interface_words._HARMLESS)):
        close(Layer()(*operands, None, **words), plain)
    windowed = Layer()
    windowed.sliding_window = 4
    close(windowed(*operands, None, sliding_window=4), plain)
    for layer, window in ((windowed, 5), (windowed, torch.tensor(4)), (Layer(), 4)):
        with pytest.raises(ValueError, match="sliding_window: Layer hands"):
            layer(*operands, None, sliding_window=window)


# What somebody may call a model with: words of sa.attention, of other implementations and of earlier versions, and what nobody knows.
CALLED_WITH = {
    "window": 2,
    "scale": 9.0,
    "pages": 1,
    "block_table": torch.zeros(1, 1),
    "mask": torch.zeros(1),
    "head_mask": torch.zeros(4),
    "cross_attn_head_mask": torch.zeros(4),
    "causal": False,
    "lengths": torch.tensor([3]),
    "alibi_slopes": torch.ones(4),
    "dropout_p": 0.5,
    "softmax_scale": 2.0,
    "window_size": (1, 0),
    "sliding_window": 2,
    "read_index": torch.zeros(6, dtype=torch.int32),
    "zero": 0,
    "no": False,
    "some_unknown_word": "text",
}


@pytest.mark.parametrize("kind", ["Llama", "GPT2", "Bert"])
@pytest.mark.parametrize("word", [*CALLED_WITH, "drawn"])
def test_words_that_a_model_was_called_with(word, kind):
    """They reach the attention function, and would change nothing."""
    sizes = dict(vocab_size=50, hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=4)
    model = getattr(transformers, f"{kind}Model")(getattr(transformers, f"{kind}Config")(**sizes)).eval()
    sa.register_with_transformers()
    model.set_attn_implementation("sparse_autotune")
    ids, known = torch.randint(50, (1, 6)), word in CALLED_WITH
    name = word if known else "".join(random.choice("abcdefgh") for _ in range(9))
    with torch.no_grad():
        model(ids, output_hidden_states=True, use_cache=True, num_items_in_batch=3, position_ids=torch.arange(6)[None])
        with pytest.raises(ValueError, match=f"{name}: .*Attention hands .+ to its attention function"):
            model(ids, **{name: CALLED_WITH[name] if known else 3})


@pytest.mark.parametrize(
    "words,match",
    [
        (dict(indices=torch.zeros(1, 2, 2)), "indices: must be whole numbers"),
        (dict(indices=[[1]]), "indices: must be a tensor, not list"),
        (dict(block_indices=torch.zeros(1, 1, 4, 1, dtype=torch.long)), "block_indices: Layer has no indexer whose block_size"),
        (dict(sinks=torch.zeros(3)), "sinks: must be of 2 heads"),
        (dict(s_aux=torch.zeros(3)), "s_aux: must be of 2 heads"),
        (dict(sinks=2), "sinks: must be a tensor, not int"),
        (dict(s_aux=[0.0, 1.0]), "s_aux: must be a tensor, not list"),
        (dict(position_bias=2), "position_bias: must be a tensor, not int"),
        (dict(position_bias=torch.zeros(3, 4)), r"position_bias: must be numbers that broadcast to \[1, 2, 4, 4\]"),
        (dict(position_bias=torch.zeros(4, 4, dtype=torch.bool)), "position_bias: must be numbers"),
        (dict(softcap="5"), "softcap: must be a number or None, not str"),
        (dict(softcap=torch.ones(2)), "softcap: must be a number or None, not Tensor"),
        (dict(cu_seq_lens_q=3, cu_seq_lens_k=3), "cu_seq_lens_q: must be a tensor, not int"),
    ],
)
def test_wrong_words(words, match):
    operands = [torch.randn(1, 2, 4, 16) for _ in range(3)]
    with pytest.raises((TypeError, ValueError), match=match):
        Layer()(*operands, None, **words)


def test_masks_of_other_sizes():
    """A model that adds keys beside its mask is refused; a mask of one key or query stands for all."""
    operands = [torch.randn(2, 2, count, 16, dtype=torch.float64) for count in (4, 6, 6)]
    with pytest.raises(ValueError, match="attention_mask: is for 4 queries and 4 keys, and Layer has 4 and 6"):
        Layer()(*operands, _transformers.Band(2, 4, 4, causal=True, diagonal="bottom_right"))
    close(Layer()(*operands, _transformers.Band(2, 1, 1)), _formula(operands, 0.0))
    some = _transformers.Band(2, 1, 1, lengths=torch.tensor([1, 0], dtype=torch.int32))
    close(Layer()(*operands, some)[:1], _formula(operands, 0.0)[:1])
    assert not Layer()(*operands, some)[1].any()
    with pytest.raises(TypeError, match="attention_mask: must be a tensor or None, not list"):
        Layer()(*operands, [1, 0])


def test_without_a_mask_all_keys_are_seen():
    """As with "eager", whatever the module says of itself; the call may say that it is causal."""
    operands = [torch.randn(2, 2, 5, 16, dtype=torch.float64) for _ in range(3)]
    causal = torch.full((5, 5), FLOOR, dtype=torch.float64).triu(1)
    for says in (True, False):
        layer = Layer()
        layer.is_causal = says
        close(layer(*operands, None), _formula(operands, 0.0))
        close(layer(*operands, None, is_causal=True), _formula(operands, causal))


def test_a_mask_in_words_computes_as_the_dense_one():
    band = _transformers.Band(2, 3, 5, causal=True, diagonal="bottom_right", lengths=torch.tensor([5, 4], dtype=torch.int32))
    dense, other = band.dense(), torch.rand(2, 1, 3, 5) < 0.5
    for made, want in (
        (~band, ~dense),
        (band & other, dense & other),
        (other | band, other | dense),
        (band & band, dense),
        (band == 0, dense == 0),
        (band == True, dense),  # noqa: E712
        (1.0 - band.float(), 1.0 - dense.float()),
        (band * 2.0, dense * 2.0),
        (band[:, 0], dense[:, 0]),
    ):
        assert torch.equal(made, want)
    assert len(band) == 2


def test_dropout_is_the_models():
    """What a model asks for in training is drawn; sums of weights stay."""
    operands = [torch.randn(1, 2, 64, 16) for _ in range(2)] + [torch.ones(1, 2, 64, 16)]
    torch.manual_seed(1)
    one, two = (Layer()(*operands, None, dropout=0.5) for _ in range(2))
    assert not torch.equal(one, two) and abs(one.mean().item() - 1) < 0.2
    assert torch.equal(Layer()(*operands, None, dropout=0.0).round(decimals=4), torch.ones(1, 64, 2, 16))


def test_words_while_compiling():
    sa.register_with_transformers()
    layer = torch.compile(Layer(), fullgraph=True, backend="aot_eager")
    operands, indices = [torch.randn(1, 2, 8, 16) for _ in range(3)], torch.randint(8, (1, 8, 3))
    close(layer(*operands, None, indices=indices, input_ids=torch.ones(1)), Layer()(*operands, None, indices=indices))
    torch._dynamo.reset()
