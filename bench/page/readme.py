"""README.md's chart, between two marks."""
import textwrap

from page import charts
from page.results import Trouble

BEGIN, END = "<!-- made by bench/performance.py -->", "<!-- until here -->"


def block(files):
    """The chart and what it is made from; None without such files."""
    if not any(charts.overview(files)):
        return None
    names = sorted({stem for stem, _, _ in files if stem in charts.OVERVIEW_FILES})
    return "\n".join(charts.shown("overview", charts.overview_words(files), "docs/figures") +
                     ["", *textwrap.wrap("Shorter is better; a bar with a notch is cut off. Each number is in " + ", ".join(f"`{name}`" for name in names) +
                                         " of [bench/results](bench/results/README.md).", 140)])


def refreshed(text, files):
    """README's text with the chart of these files."""
    made = block(files)
    if made is None:
        return text
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise Trouble(f"README.md: the marks {BEGIN} and {END} must be there once each")
    before, rest = text.split(BEGIN)
    return before + BEGIN + "\n" + made + "\n" + END + rest.split(END)[1]
