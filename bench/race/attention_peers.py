"""Who else computes a case of bench/attention_gpu.py: cuDNN through PyTorch, FlashAttention-4's Hopper kernels, FlexAttention. A peer is a function of the case, Q, K and V as (item,
head, row, column), the mask's lists and the arrays of K and V in pages, which makes a call without arguments that answers with O in the same order. What it needs it imports then, so that one that is not
installed fails alone."""
import importlib.metadata
import math

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel


def cudnn(c, q, k, v, lists, paged):
    def call():
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=bool(c["causal"]), enable_gqa=c["heads"] != c["heads_kv"])
    return call


def packed(c, rows, width, device):
    """Rows of block columns, of all lists one below the other, as counts (1, heads, block rows) and indices (1, heads, block rows, width)."""
    counts = torch.tensor([len(row) for row in rows], dtype=torch.int32)
    indices = torch.zeros(len(rows), width, dtype=torch.int32)
    for to, row in zip(indices, rows):
        to[:len(row)] = torch.tensor(row, dtype=torch.int32)
    down = -(-c["queries"] // (c["block"] or 128))
    shared = c["heads"] // c["lists"] if c["lists"] else 1 # heads that share a list; without lists there is one for all
    return tuple(x.unflatten(0, (-1, down)).repeat_interleave(shared, 0).unsqueeze(0).to(device) for x in (counts, indices))


def fa4(c, q, k, v, lists, paged):
    from flash_attn.cute import flash_attn_func, flash_attn_varlen_func
    from flash_attn.cute.block_sparsity import BlockSparseTensorsTorch
    q, k, v = (x.transpose(1, 2).contiguous() for x in (q, k, v)) # its own order
    options = {"causal": bool(c["causal"])}
    if c["window"]:
        options["window_size"] = (c["window"] - 1, 0)
    if lists:
        full = packed(c, lists, max(map(len, lists)), q.device)
        options["block_sparse_tensors"] = BlockSparseTensorsTorch(torch.zeros_like(full[0]), torch.zeros_like(full[1][..., :1]), *full, block_size=(c["block"], c["block"]))

    if c["documents"]:
        ends = torch.tensor([0, *c["documents"]]).cumsum(0).int().to(q.device)
        q, k, v = q[0], k[0], v[0]
        options.update(cu_seqlens_q=ends, cu_seqlens_k=ends, max_seqlen_q=max(c["documents"]), max_seqlen_k=max(c["documents"]))

    def call():
        with torch.no_grad():
            if c["documents"]:
                return flash_attn_varlen_func(q, k, v, **options)[0].transpose(0, 1).unsqueeze(0)
            if paged:
                return flash_attn_varlen_func(q, paged["k"], paged["v"], page_table=paged["page_table"].view(c["batch"], -1), seqused_k=paged["key_ends"], **options)[0].transpose(1, 2)
            return flash_attn_func(q, k, v, **options)[0].transpose(1, 2)
    return call


def band_lists(c, block):
    """Of causal masks and windows, for each block row: the blocks that some of its queries see in part, and those that all of its queries see whole."""
    partial, full = [], []
    for first in range(0, c["queries"], block):
        last = first + block - 1
        begin, whole = (max(0, row - c["window"] + 1) if c["window"] else 0 for row in (first, last)) # the first key of the first query, and of the last
        inside = [j for j in range(-(-whole // block), first // block)]
        full.append(inside)
        partial.append([j for j in range(begin // block, last // block + 1) if j not in inside])
    return partial, full


def flex(c, q, k, v, lists, paged):
    from torch.nn.attention.flex_attention import BlockMask, flex_attention
    import torch._inductor.select_algorithm as select
    select.PRINT_AUTOTUNE = False
    torch._dynamo.reset()
    attend = torch.compile(flex_attention, mode="max-autotune-no-cudagraphs", dynamic=False)
    options, block, lengths, window = {"enable_gqa": c["heads"] != c["heads_kv"]}, c["block"] or 128, (c["queries"], c["keys"]), c["window"] or c["keys"]

    def in_band(item, head, query, key):
        return (key <= query) & (key > query - window)
    if lists:
        full = packed(c, lists, c["keys"] // block, q.device)
        options["block_mask"] = BlockMask.from_kv_blocks(torch.zeros_like(full[0]), torch.zeros_like(full[1]), *full, BLOCK_SIZE=block, seq_lengths=lengths)
    elif c["causal"]:
        made = [x for rows in band_lists(c, block) for x in packed(c, rows, -(-c["keys"] // block), q.device)]
        options["block_mask"] = BlockMask.from_kv_blocks(*made, BLOCK_SIZE=block, mask_mod=in_band, seq_lengths=lengths)

    def call():
        with torch.no_grad():
            return attend(q, k, v, **options)
    return call


PEERS = {"cudnn": cudnn, "fa4": fa4, "flex": flex, "own": None}


def takes_part(name, c):
    """cuDNN takes no masks of blocks, windows or packed sequences through PyTorch. `own` is ours without cuDNN, where that decodes as fast."""
    return c["queries"] == 1 if name == "own" else name != "cudnn" or not (c["block"] or c["window"] or c["documents"])


def version(name):
    def installed(*packages):
        try:
            return ", ".join(f"{package} {importlib.metadata.version(package)}" for package in packages)
        except importlib.metadata.PackageNotFoundError as missing:
            return f"{missing.name} is not installed"
    return {"cudnn": f"PyTorch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}", "fa4": installed("flash-attn-4", "nvidia-cutlass-dsl", "quack-kernels"),
            "bsa": installed("nvidia-cudnn-frontend", "nvidia-cutlass-dsl"), "own": "this library without cudnn_attention", "flex": f"PyTorch {torch.__version__}, {installed('triton')}"}[name]


def kinds(c):
    """The groups of a case: those with a depth are of whole and causal attention at 64 and 128."""
    if c["block"] or c["window"] or c["queries"] == 1 or c["documents"]:
        return ("all", "blocks" if c["block"] else "window" if c["window"] else "documents" if c["documents"] else "decode")
    return ("all", "dense", *(("d64 and d128", f"{'causal' if c['causal'] else 'full'} d{c['depth']}") if c["depth"] in (64, 128) and c["queries"] >= 4096 else ()))


def bars(results):
    """Of each peer and of the best of them, by kind of case: how many cases, the geometric mean of its time over ours, the least."""
    found = {}
    for r in results:
        ratios = {name: ratio for name, ratio in r.get("ratios", {}).items() if name != "own"}
        for name, ratio in [*ratios.items(), *([("best", min(ratios.values()))] if ratios else [])]:
            for group in kinds(r):
                found.setdefault(name, {}).setdefault(group, []).append(ratio)
    return {name: {group: {"cases": len(some), "geometric_mean": round(math.exp(sum(map(math.log, some)) / len(some)), 4), "least": min(some)} for group, some in groups.items()}
            for name, groups in found.items()}
