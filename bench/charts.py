"""SVG without libraries: bars of ratios, and a roofline with a dot a kernel. Values in, a text out; a tooltip names each mark."""
import math
from html import escape

STYLE = ("<style>text{font:12px sans-serif;fill:#222}.axis{stroke:#999}.grid{stroke:#e4e4e4}.roof{stroke:#444;fill:none;stroke-width:2}"
         ".ahead{fill:#2a7fbf}.tie{fill:#9a9a9a}.fails{fill:#d05a2b}.dot{fill:#2a7fbf;fill-opacity:.6;stroke:#174d75}.whisker{stroke:#222}</style>")


def page(width, height, marks):
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
    return "\n".join([head, STYLE, f'<rect width="{width}" height="{height}" fill="#fff"/>'] + marks + ["</svg>", ""])


def text(x, y, what, anchor="start"):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(str(what))}</text>'


def line(x1, y1, x2, y2, kind):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'


class LogAxis:
    def __init__(self, low, high, start, length):
        self.low, self.span, self.start, self.length = math.log10(low), math.log10(high) - math.log10(low), start, length

    def at(self, value):
        return self.start + self.length * (math.log10(value) - self.low) / self.span


def ratio_bars(title, rows):
    """rows: (name, ratio, low, high, verdict, note). Bars grow from 1 on a logarithmic axis."""
    left, bar, width = 190, 24, 860
    height = 60 + bar * len(rows) + 30
    top = max([2.0] + [r[3] for r in rows]) * 1.1
    axis = LogAxis(min([0.5] + [r[2] for r in rows]) / 1.1, top, left, width - left - 180)
    marks = [text(10, 22, title)]
    for tick in (0.1, 0.2, 0.5, 1, 2, 4, 8, 16, 32, 64, 128):
        if axis.low <= math.log10(tick) <= axis.low + axis.span:
            marks += [line(axis.at(tick), 40, axis.at(tick), height - 26, "axis" if tick == 1 else "grid"), text(axis.at(tick), height - 10, f"{tick:g}x", "middle")]
    for i, (name, ratio, low, high, kind, note) in enumerate(rows):
        y, x = 44 + bar * i, sorted((axis.at(1), axis.at(ratio)))
        marks += [text(left - 8, y + 15, name, "end"),
                  f'<rect x="{x[0]:.1f}" y="{y + 3}" width="{max(x[1] - x[0], 1):.1f}" height="{bar - 8}" class="{kind}"><title>{escape(f"{name}: {ratio:.2f} [{low:.2f}, {high:.2f}]")}</title></rect>',
                  line(axis.at(low), y + 11, axis.at(high), y + 11, "whisker"), text(axis.at(max(ratio, high, 1)) + 6, y + 15, f"{ratio:.2f}x {note}")]
    return page(width, height, marks)


def roofline(title, bandwidth_gbps, peak_gflops, dots):
    """dots: (name, FLOP, bytes, milliseconds). The roof is the lower of bandwidth times intensity and the peak."""
    width, height, left, bottom = 860, 520, 70, 60
    points = [(n, f / b, f / ms / 1e6) for n, f, b, ms in dots if f > 0 and b > 0 and ms > 0]
    low_x, high_x = min([0.05] + [p[1] for p in points]) / 1.5, max([200] + [p[1] for p in points]) * 1.5
    low_y, high_y = min([0.1] + [p[2] for p in points]) / 1.5, peak_gflops * 2
    x, y = LogAxis(low_x, high_x, left, width - left - 30), LogAxis(low_y, high_y, height - bottom, -(height - bottom - 50))
    marks = [text(10, 22, title)]
    for power in range(math.ceil(math.log10(low_x)), math.floor(math.log10(high_x)) + 1):
        marks += [line(x.at(10 ** power), 50, x.at(10 ** power), height - bottom, "grid"), text(x.at(10 ** power), height - bottom + 18, f"{10 ** power:g}", "middle")]
    for power in range(math.ceil(math.log10(low_y)), math.floor(math.log10(high_y)) + 1):
        marks += [line(left, y.at(10 ** power), width - 30, y.at(10 ** power), "grid"), text(left - 8, y.at(10 ** power) + 4, f"{10 ** power:g}", "end")]
    ridge = peak_gflops / bandwidth_gbps
    start = max(low_x, low_y / bandwidth_gbps)
    corners = [(start, start * bandwidth_gbps), (min(ridge, high_x), min(ridge, high_x) * bandwidth_gbps)] + ([(high_x, peak_gflops)] if ridge < high_x else [])
    marks.append('<polyline class="roof" points="' + " ".join(f"{x.at(a):.1f},{y.at(b):.1f}" for a, b in corners) + '"/>')
    for name, intensity, rate in points:
        marks.append(f'<circle class="dot" cx="{x.at(intensity):.1f}" cy="{y.at(rate):.1f}" r="4"><title>{escape(f"{name}: {intensity:.2f} FLOP/byte, {rate:.1f} GFLOP/s")}</title></circle>')
    marks += [text(width / 2, height - 16, f"FLOP per byte; roof: {bandwidth_gbps:.1f} GB/s of a copy, {peak_gflops:.0f} GFLOP/s", "middle"), text(10, 44, "GFLOP/s")]
    return page(width, height, marks)
