"""Who else computes a case of bench/attention_backward_gpu.py. A peer is a function of the case, Q, K, V, O and its gradient as (item, head, row, column), LSE, and the mask's lists, which makes a call without
arguments that answers with the gradients of Q, K and V in the same order. What it needs it imports then, so that one that is not installed fails alone."""
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from race import attention_peers
from race.attention_peers import packed


def flash(ordered):
    def peer(c, q, k, v, o, lse, grad_o, lists):
        from flash_attn.cute import flash_attn_func
        from flash_attn.cute.block_sparsity import BlockSparseTensorsTorch
        from flash_attn.cute.interface import _flash_attn_bwd
        inputs = tuple(x.transpose(1, 2).contiguous().requires_grad_() for x in (q, k, v)) # its own order
        grad = grad_o.transpose(1, 2).contiguous()
        if lists: # its own autograd takes no lists of its own for the backward pass
            full = packed(c, transposed(c, lists), max(map(len, transposed(c, lists))), q.device)
            tensors = BlockSparseTensorsTorch(torch.zeros_like(full[0]), torch.zeros_like(full[1][..., :1]), *full, block_size=(c["block"], c["block"]))
            out = o.transpose(1, 2).contiguous()

            def call():
                with torch.no_grad():
                    return tuple(x.transpose(1, 2) for x in _flash_attn_bwd(*inputs, out, grad, lse, softmax_scale=c["depth"] ** -0.5, block_sparse_tensors=tensors)[:3])
            return call
        window = (c["window"] - 1, 0) if c["window"] else (None, None)
        out = flash_attn_func(*inputs, causal=bool(c["causal"]) and not c["window"], window_size=window, deterministic=ordered)
        run = backward_of(out[0] if isinstance(out, tuple) else out, inputs, grad)
        return lambda: tuple(x.transpose(1, 2) for x in run())
    return peer


def transposed(c, lists):
    """Of each list's block columns the block rows that have them."""
    down, across = c["queries"] // c["block"], c["keys"] // c["block"]
    made = [[] for _ in range(c["lists"] * across)]
    for row, columns in enumerate(lists):
        for column in columns:
            made[row // down * across + column].append(row % down)
    return made


def backward_of(out, inputs, grad_o):
    def call():
        return torch.autograd.grad(out, inputs, grad_o, retain_graph=True)
    return call


def cudnn(c, q, k, v, o, lse, grad_o, lists):
    inputs = tuple(x.detach().requires_grad_() for x in (q, k, v))
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        out = torch.nn.functional.scaled_dot_product_attention(*inputs, is_causal=bool(c["causal"]), enable_gqa=c["heads"] != c["heads_kv"])
    return backward_of(out, inputs, grad_o)


def bsa(c, q, k, v, o, lse, grad_o, lists):
    from cudnn.block_sparse_attention import block_sparse_attention_backward
    counts, indices = packed(c, lists, max(map(len, lists)), q.device)

    def call():
        made = block_sparse_attention_backward(grad_o, q, k, v, o, lse, indices, q2k_block_nums=counts, sparse_block_size=c["block"], softmax_scale=c["depth"] ** -0.5)
        return made["dq_tensor"], made["dk_tensor"], made["dv_tensor"]
    return call


def flex(c, q, k, v, o, lse, grad_o, lists):
    from torch.nn.attention.flex_attention import BlockMask, flex_attention
    import torch._inductor.select_algorithm as select
    select.PRINT_AUTOTUNE = False
    torch._dynamo.reset()
    attend = torch.compile(flex_attention, mode="max-autotune-no-cudagraphs", dynamic=False)
    inputs, options = tuple(x.detach().requires_grad_() for x in (q, k, v)), {"enable_gqa": c["heads"] != c["heads_kv"]}
    if lists:
        full = packed(c, lists, c["keys"] // c["block"], q.device)
        options["block_mask"] = BlockMask.from_kv_blocks(torch.zeros_like(full[0]), torch.zeros_like(full[1]), *full, BLOCK_SIZE=c["block"], seq_lengths=(c["queries"], c["keys"]))
    return backward_of(attend(*inputs, **options), inputs, grad_o)


PEERS = {"fa4_ordered": flash(True), "fa4": flash(False), "cudnn": cudnn, "bsa": bsa, "flex": flex}


def takes_part(name, c):
    """FlashAttention-4 needs blocks of 128, and an order of its own for those with a fixed order; cuDNN takes no masks of blocks or windows through PyTorch, and its block-sparse attention
    takes blocks of 64 and 128 at depth 128, where each head of Q has its own of K."""
    if name.startswith("fa4"):
        return c["block"] in (0, 128) and not (c["block"] and name == "fa4_ordered")
    if name == "bsa":
        return c["block"] in (64, 128) and c["depth"] == c["depth_v"] == 128 and c["heads"] == c["heads_kv"] and not c["causal"] and not c["window"]
    return name != "cudnn" or not (c["block"] or c["window"])


def version(name):
    return attention_peers.version("fa4" if name.startswith("fa4") else name)
