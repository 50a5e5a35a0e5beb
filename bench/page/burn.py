"""Tables of bench/burn.py's results."""
from .results import digits
from .tables import table


def lines_of(chosen):
    rows = []
    for stem, document in chosen:
        for result in document["results"]:
            problem, measured = result["problem"], result["rows"]
            own, library, dense = (measured.get(name, {}).get("median_us") for name in ("sparse_linear", "library", "burn_linear"))
            rows.append([stem, f"{problem['k']} to {problem['m']} features, {problem['n']} rows, {digits(problem['density'] * 100)} %", str(problem["block_rows"]),
                         digits(own), digits(library), digits(result["over_library_paired"]) if "over_library_paired" in result else "-", digits(dense), digits(dense / own) if dense else "-"])
    return table(["file", "layer", "blocks", "`SparseLinear`, us", "the library's call, us", "over the library, paired", "Burn's `Linear`, us", "times Burn's"], rows)
