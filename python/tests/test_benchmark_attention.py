"""sa.benchmark_attention: who takes part, whose result is right, and what the report says."""

import json

import pytest
import torch

import sparse_autotune as sa
from sparse_autotune import _race


def operands(queries=70, keys=90, heads=4, heads_kv=2, batch=2, depth=16, depth_v=8, dtype=torch.float32):
    sizes = (batch, heads, queries, depth), (batch, heads_kv, keys, depth), (batch, heads_kv, keys, depth_v)
    return [torch.randn(*size, dtype=torch.float64).to(dtype) for size in sizes]


def raced(*given, peers="pytorch_sdpa", rounds=3, **words):
    return sa.benchmark_attention(*given, peers=peers, rounds=rounds, **words)


def lengths(*numbers):
    return torch.tensor(numbers, dtype=torch.int32)


def some_mask(queries=70, keys=90, heads=1, batch=1, block=16):
    return sa.BlockMask.from_pairs((torch.rand(batch, heads, queries, keys) < 0.5) & (torch.rand(batch, heads, 1, keys) < 0.9), block)


BANDS = [
    dict(),
    dict(causal="top_left"),
    dict(causal="bottom_right"),
    dict(causal="bottom_right", window=9, sinks=3),
    dict(window=(5, 4), diagonal="top_left"),
    dict(window=(None, 4), diagonal="bottom_right"),
    dict(causal="top_left", lengths=lengths(33, 90)),
    dict(causal="bottom_right", window=9, lengths=lengths(70, 5)),
    dict(lengths=lengths(0, 7)),
    dict(scale=0.7),
]


@pytest.mark.parametrize("words", BANDS, ids=str)
def test_all_agree(words, dtype):
    """The peers with each other, the formula and sa.attention; the count of pairs with that of a dense mask."""
    for mask in (None, some_mask(), some_mask(heads=2), some_mask(heads=4, batch=2)):
        report = raced(*operands(dtype=dtype), mask=mask, **words)
        for name in ("sparse_autotune", "pytorch_sdpa"):
            row = report[name]
            assert row["status"] == "ok" and row["why"] is None and row["error"] <= row["tolerance"], (name, row["why"])
            assert row["median_us"] > 0 and row["spread_us"] >= 0 and len(row["samples_us"]) == 3
        fastest = min(report.candidates, key=lambda row: row["median_us"])
        assert report.chosen == report.choice.split()[0] == fastest["name"]


def test_layouts_and_kinds_of_masks():
    q, k, v = operands(queries=96, keys=96)
    turned = [t.transpose(1, 2).contiguous() for t in (q, k, v)]
    assert raced(*turned, layout="bshd", causal=True)["pytorch_sdpa"]["status"] == "ok"
    matrix = sa.BSR.from_dense(torch.randn(96, 96), block=16, density=0.4)
    report = raced(q, k, v, mask=matrix.to_torch(), causal=True)
    assert report["sparse_autotune"]["status"] == report["pytorch_sdpa"]["status"] == "ok"
    assert report["pytorch_sdpa"]["params"] == "DENSE_MASK=1" and report.problem["nnzb"] == matrix.nnzb
    assert raced(q, k, v, causal=True)["pytorch_sdpa"]["params"] == raced(q, k, v)["pytorch_sdpa"]["params"] == ""


def test_counts():
    q, k, v = operands()
    mask = some_mask(heads=2)
    for words in BANDS:
        p = _race._problem_of(q, k, v, "bhsd", dict.fromkeys(["mask", "causal", "window", "diagonal", "scale", "lengths"]) | dict(sinks=0, softcap=0) | words)
        assert p.count() == p.sees(torch.arange(70), None).expand(2, 4, -1, -1).sum()
    report = raced(q, k, v, mask=mask)
    seen = mask.to_pairs().sum().item() * 2 * 2
    row = report["sparse_autotune"]
    assert row["tflops"] == pytest.approx(2 * seen * 24 / row["median_us"] * 1e-6)
    assert row["dense_equivalent_tflops"] == pytest.approx(2 * 2 * 4 * 70 * 90 * 24 / row["median_us"] * 1e-6)


def test_flex_attention():
    """Compiled, which takes seconds: a mask with tiles, a window, lengths and a soft cap at once."""
    mask = some_mask(128, 128, heads=2, block=32)
    words = dict(mask=mask, causal=True, window=50, softcap=2.0)
    report = raced(*operands(128, 128, depth_v=16), peers=None, **words)
    assert report["flex_attention"]["status"] == "ok" and report["flex_attention"]["median_us"] > 0
    assert "softcap: it has none" in report["pytorch_sdpa"]["why"] and "CUDA" in report["flash_attention_4"]["why"]
    text = str(report)
    assert "pytorch_sdpa: softcap: it has none" in text and "soft cap" in text and "window 50" in text and "The fastest of the others, flex_attention" in text


def test_backward():
    for words in (dict(causal="top_left"), dict(mask=some_mask(heads=2), causal="bottom_right", window=30)):
        report = raced(*operands(), backward=True, peers=None, **words)
        for name in ("sparse_autotune", "pytorch_sdpa"):
            row = report[name]
            assert row["status"] == "ok" and row["error"] <= row["tolerance"], row["why"]
        assert report.problem["backward"] is True and "backward" in report["flex_attention"]["why"].lower()
        assert "forward and backward" in str(report) and "flex_attention: " in str(report)
    with torch.no_grad():  # what surrounds the call has no influence
        assert raced(*operands(), backward=True)["pytorch_sdpa"]["status"] == "ok"


def test_gradients_that_are_wrong(monkeypatch):
    for part in range(3):

        def crooked(p, backward, part=part):
            def forward(*given):
                given = [t * 0.9 + t.detach() * 0.1 if i == part else t for i, t in enumerate(given)]  # the value is right, its gradient is not
                return torch.nn.functional.scaled_dot_product_attention(*given, enable_gqa=True)

            return forward, ""

        monkeypatch.setitem(_race._MAKERS, "pytorch_sdpa", crooked)
        row = raced(*operands(), backward=True)["pytorch_sdpa"]
        assert row["status"] == "wrong" and "more than" in row["why"]


def test_wrong_results_win_nothing(monkeypatch):
    monkeypatch.setitem(_race._MAKERS, "pytorch_sdpa", lambda p, backward: (lambda q, k, v: v.new_zeros(*q.shape[:3], v.shape[3]), ""))
    report = raced(*operands())
    row = report["pytorch_sdpa"]
    assert row["status"] == "wrong" and "off by 1, more than 2e-05" in row["why"] and report.chosen == "sparse_autotune"
    assert "wrong: off by 1" in str(report)


def test_report(tmp_path):
    report = raced(*operands(), mask=some_mask(), rounds=4)
    result = json.loads(json.dumps(report.to_dict()))
    assert result["schema"] == 1 and result["device"]["kind"] == "cpu" and result["device"]["threads"] == torch.get_num_threads()
    (only,) = result["results"]
    assert only["problem"]["op"] == "attention" and only["problem"]["heads_kv"] == 2 and only["problem"]["cache"] == "warm"
    assert only["candidates"][0]["ratios"] and only["chosen"] == report.chosen
    text = str(report)
    assert "70 queries on 90 keys" in text and "A query sees" in text and "x dense is: pytorch_sdpa DENSE_MASK=1" in text
    assert "<table>" in report._repr_html_()
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    axes = report.plot()
    assert len(axes.patches) == 2
    axes.figure.savefig(tmp_path / "race.png")
    plt.close("all")


def test_what_flash_attention_4_is_given():
    q, k, v = operands(96, 96)
    nothing = dict.fromkeys(["mask", "causal", "window", "diagonal", "lengths"]) | dict(sinks=0, softcap=0.0, scale=0.5)

    def words_of(given=(q, k, v), **words):
        return _race._fa4_words(_race._problem_of(*given, "bhsd", nothing | words))

    assert words_of(causal=True) == dict(softmax_scale=0.5, causal=True)
    assert words_of(causal=True, window=9, softcap=3.0) == dict(softmax_scale=0.5, causal=True, window_size=(8, 0), softcap=3.0)
    assert words_of(window=(9, 4))["window_size"] == (8, 3) and words_of(window=(None, 4))["window_size"] == (None, 3)
    for words, why in (
        (dict(lengths=lengths(3, 4)), "lengths"),
        (dict(causal=True, window=9, sinks=1), "sinks"),
        (dict(mask=some_mask(96, 96)), "tiles"),
        (dict(given=operands(), causal="top_left"), "bottom_right only"),
    ):
        with pytest.raises(_race._Cannot, match=why):
            words_of(**words)
    dense = torch.rand(1, 2, 6, 6) < 0.4
    mask = sa.BlockMask.from_dense(dense, 16)
    counts, indices = _race._lists(_race._problem_of(q, k, v, "bhsd", nothing | dict(mask=mask)), mask)
    assert counts.shape == (2, 4, 6) and torch.equal(counts, dense.sum(-1).repeat_interleave(2, 1).expand(2, -1, -1))
    for item, head, row in torch.cartesian_prod(*(torch.arange(n) for n in counts.shape)):
        assert indices[item, head, row, : counts[item, head, row]].tolist() == dense[0, head // 2, row].nonzero()[:, 0].tolist()


@pytest.mark.parametrize(
    "words,error,said",
    [
        (dict(peers="flash"), ValueError, "peers: 'flash' is none of pytorch_sdpa, flex_attention, flash_attention_4"),
        (dict(rounds=0), ValueError, "rounds: must be from 1 to 100000, not 0"),
        (dict(rounds=10**6), ValueError, "rounds: must be from 1 to 100000, not 1000000"),
        (dict(rounds="3"), TypeError, "rounds: must be a whole number"),
        (dict(causal=True), ValueError, "causal: True with 70 queries and 90 keys"),
        (dict(mask=sa.BlockMask.causal(70, 16)), ValueError, "mask: is of 70 x 70"),
        (dict(mask=torch.ones(70, 90)), TypeError, "mask: must be"),
        (dict(layout="sbhd"), ValueError, "layout: must be"),
    ],
)
def test_wrong_words(words, error, said):
    with pytest.raises(error, match=said):
        raced(*operands(), **words)


def test_meta_and_large_masks(monkeypatch):
    with pytest.raises(ValueError, match="q: is on the device meta"):
        raced(*(t.to("meta") for t in operands()))
    monkeypatch.setattr(_race, "_MOST_PAIRS", 100)
    assert "mask: would be a dense one of 6300 entries; the limit is 100" in raced(*operands(), causal="bottom_right")["pytorch_sdpa"]["why"]
