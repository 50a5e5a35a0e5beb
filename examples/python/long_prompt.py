"""The first token after a long prompt: a Llama-shaped model of Hugging Face transformers whose attention selects blocks of keys, against full attention.

All of a prompt goes through the model before the first token comes, and attention's work grows with its square. Here each block of queries sees the first
block of keys (the sinks), its neighbours (the window), and those `top_k` blocks further back whose mean key fits its mean query best, a list for each head of
keys. The mask is made anew in every layer from the queries and keys that meet there, on the device, in a function given to sa.set_block_mask. With all blocks
selected the logits must be those of PyTorch's attention.

The weights are random: the times are those of a trained model, and what selection does to the text is not shown. Needs transformers.

    python examples/python/long_prompt.py
    python examples/python/long_prompt.py --device cuda
"""

import torch
from transformers import LlamaConfig, LlamaForCausalLM

import shared
import sparse_autotune as sa

KEPT = 64  # last tokens whose logits are compared


class Selection:
    """Makes a mask for each layer: a function of (module, query, key), as sa.set_block_mask takes it."""

    def __init__(self, block, sinks, window, top_k):
        """block: tokens of a block; the others count blocks. top_k None: all."""
        self.block, self.sinks, self.window, self.top_k = block, sinks, window, top_k
        self.share = None  # of the causal mask's blocks, in the last layer asked

    def means(self, x):
        """[batch, heads, tokens, depth] to [batch, heads, blocks, depth]; a last block that is not full weighs less, which is no harm."""
        missing = -x.shape[2] % self.block
        return torch.nn.functional.pad(x, (0, 0, 0, missing)).unflatten(2, (-1, self.block)).mean(3, dtype=torch.float32)

    def __call__(self, module, query, key):
        if query.shape[2] != key.shape[2]:
            return None  # a token after the prompt: it sees all
        grouped = query.unflatten(1, (key.shape[1], -1)).mean(2)  # heads that share keys share a list
        queries, keys = self.means(grouped), self.means(key)
        blocks = queries.shape[2]
        at = torch.arange(blocks, device=query.device)
        back = at[:, None] - at
        always = (back >= 0) & ((back < self.window) | (at < self.sinks))
        scores = (queries @ keys.mT).masked_fill(always, torch.inf).masked_fill(back < 0, -torch.inf)
        count = blocks if self.top_k is None else min(blocks, self.sinks + self.window + self.top_k)
        mask = sa.BlockMask.from_scores(scores, count, self.block, shape=(query.shape[2], key.shape[2]))
        self.share = sum(min(row + 1, count) for row in range(blocks)) / (blocks * (blocks + 1) / 2)
        return mask


def build(options, tokens):
    config = LlamaConfig(
        vocab_size=options.vocabulary,
        hidden_size=options.heads * options.depth,
        intermediate_size=options.hidden,
        num_hidden_layers=options.layers,
        num_attention_heads=options.heads,
        num_key_value_heads=options.kv_heads,
        head_dim=options.depth,
        max_position_embeddings=tokens + 1,
        rope_parameters={"rope_type": "default", "rope_theta": 500000.0},
    )
    torch.manual_seed(options.seed)
    with torch.device(options.device):
        before = torch.get_default_dtype()
        torch.set_default_dtype(getattr(torch, options.dtype))
        try:
            return LlamaForCausalLM(config).eval()
        finally:
            torch.set_default_dtype(before)


def ways(options):
    """{name: implementation, selection}."""
    return {
        "SDPA": ("sdpa", None),
        "all blocks": ("sparse_autotune", Selection(options.block, options.sinks, options.window, None)),
        "selected": ("sparse_autotune", Selection(options.block, options.sinks, options.window, options.top_k)),
    }


@torch.no_grad()
def prefill(model, way, ids):
    """Logits of the last tokens; the cache is filled, as for the tokens that follow."""
    implementation, selection = way
    model.set_attn_implementation(implementation)
    sa.set_block_mask(model, selection)
    return model(ids, use_cache=True, logits_to_keep=min(KEPT, ids.shape[1])).logits


def difference(made, wanted):
    """The largest, in standard deviations of the logits."""
    return ((made.double() - wanted.double()).abs().max() / wanted.double().std()).item()


def draw(rows, selection, options):
    drawn, (left, right) = shared.figure(2, 9, 3.4)
    blocks = min(64, -(-max(options.tokens) // options.block))
    heads = torch.randn(2, 1, 1, blocks * options.block, 16, generator=torch.Generator().manual_seed(options.seed))
    left.imshow(~(selection(None, *heads).to_dense()[0, 0].tril().bool()), cmap="gray", interpolation="nearest")
    left.set(title="what blocks see, random queries and keys", xlabel="block of keys", ylabel="block of queries")
    for name, style in (("SDPA", "o--"), ("all blocks", "s:"), ("selected", "o-")):
        right.plot([row["tokens"] for row in rows], [row[f"{name} ms"] for row in rows], style, label=name)
    right.set(title="ms to the first token", xlabel="tokens of the prompt", xscale="log", yscale="log")
    right.legend()
    return drawn


def main(arguments=None):
    parser = shared.parser(__doc__)
    parser.add_argument("--tokens", type=int, nargs="+", help="of the prompts (default: 2048 4096, on a GPU 32768 131072)")
    parser.add_argument("--layers", type=int, help="default: 2, on a GPU 8")
    parser.add_argument("--heads", type=int, help="of queries (default: 8, on a GPU 32)")
    parser.add_argument("--kv-heads", type=int, help="of keys and values (default: 2, on a GPU 8)")
    parser.add_argument("--depth", type=int, help="of a head (default: 64, on a GPU 128)")
    parser.add_argument("--hidden", type=int, help="width of the feed-forward layers (default: 1024, on a GPU 14336)")
    parser.add_argument("--vocabulary", type=int, default=32000)
    parser.add_argument("--block", type=int, help="tokens of a block (default: 64, on a GPU 128)")
    parser.add_argument("--sinks", type=int, default=1, help="first blocks that all see")
    parser.add_argument("--window", type=int, default=4, help="blocks up to the own one that a block sees")
    parser.add_argument("--top-k", type=int, help="blocks that are selected besides (default: 4, on a GPU 32)")
    parser.add_argument("--dtype", help="default: float32, on a GPU bfloat16")
    options = shared.parse(parser, arguments)
    large = dict(tokens=[32768, 131072], layers=8, heads=32, kv_heads=8, depth=128, hidden=14336, block=128, top_k=32, dtype="bfloat16")
    usual = dict(tokens=[2048, 4096], layers=2, heads=8, kv_heads=2, depth=64, hidden=1024, block=64, top_k=4, dtype="float32")
    tiny = dict(tokens=[256, 500], layers=2, heads=4, kv_heads=2, depth=16, hidden=64, block=32, top_k=2, dtype="float32")
    shared.fill(options, tiny=tiny, usual=usual, large=large)
    if options.small:
        options.vocabulary, options.window = 512, 2
    sa.register_with_transformers()

    model, rows = build(options, max(options.tokens)), []
    for tokens in options.tokens:
        ids = torch.randint(options.vocabulary, (1, tokens), generator=torch.Generator().manual_seed(options.seed)).to(options.device)
        known = ways(options)
        calls = {name: lambda way=way, ids=ids: prefill(model, way, ids) for name, way in known.items()}
        logits = {name: call() for name, call in calls.items()}
        found = shared.times({name: lambda call=call: call()[0, -1].argmax().item() for name, call in calls.items()}, 3, options.device)
        rows.append(
            {"tokens": tokens, "blocks kept": f"{known['selected'][1].share:.1%}"}
            | {f"{name} ms": time for name, time in found.items()}
            | {"SDPA / selected": found["SDPA"] / found["selected"]}
            | {f"logits apart, {name}": difference(logits[name], logits["SDPA"]) for name in ("all blocks", "selected")}
        )
    print(f"{options.layers} layers, {options.heads} heads and {options.kv_heads} of keys, depth {options.depth}, {options.dtype}\n")
    shared.table(rows)
    drawn = draw(rows, ways(options)["selected"][1], options) if options.picture else None
    sizes = {name: getattr(options, name) for name in (*large, "sinks", "window")}
    return shared.finish(options, {"sizes": sizes, "rows": rows}, drawn)


if __name__ == "__main__":
    main()
