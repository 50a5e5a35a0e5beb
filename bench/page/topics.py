"""One table, or some, for each topic of bench/peers.py. What has no topic is a race beside peers."""
import math

from page.results import digits, ours_of, ratio_over_ours
from page.tables import contestants, means, ordered, race_tables, refusals, table, traits, where

TITLES = {"peers": "Beside peers", "decode": "A linear layer with few rows of x: y[T, 14336] = x[T, 4096] W^T", "kinds": "Types and layouts",
          "patterns": "Patterns with as many blocks", "finite": "Without `assume_finite`", "sustained": "One contestant at a time for a tenth of a second",
          "sddmm": "SDDMM: X[M, K] Y[K, N] at the stored blocks", "layer": "The three products of a layer", "experts": "A mixture of experts",
          "transposed": "A transposed", "small": "Small blocks, and few columns"}
BASES = {"kinds": "f16 with row-major B and D", "patterns": "the uniform pattern", "finite": "the same with `assume_finite`", "transposed": "the product with A as it is"}
NOTES = {
    "sddmm": "`cublas_dense` computes all of X Y, `torch_sampled` is PyTorch's Triton kernel `torch.sparse._triton_ops.sampled_addmm`.",
    "layer": "y = x W^T with a sparse W[14336, 4096] and 8192 tokens: the forward product is W x^T, the gradient of the input W^T dy^T (A transposed), the gradient "
             "of the values the SDDMM dy^T x at W's blocks; activations have a row for each token. See [training.md](../training.md).",
    "experts": "Tokens sorted by expert. `up` is the SDDMM X W1 at the blocks where tokens meet their experts, `down` the SpMM of that block-diagonal matrix with W2, "
               "both as one product for all experts; M counts the padding of each expert's tokens to whole block rows. Rates count what the tokens themselves take. "
               "`cublas_each` is one cuBLAS call for each expert, all in one graph, `grouped_mm` PyTorch's `torch._grouped_mm`; neither has padding. See "
               "[training.md](../training.md)."}


def topic_of(result):
    return result.get("topic") or "peers"


def of_topic(group, topic):
    """The same files with the results of one topic only."""
    chosen = [(stem, dict(document, results=[r for r in document["results"] if topic_of(r) == topic])) for stem, document in group]
    return [(stem, document) for stem, document in chosen if document["results"]]


def topics_of(group):
    found = {topic_of(r) for _, document in group for r in document["results"]}
    return sorted(found, key=lambda topic: (list(TITLES).index(topic) if topic in TITLES else len(TITLES), topic))


def group_lines(group, scale, unit):
    """All tables of a group of files."""
    lines, topics = [], topics_of(group)
    for topic in topics:
        members = of_topic(group, topic)
        lines += [f"#### {TITLES.get(topic, topic)}", ""] if len(topics) > 1 else []
        if topic in BASES:
            lines += variant_table(members, BASES[topic], scale, unit)
        elif topic == "sustained":
            lines += sustained_table(members, scale, unit)
        else:
            lines += ([NOTES[topic], ""] if topic in NOTES else []) + race_tables(members, scale, unit, topic != "experts") + means(members)
        lines.append("")
    return lines[:-1]


def speed(result, candidate):
    """Of a variant: the time of sparsek on the row's own problem over the variant's, the median of the paired rounds."""
    return candidate["ratios"].get("sparsek", {}).get("median")


def variant_cell(result, candidate, scale):
    if not candidate["median_us"]:
        return "failed"
    row, base = candidate["params"].split(" ")[0], ours_of(result)["params"].split(" ")[0]
    which = "" if row == base else f", `{row}`"
    return f"{digits(candidate['median_us'], 4)} ({digits(candidate['tflops'] * scale)}{which}) **{digits(speed(result, candidate))}x**"


def variant_table(members, base, scale, unit):
    rows = ordered(members)
    names = [c["name"] for c in max((r["candidates"] for _, _, r in rows), key=len) if c["name"] != "sparsek"]
    alone = len({traits(r["problem"]) for _, _, r in rows}) == 1
    lines = [f"Time in us ({unit} on stored blocks; the kernel, where it is another than in the row's first column). Behind it the speed over {base}, the median of the paired "
             "rounds: above 1, faster. " + (f"All rows but for what a column's head says: {traits(rows[0][2]['problem'])}." if alone else ""), ""]
    body, speeds = [], {name: [] for name in names}
    for _, _, result in rows:
        found, ours = {c["name"]: c for c in result["candidates"]}, ours_of(result)
        line = where(result["problem"], alone) + [f"{digits(ours['median_us'], 4)} ({digits(ours['tflops'] * scale)}, `{ours['params'].split(' ')[0]}`)"]
        for name in names:
            line.append(variant_cell(result, found[name], scale) if name in found else "-")
            if name in found and speed(result, found[name]):
                speeds[name].append(speed(result, found[name]))
        body.append(line)
    for title, figure in (("geometric mean", lambda x: math.exp(sum(map(math.log, x)) / len(x))), ("least", min)):
        body.append([title] + [""] * (len(body[0]) - 1 - len(names)) + [f"{digits(figure(speeds[name]))}x" if speeds[name] else "-" for name in names])
    head = ["M x K x N"] + ([] if alone else ["as"]) + ["block", "density", base] + names
    return lines + table(head, body) + refusals(rows)


def sustained_table(members, scale, unit):
    rows = ordered(members)
    names = ["sparsek"] + contestants(rows)
    lines = ["Above, contestants take turns so fast that all run at one clock. Here each runs alone for a tenth of a second, again in alternated rounds, so that the clock is the one "
             f"that its own power leaves. Time in us ({unit} on stored blocks; its time over sparsek's; SM clock and power of the card as the driver says at the sample's end, the "
             "median; that power is an average over more than the sample):", ""]
    body = []
    for _, _, result in rows:
        found = {c["name"]: c for c in result["candidates"]}
        line = where(result["problem"], False)
        for name in names:
            c = found.get(name)
            if c is None or not c["median_us"]:
                line.append("-" if c is None else "failed")
                continue
            over = ratio_over_ours(result, c)
            load = [f"{digits(c[key], 4)} {unit_of}" for key, unit_of in (("sm_mhz", "MHz"), ("power_w", "W")) if c.get(key)]
            line.append(f"{digits(c['median_us'], 4)} ({digits(c['tflops'] * scale)}{'' if over is None else f', {digits(over)}x'}; {', '.join(load) or 'clock not known'})")
        body.append(line)
    return lines + table(["M x K x N", "as", "block", "density"] + [f"`{name}`" for name in names], body) + refusals(rows)
