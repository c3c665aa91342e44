"""Draws speed.svg, the chart of the README, from the tables of two dated reports.

python docs/figures/speed.py
"""

import re
from pathlib import Path

HERE = Path(__file__).parent
H200 = "2026-11-26-scans-and-tests-on-an-h200.md"
HOST = "2026-11-28-kernels-on-the-host-and-sanitizers.md"
COLOURS = {"pygpu": "#2a6fb0", "CuPy": "#d1702a", "PyTorch": "#8a8a8a"}
WIDTH, BAR, LABELS = 760, 13, 250

# The first cell of a row in the report, and its name in the chart.
ON_H200 = {
    "`a + b`, 256 MiB, GB/s": "a + b",
    "`sum`, 256 MiB, GB/s": "sum(a)",
    "`m + m.T`, GB/s": "m + m.T",
    "`a*x + b*y` of ElementwiseKernel": "ElementwiseKernel a*x + b*y",
    "uniform numbers, new array": "uniform random numbers",
}
ON_HOST = {
    "`InclusiveScanKernel` `a + b`": "InclusiveScanKernel a + b",
    "`fill_normal`, XORWOW": "normal random numbers",
    "`ReductionKernel` `x[i] * y[i]`, `a + b`": "ReductionKernel sum(x * y)",
    "`argsort`": "argsort",
    "`argmax`": "argmax",
}


def rows(note, header):
    """Returns the rows of the table under a header as dictionaries, by their first cell."""
    text = (HERE.parent / "reports" / note).read_text(encoding="utf-8")
    table = text.split(header + "\n")[1].split("\n\n")[0].splitlines()[1:]
    names = [cell.strip() for cell in header.split("|")[2:-1]]
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table]
    return {first: dict(zip(names, rest)) for first, *rest in cells}


def number(cell):
    """Returns the last number of a cell such as `5.9; 4284`, or None for an empty cell."""
    found = re.findall(r"[\d.]+", cell.split("(")[0])
    return float(found[-1]) if found else None


def text(x, y, content, **attributes):
    more = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in attributes.items())
    return f'<text x="{x}" y="{y}"{more}>{content}</text>'


def bars(top, title, groups, scale, form):
    """Returns the lines of a panel and the height at which the next one begins."""
    lines, y = [text(10, top + 16, title, font_weight="bold")], top + 30
    for label, values in groups.items():
        lines.append(text(LABELS - 8, y + BAR * len(values) / 2 + 4, label, text_anchor="end"))
        for name, value in values.items():
            length = value / scale * (WIDTH - LABELS - 60)
            lines.append(
                f'<rect x="{LABELS}" y="{y}" width="{length:.0f}" height="{BAR - 2}" '
                f'fill="{COLOURS[name]}"/>'
            )
            lines.append(text(LABELS + 5 + round(length), y + 10, form(value), font_size=11))
            y += BAR
        y += 8
    return lines, y


def draw():
    """Returns the chart as text."""
    gpu = rows(H200, "| | C | CuPy | PyTorch | pygpu |") | rows(
        H200, "| us a call on 1,024 float32; GB/s on 2^26 | pygpu | CuPy | PyTorch |"
    )
    host = rows(HOST, "| | before | now | numpy |")
    bandwidths = {
        label: {name: value for name in COLOURS if (value := number(gpu[row][name]))}
        for row, label in ON_H200.items()
    }
    speedups = {
        label: {"pygpu": number(host[row]["numpy"]) / number(host[row]["now"])}
        for row, label in ON_HOST.items()
    }
    title = "NVIDIA H200, 64 Mi float32: GB/s"
    upper, y = bars(24, title, bandwidths, 4400, "{:,.0f}".format)
    title = "CPU, 2 threads, 4 Mi float32: speed relative to numpy"
    lower, y = bars(y + 10, title, speedups, 8, "{:.1f} x".format)
    legend = [
        part
        for place, (name, colour) in enumerate(COLOURS.items())
        for part in (
            f'<rect x="{LABELS + 90 * place}" y="8" width="11" height="11" fill="{colour}"/>',
            text(LABELS + 16 + 90 * place, 18, name),
        )
    ]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y}" '
        'font-family="sans-serif" font-size="13">'
    )
    return "\n".join(
        [
            head,
            '<rect width="100%" height="100%" fill="white"/>',
            *legend,
            *upper,
            *lower,
            "</svg>\n",
        ]
    )


if __name__ == "__main__":
    (HERE / "speed.svg").write_text(draw(), encoding="utf-8")
