"""A language model whose weights and whose attention are both block-sparse: cut from a dense one, trained on, saved in three ways and loaded.

A small Llama of Hugging Face transformers learns the bytes of Python's language reference. Then its feed-forward layers keep a share of their blocks
(sa.to_block_sparse), and its attention sees the nearest tokens and one of each stride (sa.BlockMask.strided, given to sa.set_block_mask): the same model class,
no code of the model changed. It is trained a little more, and saved:

- torch.save of its state_dict, and a safetensors file of the same tensors: loaded into a model that was made block-sparse the same way; which blocks are kept
  comes from the file.
- save_pretrained: config.json names the block-sparse layers, and from_pretrained makes them. The mask is no part of the weights: its two numbers are kept in
  config.json as a setting of the model, from which `attend` makes the mask for any length.

All that is loaded must give the same logits, bit by bit, and write the same text with a cache. Needs transformers.

    python examples/python/mixture.py
"""

import functools
import pathlib
import pydoc_data.topics
import tempfile

import torch
import torch.nn.functional as F  # noqa: N812
from safetensors.torch import load_file, save_file
from transformers import LlamaConfig, LlamaForCausalLM, logging

import shared
import sparse_autotune as sa


@functools.lru_cache(maxsize=64)
def mask_of(queries, keys, stride, local, block, device):
    return sa.BlockMask.strided(queries, stride, local, block, keys, causal="bottom_right", device=device)


def attend(model):
    """Gives the model the mask that its config tells of, at every length."""
    setting = model.config.block_mask

    def mask(module, query, key):
        return mask_of(query.shape[2], key.shape[2], setting["stride"], setting["local"], setting["block"], query.device)

    model.set_attn_implementation("sparse_autotune")
    sa.set_block_mask(model, mask)
    return model


def config_of(options):
    return LlamaConfig(
        vocab_size=256,
        hidden_size=options.width,
        intermediate_size=4 * options.width,
        num_hidden_layers=options.layers,
        num_attention_heads=options.heads,
        num_key_value_heads=options.heads // 2,
        max_position_embeddings=options.tokens,
        eos_token_id=None,
        pad_token_id=None,
    )


def sparse_weights(model, options):
    return sa.to_block_sparse(model, options.density, options.block, filter=lambda name, _: "mlp" in name)


class Text:
    """Bytes of the topics of Python's language reference, as its help() knows it; the last tenth is not trained on."""

    def __init__(self, options):
        text = torch.frombuffer(bytearray("\n".join(pydoc_data.topics.topics.values()).encode()), dtype=torch.uint8).long()
        self.trained, self.held = text[: len(text) * 9 // 10], text[len(text) * 9 // 10 :]
        self.options, self.generator = options, torch.Generator().manual_seed(options.seed)

    def rows(self):
        at = torch.randint(len(self.trained) - self.options.tokens, (self.options.rows,), generator=self.generator)
        return torch.stack([self.trained[i : i + self.options.tokens] for i in at]).to(self.options.device)

    def held_rows(self):
        count = min(8, len(self.held) // self.options.tokens)
        return self.held[: count * self.options.tokens].view(count, -1).to(self.options.device)


def loss_of(model, rows):
    logits = model(rows, use_cache=False).logits
    return F.cross_entropy(logits[:, :-1].flatten(0, 1).float(), rows[:, 1:].flatten())


def train(model, text, steps):
    optimiser = torch.optim.AdamW(model.train().parameters(), lr=1e-3)
    losses = []
    for _ in range(steps):
        optimiser.zero_grad()
        loss = loss_of(model, text.rows())
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    model.eval()
    return losses


@torch.no_grad()
def held_loss(model, text):
    return loss_of(model, text.held_rows()).item()


def write(model, options, start=b"The "):
    """What the model writes, bytes drawn by its logits, with a cache."""
    torch.manual_seed(options.seed)
    ids = torch.frombuffer(bytearray(start), dtype=torch.uint8).long()[None].to(options.device)
    return bytes(model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=24, do_sample=True)[0].tolist())


def loaded(model, options, folder):
    """{name: (model, bytes of the files)} of each way to save and load."""

    def empty():
        """A model of other weights, block-sparse in the same layers; its patterns are others, too."""
        config = config_of(options)
        config.block_mask = model.config.block_mask
        return attend(sparse_weights(LlamaForCausalLM(config), options).to(options.device).eval())

    state = {name: tensor.contiguous() for name, tensor in model.state_dict().items()}
    torch.save(state, folder / "state.pt")
    by_state = empty()
    by_state.load_state_dict(torch.load(folder / "state.pt", map_location=options.device, weights_only=True))

    save_file(state, folder / "state.safetensors")
    by_file = empty()
    by_file.load_state_dict(load_file(folder / "state.safetensors", device=str(options.device)))

    model.save_pretrained(folder / "pretrained")
    by_pretrained = attend(LlamaForCausalLM.from_pretrained(folder / "pretrained").to(options.device).eval())
    return {
        "state_dict": (by_state, (folder / "state.pt").stat().st_size),
        "safetensors": (by_file, (folder / "state.safetensors").stat().st_size),
        "save_pretrained": (by_pretrained, sum(file.stat().st_size for file in (folder / "pretrained").iterdir())),
    }


def speed(models, text, options):
    """{name: (ms of a forward pass, ms of one with gradients)}."""
    rows = text.rows()

    @torch.no_grad()
    def forward(model):
        return loss_of(model, rows)

    def training(model):
        model.zero_grad()
        loss_of(model, rows).backward()

    rounds = 3 if options.small else 7
    found = [
        shared.times({name: lambda model=model, call=call: call(model) for name, model in models.items()}, rounds, options.device)
        for call in (forward, training)
    ]
    return {name: tuple(times[name] for times in found) for name in models}


def draw(model, rows, losses, options):
    drawn, (left, middle, right) = shared.figure(3, 12, 3.4)
    weight = model.model.layers[0].mlp.down_proj.to_dense().weight.detach().abs()
    left.imshow(F.max_pool2d(weight[None].float(), 4)[0].cpu().numpy() > 0, cmap="Blues", vmax=2, interpolation="nearest", aspect="auto")
    left.set(title="blocks of a layer's weight", xticks=[], yticks=[])
    setting = model.config.block_mask
    pairs = mask_of(options.tokens, options.tokens, setting["stride"], setting["local"], setting["block"], torch.device("cpu")).to_pairs()[0, 0]
    middle.imshow(F.max_pool2d(pairs[None].float(), 4)[0].numpy(), cmap="Blues", vmax=2, interpolation="nearest")
    middle.set(title="what each token sees", xlabel="key", ylabel="query", xticks=[], yticks=[])
    for name, curve in losses.items():
        right.plot(curve, label=name)
    right.set(title="loss of a byte", xlabel="step")
    right.legend()
    return drawn


def main(arguments=None):
    parser = shared.parser(__doc__)
    parser.add_argument("--tokens", type=int, default=512, help="of a row")
    parser.add_argument("--rows", type=int, default=4, help="of a step")
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--density", type=float, default=0.3, help="share of the feed-forward layers' blocks that is kept")
    parser.add_argument("--block", type=int, default=32)
    parser.add_argument("--stride", type=int, default=64, help="of which each token sees the last")
    parser.add_argument("--local", type=int, default=64, help="nearest tokens that each token sees")
    parser.add_argument("--steps", type=int, default=30, help="of the dense model, and of the block-sparse one")
    options = shared.parse(parser, arguments)
    if options.small:
        options.tokens, options.rows, options.width, options.block, options.steps = 128, 2, 64, 16, 6
        options.stride, options.local = 32, 32
    if options.heads % 2:
        parser.error("--heads: must be even, two heads share keys")
    sa.register_with_transformers()
    logging.disable_progress_bar()

    text = Text(options)
    dense = LlamaForCausalLM(config_of(options)).to(options.device)
    losses = {"dense": train(dense, text, options.steps)}
    table = [{"model": "dense", "loss, held out": held_loss(dense, text)}]
    start = {name: tensor.clone() for name, tensor in dense.state_dict().items()}

    model = LlamaForCausalLM(config_of(options)).to(options.device)
    model.load_state_dict(start)
    sparse_weights(model, options)
    table.append({"model": "block-sparse weights, cut", "loss, held out": held_loss(model.eval(), text)})
    model.config.block_mask = {"stride": options.stride, "local": options.local, "block": options.block}
    attend(model)
    table.append({"model": "and block-sparse attention", "loss, held out": held_loss(model, text)})
    losses["block-sparse, after it"] = train(model, text, options.steps)
    table.append({"model": "and trained on", "loss, held out": held_loss(model, text)})
    losses["dense, trained on"] = train(dense, text, options.steps)
    table.append({"model": "dense, trained on as long", "loss, held out": held_loss(dense, text)})
    shared.table(table)

    saved = []
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        rows = text.held_rows()
        logits, written = model(rows).logits, write(model, options)
        for name, (other, size) in loaded(model, options, pathlib.Path(folder)).items():
            same = torch.equal(other(rows).logits, logits)
            saved.append({"saved by": name, "MB": size / 1e6, "same logits": same, "same text": write(other, options) == written})
    weights = sum(tensor.numel() * tensor.element_size() for tensor in start.values()) / 1e6
    shared.table(saved)
    print(f"the dense model's weights: {weights:.3g} MB; what the block-sparse one writes: {written.decode(errors='replace')!r}\n")
    found = speed({"dense": dense, "block-sparse": model}, text, options)
    timed = [{"model": name, "forward ms": times[0], "with gradients ms": times[1]} for name, times in found.items()]
    shared.table(timed)
    drawn = draw(model, rows, losses, options) if options.picture else None
    return shared.finish(options, {"losses": losses, "held out": table, "saved": saved, "dense MB": weights, "speed": timed}, drawn)


if __name__ == "__main__":
    main()
