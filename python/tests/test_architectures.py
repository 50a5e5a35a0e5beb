"""Some of transformers' architectures, drawn at random, and those that broke before: sweep_architectures.py asks all of them."""

import os
import random

import pytest

transformers = pytest.importorskip("transformers", reason="Hugging Face transformers is not installed: NOTHING of it was tested", exc_type=ImportError)

import small_models  # noqa: E402
import sweep_architectures  # noqa: E402

# Weights named by _init_weights; keys chosen by an indexer; keys added beside the mask; weights joined in the file; masks of one key; data of
# the model's call among the attention function's words.
BROKE = ["t5", "siglip_vision_model", "modernbert", "deepseek_v32", "minimax_m3_vl_text", "deepseek_v4", "molmo2_text", "bert", "lasr_ctc", "glm5_next_text"]
SAMPLE = 8


@pytest.fixture(scope="module")
def answers():
    every = small_models.architectures()
    seed = int(os.environ.get("SPARSEK_TEST_SEED", random.randrange(10**6)))
    names = [name for name in BROKE if name in every]
    names += random.Random(seed).sample(sorted(set(every) - set(names)), SAMPLE)
    return seed, sweep_architectures.sweep({name: every[name] for name in names}, seed, jobs=1, seconds=300)


def test_a_sample_of_architectures(answers):
    seed, said = answers
    wrong = [words for one in said.values() for words in sweep_architectures.failed(one)]
    again = f"python/tests/sweep_architectures.py --seed {seed} --only {','.join(said)}"
    assert not wrong, "\n".join([*wrong, f"again: {again}"])


def test_what_broke_before_is_asked(answers):
    """None of them has become one of which no small model is made."""
    _seed, said = answers
    assert [name for name in BROKE if name in said and "small" in said[name]] == []
    assert all(said[name]["layers"][0] == "equal" for name in BROKE if name in said)


def test_the_table_of_the_page():
    """A command writes it; what stands there is of the form that it writes."""
    text = sweep_architectures.PAGE.read_text()
    inside = text.split(sweep_architectures.BEGIN)[1].split(sweep_architectures.END)[0].strip().split("\n")
    assert inside[0].startswith("transformers ") and inside[0].endswith("architectures:")
    rows = [line.strip("|").split("|") for line in inside[4:]]
    assert inside[2].startswith("| outcome | number | architectures |") and len(rows) >= 3
    assert all(len(row) == 3 and len(row[2].split(",")) == max(1, int(row[1])) for row in rows)
