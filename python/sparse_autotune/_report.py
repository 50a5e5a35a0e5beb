"""What tuning found: Report and Inspection, as text, as HTML, as a picture, as a dict in the shape of bench's JSON."""

from __future__ import annotations

import dataclasses
import datetime
import html
import re
import statistics
from typing import Any

_BAR = 18
_DENSE = re.compile(r" Dense: \S[^()]* at \S+ us \([\d.]+x (?:as long|the speed)\)\.")  # in the library's summary, of its own rows


def _number(value: float | None, digits: int = 3) -> str:
    if value is None:
        return "-"
    if value >= 1000:
        return f"{value:.0f}"
    return f"{value:.{digits}g}"


@dataclasses.dataclass(frozen=True)
class Inspection:
    """Structure of a pattern; sizes in elements, grid and longest_row in blocks, the rest as the library's spk_pattern_info says."""

    rows: int
    cols: int
    block_rows: int
    block_cols: int
    grid_rows: int
    grid_cols: int
    nnzb: int
    density: float
    empty_rows: int
    longest_row: int
    row_spread: float
    row_overlap: float
    bandwidth: float

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    def __str__(self) -> str:
        return (
            f"{self.rows} x {self.cols} in blocks of {self.block_rows} x {self.block_cols}: {self.nnzb} of {self.grid_rows * self.grid_cols} blocks stored"
            f" ({100 * self.density:.4g} %)\n"
            f"block rows: {self.empty_rows} of {self.grid_rows} empty, longest {self.longest_row}, spread {self.row_spread:.3g} of the mean\n"
            f"share of a block row's columns that the next one has too: {self.row_overlap:.3g}; distance from the diagonal: {self.bandwidth:.3g}"
        )


class Report:
    """Every candidate of a product, the fastest first, and which one was chosen.

    problem, device: dicts. candidates: a list of dicts (name, params, kind, status, why, median_us, spread_us, tflops, ...). chosen:
    the name, or None. choice: the chosen candidate as set_options(choice=...) takes it. provisional: None where the evidence is
    finished; else why a later tuning of the class measures again: "interrupted", "budget" (it ended before interleaved rounds had
    decided), "load" (other programs used the processors) or "in_place" (the program's own runs tried a few candidates). origin: whose
    evidence it is, where nothing was measured of the problem's class ("nearest class, of n=64", "from the bundle, of NVIDIA H200"),
    else None. foreign: whether it is another class's; its times are not this problem's then, and there are no rates. summary: why it
    won; its sentence on dense multiplication is of the fastest dense row, PyTorch's among them, which is also the one that the column
    "x dense" is over.
    """

    def __init__(self, found: dict[str, Any]):
        self.problem: dict[str, Any] = found["problem"]
        self.device: dict[str, Any] = found["device"]
        for key, value in self.problem.items():
            if isinstance(value, float) and key != "density":
                self.problem[key] = int(value)
        self.problem["assume_finite"] = bool(self.problem["assume_finite"])
        self._sentence: str = found["sentence"]
        self._flops: float = found["flops"]
        self._dense_flops: float = found["dense_flops"]
        self.device["threads"] = int(self.device["threads"])
        self.from_store = bool(found["from_store"])
        self.tuning_s: float = found["tuning_s"]
        self.provisional: str | None = found["provisional"]
        self.origin: str | None = found.get("origin")
        self.foreign = bool(found.get("foreign"))
        self._told: str = found["summary"] or ""
        self.class_key: str = found["class_key"]
        self._version, self._commit = found["sparsek"], found["commit"]
        chosen = int(found["chosen"])
        self.candidates: list[dict[str, Any]] = found["candidates"]
        best = self.candidates[chosen] if chosen >= 0 else None
        for candidate in self.candidates:
            self._add_rates(candidate)
            candidate["ratios"] = None
        self._best = best
        self.chosen: str | None = best["name"] if best else None
        self.choice: str | None = f"{best['name']} {best['params']}".strip() if best else None
        self._sort()
        if best is not None:
            others = {c["name"]: c for c in reversed(self.candidates) if c["name"] != best["name"]}  # the fastest of each kernel
            best["ratios"] = {name: r for name, c in reversed(others.items()) if (r := _ratio(c, best)) is not None}

    def _add_rates(self, row: dict[str, Any]) -> None:
        us = None if self.foreign and row["kind"] != "peer" else row.get("median_us")
        row["tflops"] = self._flops / us * 1e-6 if us else None
        row["dense_equivalent_tflops"] = self._dense_flops / us * 1e-6 if us else None

    def _sort(self) -> None:
        self.candidates.sort(key=lambda c: (c is not self._best, c["median_us"] is None, c["median_us"] or 0))

    def add(self, name: str, times_us: list[float], *, why: str | None = None) -> None:
        """A row measured elsewhere, of kind "peer"; without times it says why."""
        row = measured_row(name, times_us, why=why)
        self._add_rates(row)
        self.candidates.append(row)
        self._sort()

    def __getitem__(self, name: str) -> dict[str, Any]:
        """The first row of a name; KeyError where there is none."""
        for candidate in self.candidates:
            if candidate["name"] == name:
                return candidate
        raise KeyError(name)

    # ------------------------------------------------------------------------------------------------ shown

    def to_dict(self) -> dict[str, Any]:
        """In the shape of `sparsek bench --json`: one entry in results."""
        drop = ("samples_us", "predicted_us")
        candidates = [{k: v for k, v in c.items() if k not in drop} for c in self.candidates]
        whose = dict(chosen=self.chosen, from_store=self.from_store, origin=self.origin, foreign=self.foreign)
        result = dict(problem=self.problem, **whose, provisional=self.provisional, tuning_s=self.tuning_s, candidates=candidates)
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        head = dict(schema=1, sparsek=self._version, commit=self._commit, date=now, command="sparse_autotune")
        return dict(**head, device=self.device, results=[result])

    def _heading(self) -> str:
        p = self.problem
        words = {key: str(value) for key, value in p.items()}
        if "nnzb" in p:
            words["pattern"] = f"({p['block_rows']}x{p['block_cols']} blocks, {p['nnzb']} stored, {100 * p['density']:.4g} %)"
        words["transposed"] = " transposed" if p.get("trans_a") == "t" else ""
        what = f"{p['dtype']}, {self._sentence.format_map(words)}"
        if p["batch"] > 1:
            what += f", batch of {p['batch']}"
        what += "".join(f", {key[-1].upper()} scaled by {p[key]}" for key in p if key.startswith("scale_"))
        when = "from the store" if self.from_store else f"measured now in {self.tuning_s:.1f} s"
        if self.origin and self.tuning_s == 0 and not self.from_store:
            when = self.origin
        if self.foreign:
            when = f"{self.origin}: measured there, and no times of this problem"
        if self.provisional:
            when += f", provisional: {self.provisional}"
        return f"{what}\n{self.device['name']}, {self.device['threads']} threads, {p['cache']} operands; {when}"

    def _dense(self) -> dict[str, Any] | None:
        """The fastest dense row that is right."""
        rows = [c for c in self.candidates if c["median_us"] and (c["kind"] == "dense" or c["name"] == "pytorch_dense")]
        return min((c for c in rows if c["status"] in ("ok", "not eligible")), key=lambda c: c["median_us"], default=None)

    @property
    def summary(self) -> str:
        dense = self._dense()
        if dense is None or self.foreign:
            return self._told
        told = f"{dense['name']} {dense['params']}".strip() + f" at {_number(dense['median_us'])} us"
        best = self._best["median_us"] if self._best else None
        if best:
            ratio = dense["median_us"] / best
            told += f" ({ratio:.2f}x as long)" if ratio >= 1 else f" ({1 / ratio:.2f}x the speed)"
        return f"{_DENSE.sub('', self._told)} The fastest dense row, over which x dense is: {told}.".strip()

    def _rows(self) -> list[list[str]]:
        timed = [c for c in self.candidates if c["median_us"]]
        dense = (row := self._dense()) and row["median_us"]
        fastest = min((c["median_us"] for c in timed), default=1.0)
        rows = []
        for c in timed:
            note = "" if c["status"] == "ok" and not c["why"] else f"{c['status']}{': ' + c['why'] if c['why'] else ''}"
            bar = "█" * max(1, round(_BAR * fastest / c["median_us"]))
            times = f"{dense / c['median_us']:.2f}" if dense and not self.foreign else ""
            mark = "> " if c is self._best else "  "
            gflops = _number(1e3 * c["tflops"]) if c["tflops"] else ""
            rows.append([mark + c["name"], c["params"], _number(c["median_us"]), "±" + _number(c["spread_us"]), gflops, times, note or bar])
        return rows

    _HEAD = ["  kernel", "params", "median us", "spread", "GFLOP/s", "x dense", ""]

    def _table(self) -> list[list[str]]:
        """Head and rows; of another class's evidence without the columns of rates."""
        shown = [0, 1, 2, 3, 6] if self.foreign else range(7)
        return [[row[i] for i in shown] for row in (self._HEAD, *self._rows())]

    def __str__(self) -> str:
        rows = self._table()
        last = len(rows[0]) - 1
        widths = [max(len(r[i]) for r in rows) for i in range(last + 1)]
        lines = [self._heading(), ""]
        for row in rows:
            cells = [cell.ljust(w) if i in (0, 1, last) else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))]
            lines.append("  ".join(cells).rstrip())
        absent = [c for c in self.candidates if not c["median_us"] and c["kind"] == "peer"]
        lines += [f"  {c['name']}: {c['why']}" for c in absent]
        return "\n".join([*lines, "", self.summary]).rstrip()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        names, *rows = self._table()
        head = "".join(f"<th style='text-align:left'>{html.escape(h.strip())}</th>" for h in names)
        body = ""
        for row in rows:
            weight = "bold" if row[0].startswith(">") else "normal"
            body += (
                f"<tr style='font-weight:{weight}'>" + "".join(f"<td style='text-align:left'>{html.escape(cell.strip('> '))}</td>" for cell in row) + "</tr>"
            )
        heading = html.escape(self._heading()).replace("\n", "<br>")
        return f"<div><p>{heading}</p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{html.escape(self.summary)}</p></div>"

    def plot(self, ax: Any = None) -> Any:
        """Horizontal bars of the median times, on a matplotlib axes (a new one by default), which is returned. Needs matplotlib.

        Error bars reach from the lower to the upper quartile of the samples; a row of which only the spread is known has none.
        """
        import matplotlib.pyplot as plt

        timed = [c for c in self.candidates if c["median_us"]]
        if ax is None:
            _, ax = plt.subplots(figsize=(8, 1 + 0.35 * len(timed)), layout="constrained")
        below, above = zip(*(_quartile_distances(c) for c in timed), strict=True) if timed else ((), ())
        colours = ["tab:green" if c is self._best else "tab:gray" if c["kind"] in ("dense", "peer", "reference") else "tab:blue" for c in timed]
        ax.barh([f"{c['name']} {c['params']}" for c in timed], [c["median_us"] for c in timed], xerr=[below, above], color=colours)
        ax.invert_yaxis()
        if timed:
            ax.set_xscale("log")
        ax.set_xlabel("median, µs")
        ax.set_title(self._heading().split("\n")[0], fontsize="small", wrap=True)
        return ax


def measured_row(name: str, times_us: list[float], *, why: str | None = None, **facts: Any) -> dict[str, Any]:
    """A candidate that was timed outside of the library, or why it was not; facts: what else is known of it."""
    row: dict[str, Any] = dict(name=name, params="", hash=None, kind="peer", status="ok" if times_us else "failed", why=why)
    row.update(median_us=None, spread_us=None, least_us=None, prepare_us=None, predicted_us=None, error=None, tolerance=None, samples_us=times_us, ratios=None)
    if times_us:
        quartiles = statistics.quantiles(times_us, n=4) if len(times_us) > 1 else [times_us[0]] * 3
        row.update(median_us=statistics.median(times_us), spread_us=(quartiles[2] - quartiles[0]) / 2, least_us=min(times_us))
    return row | facts


def _quartile_distances(candidate: dict[str, Any]) -> tuple[float, float]:
    """How far the quartiles of the samples lie below and above the median; none where the samples are not known."""
    samples, median = candidate.get("samples_us") or [], candidate["median_us"]
    if len(samples) < 3:
        return 0.0, 0.0
    low, _, high = statistics.quantiles(samples, n=4, method="inclusive")
    return max(median - low, 0.0), max(high - median, 0.0)


def _ratio(candidate: dict[str, Any], best: dict[str, Any]) -> dict[str, Any] | None:
    """Median of a candidate's times over the best's of the same rounds."""
    pairs = [a / b for a, b in zip(candidate["samples_us"], best["samples_us"], strict=False) if b > 0]
    return dict(median=statistics.median(pairs), pairs=len(pairs)) if pairs else None
