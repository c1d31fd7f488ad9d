# SPDX-License-Identifier: Apache-2.0
"""Samples into a table, JSON and an SVG plot.

Samples are {(workload, part): {view: [seconds, ...]}}. Ratios are to the first
view (native, or plain exec) of the same run; above 1 is slower.
"""
import json
import math
import statistics


def seconds(value):
    if value < 1e-3:
        return f"{value * 1e6:.1f} µs"
    return f"{value * 1e3:.2f} ms" if value < 1 else f"{value:.2f} s"


def ratio(value):
    return f"{value:.2f}" if value < 100 else f"{value:.0f}"


def spread(row):
    return (row["max"] - row["min"]) / 2 / row["median"]


def rows(samples):
    """One dictionary for each workload, part and view."""
    out = []
    for (workload, part), views in samples.items():
        base = next(iter(views.values()))
        for view, values in views.items():
            out.append({
                "workload": workload, "part": part, "view": view, "rounds": len(values),
                "min": min(values), "median": statistics.median(values),
                "max": max(values),
                "ratio_min": min(values) / min(base),
                "ratio_median": statistics.median(values) / statistics.median(base),
            })
    return out


def table(samples):
    names = list(dict.fromkeys(v for views in samples.values() for v in views))
    lines = []
    wide = max((len(f"{w}: {p}") for w, p in samples), default=8) + 1
    head = f"{'workload':{wide}}" + "".join(f"{n:>31}" for n in names)
    lines += [head, "-" * len(head)]
    by = {(r["workload"], r["part"], r["view"]): r for r in rows(samples)}
    for workload, part in samples:
        line = f"{workload + ': ' + part:{wide}}"
        for position, view in enumerate(names):
            row = by.get((workload, part, view))
            if row is None:
                text = "–"
            elif position == 0:
                text = seconds(row["median"])
            else:
                text = (f"{seconds(row['median'])}  "
                        f"{ratio(row['ratio_min'])}/{ratio(row['ratio_median'])}")
            if row is not None:
                text += f" ±{spread(row):.0%}"
            line += f"{text:>31}"
        lines.append(line)
    lines.append("")
    lines.append("median time; ratio to the first column as minimum/median of "
                 f"{max(r['rounds'] for r in rows(samples))} interleaved rounds; "
                 "± half of the way from the least to the most")
    return "\n".join(lines)


COLOURS = ["#888888", "#4477aa", "#ee9944", "#228833", "#aa3377", "#66ccee", "#bbaa33",
           "#cc3311", "#004488", "#997700"]


def svg(samples, title):
    """Median ratios as horizontal bars on a logarithmic axis, 0.25 to 32."""
    low, high, left, width, bar = -2.0, 5.0, 270, 520, 9
    names = list(dict.fromkeys(v for views in samples.values() for v in views))
    data = {}
    for row in rows(samples):
        data.setdefault((row["workload"], row["part"]), {})[row["view"]] = row["ratio_median"]

    def x(ratio):
        return left + (min(max(math.log2(ratio), low), high) - low) / (high - low) * width

    parts, y = [], 50
    for (workload, part), ratios in data.items():
        parts.append(f'<text x="{left - 8}" y="{y + 14}" text-anchor="end">{workload}: {part}</text>')
        for view in names[1:]:
            if view in ratios:
                at, one = x(ratios[view]), x(1)
                parts.append(f'<rect x="{min(at, one):.1f}" y="{y}" width="{abs(at - one):.1f}" '
                             f'height="{bar - 1}" fill="{COLOURS[names.index(view)]}"/>'
                             f'<text class="n" x="{max(at, one) + 3:.1f}" y="{y + 8}">'
                             f'{ratios[view]:.2f}</text>')
            y += bar
        y += 8
    axis = []
    for power in range(int(low), int(high) + 1):
        at = x(2.0 ** power)
        label = f"{2.0 ** power:g}×"
        axis.append(f'<line x1="{at:.1f}" x2="{at:.1f}" y1="44" y2="{y}" stroke="#ddd"/>'
                    f'<text x="{at:.1f}" y="40" text-anchor="middle">{label}</text>')
    legend = "".join(
        f'<rect x="{left + i * 130}" y="{y + 8}" width="10" height="10" fill="{COLOURS[i]}"/>'
        f'<text x="{left + 14 + i * 130}" y="{y + 17}">{name}</text>'
        for i, name in enumerate(names) if i > 0)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 60}" height="{y + 30}" '
            'font-family="sans-serif" font-size="12"><style>.n{font-size:9px}</style>'
            '<rect width="100%" height="100%" fill="white"/>'
            f'<text x="10" y="20" font-weight="bold">{title}: time relative to {names[0]} '
            f'(less is better)</text>{"".join(axis)}{"".join(parts)}{legend}</svg>\n')


def save(samples, about, stem, title):
    with open(stem + ".json", "w", encoding="utf-8") as f:
        json.dump({"version": 1, "about": about, "rows": rows(samples),
                   "samples": [{"workload": w, "part": p, "view": v, "seconds": s}
                               for (w, p), views in samples.items() for v, s in views.items()]},
                  f, indent=1)
    with open(stem + ".svg", "w", encoding="utf-8") as f:
        f.write(svg(samples, title))
