"""sa.attention in models of Hugging Face transformers, with random weights: logits beside those of its own implementations."""

import copy
import subprocess
import sys

import pytest
import torch

import sparse_autotune as sa
from sparse_autotune import _sdpa, _transformers

transformers = pytest.importorskip("transformers", reason="Hugging Face transformers is not installed: NOTHING of it was tested", exc_type=ImportError)

from transformers import masking_utils  # noqa: E402

SIZES = dict(vocab_size=99, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2)
WINDOW = 16
# the model, its configuration, and the implementation beside which it is
MODELS = {
    "llama": ("LlamaForCausalLM", "LlamaConfig", dict(SIZES), "sdpa"),
    "mistral": ("MistralForCausalLM", "MistralConfig", dict(SIZES, sliding_window=WINDOW), "sdpa"),
    "gemma2": ("Gemma2ForCausalLM", "Gemma2Config", dict(SIZES, head_dim=16, sliding_window=WINDOW, attn_logit_softcapping=5.0), "eager"),
    "gemma3": ("Gemma3ForCausalLM", "Gemma3TextConfig", dict(SIZES, head_dim=16, sliding_window=WINDOW, num_hidden_layers=6), "sdpa"),
    "gpt_oss": ("GptOssForCausalLM", "GptOssConfig", dict(SIZES, head_dim=16, sliding_window=WINDOW, num_local_experts=2, num_experts_per_tok=1), "eager"),
    "bert": ("BertModel", "BertConfig", {k: v for k, v in SIZES.items() if k != "num_key_value_heads"}, "sdpa"),
}
NEW = hasattr(masking_utils, "sliding_window_bidirectional_mask_function")  # transformers 5
CAUSAL = [name for name in MODELS if name != "bert"]


@pytest.fixture(scope="module", autouse=True)
def _registered():
    sa.register_with_transformers()
    before = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity_error()
    yield
    transformers.logging.set_verbosity(before)


def pair(name):
    """A model and the same one with sa.attention."""
    model, config, sizes, implementation = MODELS[name]
    config = getattr(transformers, config)(**sizes, max_position_embeddings=256)
    torch.manual_seed(3)
    reference = getattr(transformers, model)(config).eval()
    with torch.no_grad():
        for parameter in reference.parameters():  # sinks and weights of norms start with numbers that hide faults
            parameter.add_(torch.randn_like(parameter) * 0.05)
    ours = copy.deepcopy(reference)
    reference.set_attn_implementation(implementation)
    ours.set_attn_implementation("sparse_autotune")
    return reference, ours


@pytest.fixture
def counted(monkeypatch):
    """Words of sa.attention, and "pytorch" for each call that PyTorch got."""
    calls = []
    real, others = _transformers.attention, _transformers._by_pytorch
    monkeypatch.setattr(_transformers, "attention", lambda *given, **words: calls.append(words) or real(*given, **words))
    monkeypatch.setattr(_transformers, "_by_pytorch", lambda *given: calls.append("pytorch") or others(*given))
    return calls


def output(model, ids, **words):
    made = model(ids, **words)
    return made.logits if "logits" in made else made.last_hidden_state


def tokens(rows=2, count=40):
    return torch.randint(1, 99, (rows, count), generator=torch.Generator().manual_seed(5))


def alike(made, want):
    torch.testing.assert_close(made, want, atol=2e-5, rtol=2e-4)


@torch.no_grad()
@pytest.mark.parametrize("name", MODELS)
def test_prefill_and_padding(name, counted):
    reference, ours = pair(name)
    ids = tokens()
    alike(output(ours, ids), output(reference, ids))
    right, left, both = (torch.ones_like(ids) for _ in range(3))
    right[0, 30:], left[0, :7], both[0, :3], both[1, 35:] = 0, 0, 0, 0
    assert "pytorch" not in counted
    alike(output(ours, ids, attention_mask=torch.ones_like(ids)), output(reference, ids, attention_mask=torch.ones_like(ids)))
    assert "pytorch" not in counted and all("lengths" not in words for words in counted)
    counted.clear()
    alike(output(ours, ids, attention_mask=right)[right > 0], output(reference, ids, attention_mask=right)[right > 0])
    assert "pytorch" not in counted and all(words["lengths"].tolist() == [30, 40] for words in counted)
    for mask in (left, both):
        counted.clear()
        alike(output(ours, ids, attention_mask=mask)[mask > 0], output(reference, ids, attention_mask=mask)[mask > 0])
        assert all(call == "pytorch" for call in counted)


@torch.no_grad()
@pytest.mark.parametrize("cache", [None, "static"])
@pytest.mark.parametrize("name", CAUSAL)
def test_generation(name, cache, counted):
    """Dynamic and static caches; more tokens than windows hold; a batch of uneven prompts."""
    reference, ours = pair(name)
    for padding in (0, 5):
        ids = tokens(count=12)
        mask = torch.ones_like(ids)
        mask[0, :padding] = 0
        words = dict(max_new_tokens=12, min_new_tokens=12, do_sample=False, attention_mask=mask, cache_implementation=cache, disable_compile=True)
        words |= dict(return_dict_in_generate=True, output_logits=True, pad_token_id=0)
        counted.clear()
        made = ours.generate(ids, **words)
        calls, want = list(counted), reference.generate(ids, **words)
        assert torch.equal(made.sequences, want.sequences)
        alike(torch.stack(made.logits), torch.stack(want.logits))
        assert len(calls) == 12 * ours.config.num_hidden_layers
        assert padding or "pytorch" not in calls


@torch.no_grad()
@pytest.mark.parametrize("static", [False, True])
def test_chunks_of_a_prompt(static, counted):
    for name in ("llama", "gemma3"):
        reference, ours = pair(name)
        ids, caches = tokens(count=50), []
        for model in (ours, reference):
            caches.append(transformers.StaticCache(config=model.config, max_cache_len=64) if static else transformers.DynamicCache(config=model.config))
        for part in ids.split([9, 20, 1, 13, 7], 1):
            made, want = (output(m, part, **{keyword(m): cache}) for m, cache in zip((ours, reference), caches, strict=True))
            alike(made, want)
        assert "pytorch" not in counted


def keyword(model):
    """What the models call their cache."""
    import inspect

    names = inspect.signature(inspect.unwrap(type(model).forward)).parameters
    return "cache" if "cache" in names else "past_key_values"


@torch.no_grad()
def test_compile(counted):
    reference, ours = pair("mistral")
    caches = [transformers.StaticCache(config=ours.config, max_cache_len=40) for _ in range(2)]
    compiled = torch.compile(ours.forward, fullgraph=True, backend="aot_eager")
    ids = tokens(count=13)
    alike(ours(ids, **{keyword(ours): caches[0]}).logits, reference(ids, **{keyword(ours): caches[1]}).logits)
    token = ids[:, -1:].clone()
    for step in range(4):
        words = {}
        if step > 1 and NEW:  # generate makes masks before it calls what is compiled
            embeddings = ours.get_input_embeddings()(token)
            words = {"attention_mask": masking_utils.create_masks_for_generate(ours.config, embeddings, None, caches[0])}
        made = compiled(token, **{keyword(ours): caches[0]}, **words).logits
        alike(made, reference(token, **{keyword(ours): caches[1]}).logits)
        token = made.argmax(-1)
    assert "pytorch" not in counted or not _transformers._READS_CLOSURES
    torch._dynamo.reset()


@pytest.mark.parametrize("own", [False, True])
def test_training(own, counted, monkeypatch):
    """With the gradients of sa.attention, and with PyTorch's."""
    monkeypatch.setattr(_sdpa, "has_gradients", lambda q, masked: own)
    for name in ("llama", "gemma2", "gpt_oss"):
        reference, ours = pair(name)
        ids = tokens()
        mask = torch.ones_like(ids)
        mask[0, 30:] = 0
        gradients = []
        for model in (ours, reference):
            loss = model(ids, attention_mask=mask, labels=ids.masked_fill(mask == 0, -100)).loss
            gradients.append(torch.autograd.grad(loss, [p for p in model.parameters() if p.requires_grad], allow_unused=True))
        for made, want in zip(*gradients, strict=True):
            if want is not None:
                torch.testing.assert_close(made, want, atol=1e-5, rtol=1e-3)
    assert "pytorch" not in counted if own else all(call == "pytorch" for call in counted)


def test_dropout():
    _, ours = pair("llama")
    ours.config.attention_dropout = 0.5
    for layer in ours.model.layers:
        layer.self_attn.attention_dropout = 0.5
    with torch.no_grad():
        still = output(ours, tokens())
        ours.train()
        one, two = output(ours, tokens()), output(ours, tokens())
    assert not torch.equal(one, two) and not torch.allclose(one, still)


@torch.no_grad()
def test_packed_sequences_are_dense(counted):
    reference, ours = pair("llama")
    ids = tokens(rows=1)
    positions = torch.cat([torch.arange(13), torch.arange(27)])[None]
    words = dict(position_ids=positions, use_cache=False)
    alike(output(ours, ids, **words), output(reference, ids, **words))
    assert set(counted) == {"pytorch"}


@torch.no_grad()
def test_masks_of_four_dimensions(counted):
    reference, ours = pair("llama")
    ids = tokens(count=200)
    seen = (torch.rand(2, 1, 200, 200) < 0.8).tril()
    seen[:, :, 70:, :64] = False
    seen |= torch.eye(200, dtype=torch.bool)
    for _ in range(2):
        alike(output(ours, ids, attention_mask=seen), output(reference, ids, attention_mask=seen))
    assert counted[0] == "pytorch" and len(counted) == 4 and all(isinstance(words["mask"], sa.BlockMask) for words in counted[1:])
    numbers = torch.zeros(2, 1, 200, 200).masked_fill(~seen, torch.finfo(torch.float32).min)
    alike(output(ours, ids, attention_mask=numbers), output(reference, ids, attention_mask=numbers))


# ------------------------------------------------------------------------------------------------ masks of blocks


def select(module, query, key, block=8, top_k=4):
    """The first block of keys, the two nearest, and those with the highest scores; a step of decoding sees all."""
    if query.shape[2] != key.shape[2]:
        return None
    of_query, of_key = (torch.nn.functional.avg_pool2d(t, (block, 1), ceil_mode=True) for t in (query, key))
    scores = of_query.unflatten(1, (key.shape[1], -1)).mean(2) @ of_key.mT
    at = torch.arange(scores.shape[-1], device=scores.device)
    back = at[:, None] - at
    scores = scores.masked_fill(((back >= 0) & (back < 2)) | (at == 0), torch.inf).masked_fill(back < 0, -torch.inf)
    return sa.BlockMask.from_scores(scores, top_k, block, shape=(query.shape[2], key.shape[2]))


@torch.no_grad()
@pytest.mark.parametrize("name", ["llama", "gemma2"])
def test_a_block_mask(name, counted, monkeypatch):
    reference, ours = pair(name)
    ids = tokens()
    mask = sa.BlockMask.window(40, 9, 8, causal=True, sinks=4)
    seen = (mask.to_pairs() & torch.ones(40, 40, dtype=torch.bool).tril()).expand(2, -1, -1, -1)
    if name == "gemma2":
        near = torch.ones(40, 40, dtype=torch.bool).triu(1 - WINDOW)
        seen = {"full_attention": seen, "sliding_attention": seen & near}
        seen = {kind: torch.zeros(pairs.shape).masked_fill(~pairs, torch.finfo(torch.float32).min) for kind, pairs in seen.items()}
    want = output(reference, ids, attention_mask=seen)
    sa.set_block_mask(ours, mask)
    alike(output(ours, ids), want)
    assert len(counted) == 2 and all(words["mask"] is mask for words in counted)
    sa.set_block_mask(ours, None)
    assert not any(hasattr(module, _transformers._ATTRIBUTE) for module in ours.modules())
    alike(output(ours, ids), output(reference, ids))
    alike(output(ours, ids, block_mask=mask), want)
    monkeypatch.setattr(_sdpa, "has_gradients", lambda q, masked: False)
    with torch.enable_grad():
        alike(output(ours, ids, block_mask=mask), want)
    assert counted[-1] == "pytorch"


@torch.no_grad()
def test_selected_blocks(counted):
    reference, ours = pair("llama")
    ids, made = tokens(count=60), []

    def kept(module, query, key):
        made.append((module.layer_idx, select(module, query, key)))
        return made[-1][1]

    sa.set_block_mask(ours, kept)
    got = output(ours, ids)
    assert [layer for layer, _ in made] == [0, 1] and "pytorch" not in counted
    masks = iter([mask for _, mask in made])

    class PerLayer(torch.nn.Module):  # beside "sdpa" with what each layer chose
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def forward(self, *given, attention_mask=None, **words):
            pairs = next(masks).to_pairs().repeat_interleave(2, 1)
            return self.inner(*given, attention_mask=pairs & torch.ones(60, 60, dtype=torch.bool).tril(), **words)

    for layer in reference.model.layers:
        layer.self_attn = PerLayer(layer.self_attn)
    alike(got, output(reference, ids))
    assert ours.generate(ids, max_new_tokens=3, do_sample=False, pad_token_id=0).shape == (2, 63)
    left = torch.ones_like(ids)
    left[0, :5] = 0
    output(ours, ids, attention_mask=left)
    assert counted[-1] == "pytorch"


def test_selected_blocks_compile():
    _, ours = pair("llama")
    sa.set_block_mask(ours, select)
    ids, positions = tokens(), torch.arange(40)[None]
    with torch.no_grad():
        band = _transformers.Band(2, 40, 40, causal=True, diagonal="bottom_right")
        compiled = torch.compile(ours.forward, fullgraph=True, backend="aot_eager")
        words = dict(attention_mask=band, position_ids=positions, use_cache=False)
        alike(compiled(ids, **words).logits, output(ours, ids))
    torch._dynamo.reset()


# ------------------------------------------------------------------------------------------------ what is refused, and what words say


def test_wrong_block_masks():
    _, ours = pair("llama")
    with torch.no_grad():
        for mask, words in (
            (sa.BlockMask.causal(39, 8), "block_mask: is of 39 x 39, but there are 40 queries and 40 keys"),
            (sa.BlockMask.from_pairs(torch.ones(3, 40, 40, dtype=torch.bool), 8), "block_mask: has lists for 3 heads; it is 1, or the 2 of key or the 4"),
        ):
            with pytest.raises(ValueError, match=words):
                ours(tokens(), block_mask=mask)
        for given in (3, torch.ones(40, 40, dtype=torch.bool)):
            with pytest.raises(TypeError, match=f"block_mask: must be an sa.BlockMask, a function of .* or None, not {type(given).__name__}"):
                ours(tokens(), block_mask=given)
        sa.set_block_mask(ours, lambda *_: 3)
        with pytest.raises(TypeError, match="block_mask: the function must return an sa.BlockMask or None, not int"):
            ours(tokens())
    with pytest.raises(TypeError, match="mask: must be an sa.BlockMask, a function of .* or None, not Tensor"):
        sa.set_block_mask(ours, torch.ones(3))
    with pytest.raises(TypeError, match="model: must be a torch.nn.Module, not str"):
        sa.set_block_mask("llama", None)


@pytest.mark.skipif(not NEW, reason="the mask functions of transformers 4 take other words, which the models above give them")
@pytest.mark.parametrize("q_length,kv_length,q_offset,kv_offset", [(7, 7, 0, 0), (1, 9, 8, 0), (5, 9, 4, 0), (5, 12, 4, 0), (4, 12, 0, 0), (3, 9, 10, 4)])
@pytest.mark.parametrize("tensor", [False, True])
def test_bands(q_length, kv_length, q_offset, kv_offset, tensor):
    """What the mask function says in words is the dense mask of transformers, or it gives that."""
    both, window = masking_utils.and_masks, masking_utils.sliding_window_overlay
    causal = masking_utils.causal_mask_function
    about = masking_utils.sliding_window_bidirectional_mask_function(2)
    make = masking_utils.AttentionMaskInterface._global_mapping["sparse_autotune"]
    odd = both(causal, lambda b, h, q, k: (k % 2 == 0) | (k == q))
    bands = 0
    total = kv_offset + kv_length
    paddings = [None, torch.ones(2, total, dtype=torch.bool), torch.ones(2, total - 2, dtype=torch.bool), torch.rand(2, total) < 0.7]
    paddings += [torch.arange(total) < torch.tensor([[total - 4], [total]]), torch.arange(total) >= torch.tensor([[2], [0]])]
    for function in (causal, masking_utils.bidirectional_mask_function, both(window(3), causal), both(window(3), window(5), causal), about, odd):
        for padding in paddings:
            words = dict(batch_size=2, q_length=q_length, kv_length=kv_length, q_offset=torch.tensor(q_offset) if tensor else q_offset)
            words |= dict(kv_offset=kv_offset, mask_function=function, attention_mask=padding, device="cpu")
            made, want = make(**words), masking_utils.sdpa_mask(**words, allow_is_causal_skip=False)
            bands += isinstance(made, _transformers.Band)
            if isinstance(made, _transformers.Band):
                assert made.shape == want.shape and made.ndim == 4 and make(**dict(words, attention_mask=made)) is made
                made = made.dense()
            assert torch.equal(made, want)
    assert bands >= 8


def test_a_band_that_is_taken_for_a_tensor():
    """Some models cut their mask, or add to it."""
    band = _transformers.Band(2, 3, 5, causal=True, diagonal="bottom_right", lengths=torch.tensor([5, 4], dtype=torch.int32))
    dense = band.dense()
    assert dense.shape == (2, 1, 3, 5) and dense.sum().item() == 12 + 9
    assert torch.equal(band[:, :, :, :4], dense[..., :4]) and band.dtype is torch.bool and torch.equal(band.to(torch.float32), dense.float())
    assert torch.equal(torch.zeros(2, 1, 3, 5) + band, dense.float()) and torch.equal(torch.where(band, 1, 0), dense.int())
    assert torch.equal(torch.cat([band, band], -1), torch.cat([dense, dense], -1)) and torch.equal(band.logical_not(), ~dense)
    moved = band.to("cpu")
    assert isinstance(moved, _transformers.Band) and isinstance(copy.deepcopy(band), _transformers.Band) and torch.equal(moved.dense(), dense)
    assert band.to(device="meta").lengths.is_meta and band.to(device="meta").dense().is_meta
    with pytest.raises(AttributeError):
        band.nonsense  # noqa: B018


def test_importing_does_not_import_transformers():
    code = "import sys, sparse_autotune; assert 'transformers' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_transformers(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ImportError, match="transformers: 4.57 or later is needed"):
        sa.register_with_transformers()


def test_another_name():
    sa.register_with_transformers("our_attention")
    _, ours = pair("llama")
    ours.set_attn_implementation("our_attention")
    assert ours.config._attn_implementation == "our_attention"
    with torch.no_grad():
        output(ours, tokens())
