"""What holds of every architecture of transformers: block-sparse layers are saved and loaded, and sa.attention gives what "eager" gives.

Each function returns a pair: what came out, and words about it. Outcomes: "equal"; "refused", with the error's words; "none", where there is
nothing to ask; "FAILED".
"""

import copy
import tempfile
import traceback

import torch
from small_models import COUNT, ROWS, outputs

import sparse_autotune as sa
from sparse_autotune import _transformers

OURS = "sparse_autotune"
TOLERANCE = {torch.float32: 2e-4, torch.float16: 2e-2, torch.bfloat16: 1e-1}  # of the mean magnitude, except for float32: of the largest


class Different(Exception):
    """What was computed is not what it should be."""


def _words(error):
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]


def _is_ours(error):
    """Whether an error says itself what is refused: one of the package's, or transformers' on an implementation that a model does not have."""
    text = str(error)
    if isinstance(error, (ValueError, NotImplementedError)) and ("attn_implementation" in text or "does not support an attention" in text):
        return True
    last = traceback.extract_tb(error.__traceback__)[-1].filename
    return "sparse_autotune" in last and isinstance(error, (ValueError, TypeError, NotImplementedError))


def _alike(made, want, dtype, what, kept=None):
    if len(made) != len(want):
        raise Different(f"{what}: {len(made)} results, {len(want)} wanted")
    for got, wanted in zip(made, want, strict=True):
        if kept is not None:
            if got.dim() < 2 or got.shape[:2] != kept.shape:
                continue
            got, wanted = got[kept], wanted[kept]
        if got.shape != wanted.shape:
            raise Different(f"{what}: shape {tuple(got.shape)}, wanted {tuple(wanted.shape)}")
        if wanted.numel() == 0:
            continue
        got, wanted = got.double(), wanted.double()
        if not bool(wanted.isfinite().all()):
            got, wanted = (torch.where(wanted.isfinite(), one, 0) for one in (got, wanted))
        off, size = ((got - wanted).abs(), wanted.abs())
        share = (off.max() / size.max().clamp(min=1e-6)) if dtype is torch.float32 else (off.mean() / size.mean().clamp(min=1e-4))
        if not share <= TOLERANCE[dtype]:
            raise Different(f"{what}: off by {share.item():.2g} of the {'largest' if dtype is torch.float32 else 'mean'} entry")


# ------------------------------------------------------------------------------------------------ layers


def _replaceable(model, block):
    """Names of the layers that may become sparse: those whose weight no other module uses."""
    users = {}
    for name, module in model.named_modules():
        for parameter in module._parameters.values():
            if parameter is not None:
                users.setdefault(id(parameter), []).append(name)
    return [
        name
        for name, module in model.named_modules()
        if type(module) is torch.nn.Linear and min(module.weight.shape) >= block and len(users[id(module.weight)]) == 1 and "forward" not in vars(module)
    ]


def _left_out(model, given, taken, block):
    """(the layers of which the model reads the weight itself, the first error), found by one layer after the other."""
    found, first = set(), None
    for name in taken:
        one = sa.to_block_sparse(copy.deepcopy(model), 0.5, block, filter=lambda own, _layer, name=name: own == name)
        try:
            outputs(one, given)
        except Exception as error:
            found.add(name)
            first = first or error
    return found, first


@torch.no_grad()
def layers(model, given, block):
    """Replaced, saved, loaded: the same numbers, bit for bit."""
    taken = _replaceable(model, block)
    if not taken:
        return "none", f"no nn.Linear of {block} x {block}"
    words, made = "", None
    try:
        made = sa.to_block_sparse(copy.deepcopy(model), 0.5, block, filter=lambda name, _layer: name in taken)
        want = outputs(made, given)
    except Exception as error:
        out, first = _left_out(model, given, taken, block)
        if not out:
            return "FAILED", f"with block-sparse layers: {_words(error)}"
        taken = [name for name in taken if name not in out]
        words = f"without {', '.join(sorted({name.rpartition('.')[2] for name in out}))}, whose weight the model reads itself ({_words(first)[:120]})"
        if not taken:
            return "refused", words
        made = sa.to_block_sparse(copy.deepcopy(model), 0.5, block, filter=lambda name, _layer: name in taken)
        want = outputs(made, given)
    try:
        _alike(want, outputs(sa.to_dense(copy.deepcopy(made)), given), torch.float32, "beside the dense model of the same weights")
    except Different as error:
        return "FAILED", str(error)
    try:
        with tempfile.TemporaryDirectory() as folder:
            made.save_pretrained(folder)
            loaded = type(made).from_pretrained(folder).eval()
        _same(made, loaded)
        words += _same_results(made, loaded, model, given)
    except Exception as error:
        if "'BSR'" in str(error):
            return "refused", f"the model changes a weight itself ({_words(error)[:120]})"
        if not _repeats(model, given):
            return "none", f"the dense model is another after loading, too ({_words(error)[:120]})"
        return "FAILED", f"saved and loaded: {_words(error)}"
    return "equal", words.strip()


def _equal(made, want):
    return len(made) == len(want) and all(torch.equal(one, other) for one, other in zip(made, want, strict=True))


def _same_results(made, loaded, dense, given):
    """ "", or the reason why results differ in the last bits."""
    want = outputs(made, given)
    if _equal(outputs(loaded, given), want):
        return ""
    for parameter in loaded.parameters():
        parameter.data = parameter.data.clone()  # PyTorch's products may depend on where arrays begin
    if _equal(outputs(loaded, given), want):
        return " equal once the loaded weights lie at other addresses"
    _alike(outputs(loaded, given), want, torch.float32, "after loading")
    if _repeats(dense, given):
        raise Different("after loading: other results in the last bits, and the dense model gives the same")
    return " the dense model does not give the same bits after loading, either"


def _same(made, loaded):
    """No parameter or buffer of the file is another after loading."""
    for name, tensor in made.state_dict().items():
        other = loaded.state_dict().get(name)
        if other is None or tensor.shape != other.shape or not torch.equal(tensor, other):
            raise Different(f"after loading: {name} is another")


def _repeats(model, given):
    """Whether a dense model gives the same after loading."""
    try:
        with tempfile.TemporaryDirectory() as folder:
            model.save_pretrained(folder)
            loaded = type(model).from_pretrained(folder).eval()
    except Exception:
        return False
    try:
        _same(model, loaded)
    except Different:
        return False
    return _equal(outputs(loaded, given), outputs(model, given))


# ------------------------------------------------------------------------------------------------ attention


class _Counted:
    """The attention function, and how often a model called it."""

    def __init__(self):
        self.calls = 0

    def __call__(self, *given, **words):
        self.calls += 1
        return _transformers.sparse_autotune_attention(*given, **words)

    def __enter__(self):
        from transformers import AttentionInterface

        AttentionInterface.register(OURS, self)
        return self

    def __exit__(self, *_raised):
        from transformers import AttentionInterface

        AttentionInterface.register(OURS, _transformers.sparse_autotune_attention)


def _with(model, how, call):
    model.set_attn_implementation(how)
    return call(model)


def _beside(model, what, dtype, call, kept=None):
    """Compares what a call gives with what it gives with "eager", or with "sdpa" where these two differ."""
    want = _with(model, "eager", call)
    made = _with(model, OURS, call)
    if len(made) < len(want):  # a model gives the weights of attention unasked, and there are none
        made, want = ([one for one in several if one.dim() != 4] for several in (made, want))
    try:
        _alike(made, want, dtype, what, kept)
    except Different as error:
        try:
            _alike(made, _with(model, "sdpa", call), dtype, what, kept)
        except Exception:
            raise error from None
        return f'{what}: as "sdpa", not as "eager"'
    return ""


def _paddings(given):
    mask = given.get("attention_mask")
    if mask is None or mask.dim() != 2 or mask.shape != (ROWS, COUNT):
        return
    for side, where in (("left", slice(0, 4)), ("right", slice(COUNT - 5, COUNT))):
        padded = mask.clone()
        padded[0, where] = 0
        yield side, given | {"attention_mask": padded}, padded.bool()


def _generated(model, given):
    words = dict(max_new_tokens=6, min_new_tokens=6, do_sample=False, return_dict_in_generate=True, output_logits=True, pad_token_id=0)
    given = {name: value for name, value in given.items() if not name.startswith("decoder_")}
    torch.manual_seed(2)
    return list(model.generate(**given, **words).logits)


def _gradients(model, given):
    model.zero_grad()
    model.train()
    try:
        results = [one for one in outputs(model, given) if one.requires_grad]
        results = [one for one in results if one.dim() != 4] or results  # weights of attention, which "eager" alone gives, have four
        generator = torch.Generator().manual_seed(4)
        loss = sum((one * torch.randn(one.shape, generator=generator)).sum() / one.numel() ** 0.5 for one in results)
        if not results:
            return []
        loss.backward()
        return [torch.cat([parameter.grad.flatten() for parameter in model.parameters() if parameter.grad is not None])]
    finally:
        model.eval()


def _each(model, given):
    """(what, dtype, call, the positions that count) of what is compared."""
    yield "plain", torch.float32, lambda one: outputs(one, given), None
    for side, padded, kept in _paddings(given):
        yield f"padded on the {side}", torch.float32, lambda one, padded=padded: outputs(one, padded), kept
    if model.can_generate() and "input_ids" in given:
        yield "generate", torch.float32, lambda one: _generated(one, given), None
        for _side, padded, _kept in list(_paddings(given))[:1]:
            yield "generate, padded on the left", torch.float32, lambda one, padded=padded: _generated(one, padded), None
    with torch.enable_grad():
        yield "gradients", torch.float32, lambda one: _gradients(one, given), None


def _half(given, dtype):
    return {name: value.to(dtype) if value.is_floating_point() else value for name, value in given.items()}


def attention(model, given):
    """Of sa.attention in a model, in float32, float16 and bfloat16, with padding, a cache, and gradients."""
    said = []
    try:
        model.set_attn_implementation("eager")
        model.set_attn_implementation(OURS)
    except Exception as error:
        return "refused", _words(error)
    with _Counted() as counted:
        try:
            with torch.no_grad():
                outputs(model, given)
        except Exception as error:
            return ("refused" if _is_ours(error) else "FAILED"), _words(error)
        if not counted.calls:
            return "none", "does not call the attention function with these inputs"
        for what, dtype, call, kept in _each(model, given):
            try:
                with torch.set_grad_enabled(what == "gradients"):
                    said.append(_beside(model, what, dtype, call, kept))
            except Different as error:
                return "FAILED", str(error)
            except Exception as error:
                if not _fails_anyway(model, call):
                    return ("refused" if _is_ours(error) else "FAILED"), f"{what}: {_words(error)}"
        for dtype in (torch.float16, torch.bfloat16):
            try:
                other = copy.deepcopy(model).to(dtype)
            except RuntimeError as error:  # a model that keeps what it computed
                said.append(f"{dtype}: {_words(error)[:80]}")
                continue
            try:
                with torch.no_grad():
                    said.append(_beside(other, str(dtype), dtype, lambda one, dtype=dtype: outputs(one, _half(given, dtype))))
            except Different as error:
                return "FAILED", str(error)
            except Exception as error:
                if not _fails_anyway(other, lambda one, dtype=dtype: outputs(one, _half(given, dtype))):
                    return ("refused" if _is_ours(error) else "FAILED"), f"{dtype}: {_words(error)}"
    return "equal", "; ".join(filter(None, said))


def _fails_anyway(model, call):
    """Whether "eager" fails, too: then there is nothing to compare with."""
    try:
        _with(model, "eager", call)
    except Exception:
        return True
    return False
