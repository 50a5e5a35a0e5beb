"""What bench/python/layers.py measured: layers of the Python package beside PyTorch's, and what they had to reach."""
from page.results import digits
from page.tables import origins, table

NOTE = ("`kernel`: a graph with twenty calls, per call, so that nothing waits for the host; `graph`: a graph with one call, whose launch the device waits for each time. Calls follow one another on the same data; times over "
        "another's are medians over the paired rounds. An MLP is down(silu(gate(x)) * up(x)), what is elementwise in place on both sides.")


def row_of(case, name):
    return next((row for row in case["rows"] if row["name"] == name), None)


def time_of(case, name):
    row = row_of(case, name)
    return row["median_us"] if row else None


def over(case, name, other):
    row = row_of(case, name)
    return row["over"].get(other) if row else None


def chosen(cases, what, **wanted):
    """Cases of a kind with one of the values wanted of each fact."""
    return [c for c in cases if c["what"] == what and all(c[key] in values for key, values in wanted.items())]


def at(case):
    return f"block {case['block']}, {case['density'] * 100:g} %, {case['tokens']} tokens"


def eager_bars(cases):
    """A call on CUDA: the kernel and what the host adds."""
    for c in chosen(cases, "forward", tokens=(512,)):
        if over(c, "SparseLinear", "kernel"):
            time, ratio = time_of(c, "SparseLinear"), over(c, "SparseLinear", "kernel")
            yield ["calls in a row", at(c), "<= 20 us or 1.3x the kernel", f"{digits(time)} us, {digits(ratio)}x", time <= 20 or ratio <= 1.3]
    for c in chosen(cases, "forward", tokens=(1, 16, 64)):
        time = time_of(c, "SparseLinear")
        yield ["calls in a row", at(c), "<= 25 us", f"{digits(time)} us", time <= 25]
    for c in chosen(cases, "forward", tokens=(512, 4096)):
        for name, calls in (("graph", "one call"), ("graph of 8", "eight calls")):
            if over(c, name, "kernel"):
                yield [f"a captured graph of {calls}", at(c), "<= 1.05x the kernel", f"{digits(over(c, name, 'kernel'), 4)}x", over(c, name, "kernel") <= 1.05]


def faster(cases, what, ours, dense, least, name):
    """Over the dense layer's time; least: of a case, None where nothing was asked."""
    for c in chosen(cases, what):
        must, ratio = least(c), over(c, ours, dense)
        if must and ratio:
            yield [name, at(c), f">= {must:g}x dense", f"{digits(1 / ratio)}x", 1 / ratio >= must]


def host_bars(cases):
    for c in chosen(cases, "host"):
        for name, most in (("sa.matmul", 8), ("SparseLinear", 20), ("SparseLinear, forward and backward", 140)):
            time = time_of(c, name)
            dense = time_of(c, "nn.Linear, forward and backward" if "backward" in name else "F.linear")
            yield [f"host cost, {name}", "a product of 16 x 16", f"<= {most} us", f"{digits(time)} us ({'nn.Linear' if 'backward' in name else 'F.linear'} {digits(dense)} us)", time <= most]
        for name in ("sa.attention", "sa.scaled_dot_product_attention"):
            if over(c, name, "F.scaled_dot_product_attention"):
                theirs = time_of(c, "F.scaled_dot_product_attention")
                added = theirs * (over(c, name, "F.scaled_dot_product_attention") - 1)
                yield [f"host cost, {name}", "one query, one key", "<= F.scaled_dot_product_attention + 2 us", f"{digits(time_of(c, name))} us ({digits(theirs)} us)", added <= 2]


def bars(document):
    cases, cuda = document["layers"], document["device"]["kind"] == "cuda"
    rows = list(host_bars(cases))
    if not cuda:
        rows += faster(cases, "forward", "SparseLinear", "nn.Linear", lambda _: 3, "forward")
        rows += faster(cases, "forward", "SparseLinear", "PyTorch BSR", lambda _: 3, "forward, beside PyTorch's BSR")
        return rows
    rows += eager_bars(cases)
    rows += faster(cases, "training", "SparseLinear", "nn.Linear", lambda c: {64: 4, 128: 5}.get(c["block"]), "forward and backward")
    rows += faster(cases, "mlp", "sparse", "dense", lambda c: {0.25: 2, 0.1: 4}.get(c["density"]), "MLP")
    return rows


def times_table(cases):
    rows = []
    for c in cases:
        first = c["rows"][0]["name"]
        for row in c["rows"]:
            ratio = row["over"].get(first)
            rows.append([c["case"], row["name"], f"{digits(row['median_us'], 4)} ± {digits(row['spread_us'], 2)}", "" if not ratio else f"{digits(1 / ratio)}x {first}"])
    return table(["case", "what", "us", "speed"], rows)


def lines_of(files):
    """Chapters of the files [(stem, document)]."""
    lines = []
    for stem, document in files:
        met = [row[:-1] + ["yes" if row[-1] else "**no**"] for row in bars(document)]
        lines += [f"### Layers of the Python package: {stem}", "", NOTE, ""] + table(["", "at", "must be", "is", "met"], met) + [""]
        lines += times_table(document["layers"]) + [""] + origins([(stem, document)])
    return lines
