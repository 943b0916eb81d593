"""From what the benchmark programs print to one flat object of ratios, tables and plots.

Only values in, values and text out; bench/run calls it.
"""
import collections
import html
import os
import platform
import statistics

BATCHES = (4, 16, 32, 64)
PEERS = ("rte_hash", "lfht", "absl", "boost_map", "lmdb", "memcached")

# key: (operator, bound, what it is). The bounds are the project's targets.
TARGETS = {
    "dependent_over_chase_1m": ("<=", 1.15, "dependent resolve ÷ pointer chase, 1 M entries"),
    "dependent_over_chase_10m": ("<=", 1.15, "the same, 10 M entries"),
    "batch_over_gather_1m": ("<=", 2.0, "batch resolve (best size up to 64) ÷ gather of independent lines"),
    "rte_hash_over_ours_single_1m": (">=", 1.8, "DPDK rte_hash, lock-free, one by one ÷ ours"),
    "rte_hash_over_ours_bulk_1m": (">=", 1.5, "the same in bulk, best size of each"),
    "absl_over_ours_10k": (">=", 1.5, "absl::flat_hash_map&lt;std::string&gt;, private ÷ ours, 10 k entries"),
    "absl_over_ours_1m": (">=", 2.5, "the same, 1 M entries"),
    "lmdb_over_ours_1m": (">=", 6, "LMDB on tmpfs ÷ ours"),
    "boost_map_over_ours_1m": (">=", 4, "Boost map under a shared mutex ÷ ours"),
    "memcached_over_ours_1m": (">=", 100, "memcached over a unix socket ÷ ours"),
    "bucket_over_unordered_map": ("<=", 1.0, "tenant found through its bucket ÷ std::unordered_map of 256"),
    "busy_over_control": (">=", 0.95, "throughput beside 100 k changes/s ÷ control"),
    "rebuild_over_control": (">=", 0.90, "throughput beside a rebuild ÷ control"),
    "workers32_over_workers2": (">=", 0.95, "sum of 32 workers ÷ sum of 2"),
    "p999_busy_over_control": ("<=", 1.2, "p99.9 of a resolve beside 100 k changes/s ÷ control"),
    "load_over_cp_10m": ("<=", 4.0, "snapshot load ÷ cp of the file into tmpfs, 10 M entries"),
    "load_rows_per_s_10m": (">=", 8e6, "rows a second of that load"),
    "apply_rows_per_s": (">=", 3e6, "changed rows into the table, a second"),
    "bytes_per_tenant": ("<=", 85, "table bytes per entry, 1 M entries"),
    "rss_anon_kib_per_worker": ("<=", 64, "private memory that a worker takes, KiB"),
    "ready_s_1m": ("<=", 0.3, "exec of fingerpostd to ready, from a snapshot, seconds"),
    "adopt_s_1m": ("<=", 0.1, "exec to ready, adopting a live segment, seconds"),
}


def rounds_of(lookup):
    """{benchmark: {subject.way: [ns per lookup of each round]}}"""
    rounds = collections.defaultdict(lambda: collections.defaultdict(list))
    for one in lookup["benchmarks"]:
        if one["run_type"] != "iteration":
            continue
        name = one["name"].split("/iterations:")[0]
        for key, value in one.items():
            if isinstance(value, float) and key not in ("real_time", "cpu_time"):
                rounds[name][key].append(value)
    return rounds


def ratio(rounds, over, under):
    """The median over rounds of over ÷ under; None where either was not measured."""
    if over not in rounds or under not in rounds:
        return None
    return statistics.median(a / b for a, b in zip(rounds[over], rounds[under]))


def best_batch(rounds, subject):
    """Name of the batch size with the least median, among those measured."""
    names = [f"{subject}.batch{size}" for size in BATCHES if f"{subject}.batch{size}" in rounds]
    return min(names, key=lambda name: statistics.median(rounds[name])) if names else ""


def flatten(raw):
    rounds = rounds_of(raw["lookup"])
    small, large, huge = (rounds[f"lookup/{size}"] for size in ("10k", "1m", "10m"))
    contention, cost = raw["contention"], raw["cost"]
    flat = dict.fromkeys(TARGETS)
    flat["dependent_over_chase_1m"] = ratio(large, "ours.dependent", "chase.dependent")
    flat["dependent_over_chase_10m"] = ratio(huge, "ours.dependent", "chase.dependent")
    flat["batch_over_gather_1m"] = ratio(large, best_batch(large, "ours"), "gather.independent")
    flat["rte_hash_over_ours_single_1m"] = ratio(large, "rte_hash.independent", "ours.independent")
    flat["rte_hash_over_ours_bulk_1m"] = ratio(large, best_batch(large, "rte_hash"), best_batch(large, "ours"))
    flat["absl_over_ours_10k"] = ratio(small, "absl.independent", "ours.independent")
    for peer in PEERS[1:]:
        flat[f"{peer}_over_ours_1m"] = ratio(large, f"{peer}.independent", "ours.independent")
    flat["bucket_over_unordered_map"] = ratio(rounds["bucket"], "ours", "unordered_map")
    flat["busy_over_control"] = contention["throughput"]["100000"]["ratio"]
    flat["rebuild_over_control"] = contention["rebuild"]["ratio"]
    flat["stopped_over_control"] = contention["stopped"]["ratio"]
    flat["dead_over_control"] = contention["dead"]["ratio"]
    workers = contention["workers"]
    flat["workers32_over_workers2"] = workers["32"]["over_2"] if "32" in workers else None
    flat["p999_busy_over_control"] = contention["latency"]["p99_9_ratio"]
    flat["rss_anon_kib_per_worker"] = contention["rss_anon_kib_per_worker"]
    if cost["load"]["entries"] == 10_000_000:
        flat["load_over_cp_10m"] = cost["load"]["load_over_cp"]
        flat["load_rows_per_s_10m"] = cost["load"]["load_rows_per_s"]
    flat["apply_rows_per_s"] = cost["apply"]["rows_per_s"]
    flat["bytes_per_tenant"] = cost["memory"]["bytes_per_tenant"]
    if cost["daemon"]["entries"] == 1_000_000:
        flat["ready_s_1m"] = cost["daemon"]["ready_s"]
        flat["adopt_s_1m"] = cost["daemon"]["adopt_s"]
    # Facts beside the targets.
    flat["chase_huge_pages_over_chase_1m"] = ratio(large, "chase_huge_pages.dependent", "chase.dependent")
    flat["gather_huge_pages_over_gather_1m"] = ratio(large, "gather_huge_pages.independent", "gather.independent")
    flat["commit_to_visible_s"] = cost["daemon"]["commit_to_visible_s"]
    flat["idle_cpu_share"] = cost["daemon"]["idle_cpu_share"]
    flat["wrong_answers"] = contention["wrong"]
    flat["undetermined_answers"] = contention["undetermined"]
    return flat


def figure(value):
    if value is None:
        return "–"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def verdict(key, value):
    operator, bound, _ = TARGETS[key]
    if value is None:
        return "not measured"
    met = value <= bound if operator == "<=" else value >= bound
    return "met" if met else "**not met**"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "| --- |" + " ---: |" * (len(head) - 1)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def bars(title, unit, values):
    """An SVG of horizontal bars. `values`: [(label, number)]."""
    values = [(label, value) for label, value in values if value is not None]
    if not values:
        return ""
    most = max(value for _, value in values)
    row, left, width = 22, 190, 380
    height = 40 + row * len(values)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 110}" height="{height}" '
           'font-family="sans-serif" font-size="12">',
           f'<rect width="100%" height="100%" fill="white"/><text x="8" y="18" font-weight="bold">{html.escape(title)}</text>']
    for i, (label, value) in enumerate(values):
        top = 30 + i * row
        colour = "#c2410c" if label.startswith("ours") else "#64748b"
        out.append(f'<text x="{left - 8}" y="{top + 13}" text-anchor="end">{html.escape(label)}</text>'
                   f'<rect x="{left}" y="{top}" width="{max(1.0, width * value / most):.1f}" height="16" fill="{colour}"/>'
                   f'<text x="{left + 6 + width * value / most:.1f}" y="{top + 13}">{figure(value)} {unit}</text>')
    return "\n".join(out + ["</svg>"]) + "\n"


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        model = next((line.split(":")[1].strip() for line in info if line.startswith("model name")), "unknown")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{model}, {len(os.sched_getaffinity(0))} processors, {memory:.0f} GiB, Linux {platform.release()}"


def lookup_table(rounds):
    subjects = list(dict.fromkeys(name.split(".")[0] for name in rounds))
    ours = rounds.get("ours.independent")
    rows = []
    for subject in subjects:
        cells = [subject]
        for way in ("independent", "dependent"):
            found = rounds.get(f"{subject}.{way}")
            cells.append(figure(statistics.median(found)) if found else "–")
        best = best_batch(rounds, subject)
        size = best.rsplit("batch", 1)[-1]
        cells.append(f"{figure(statistics.median(rounds[best]))} ({size})" if best else "–")
        cells.append(figure(ratio(rounds, f"{subject}.independent", "ours.independent")) if ours else "–")
        rows.append(cells)
    return table(["subject", "independent", "dependent", "batch (best size)", "independent ÷ ours"], rows)


def write_results(raw, flat, scale, folder):
    """Puts tables and plots between the marks of RESULTS.md; what stands around them is written by hand."""
    rounds = rounds_of(raw["lookup"])
    contention, cost = raw["contention"], raw["cost"]
    plots = folder / "plots"
    plots.mkdir(exist_ok=True)
    large = {name: statistics.median(values) for name, values in rounds["lookup/1m"].items()}
    fast = [(name.replace(".independent", ""), large[name]) for name in large
            if name.endswith(".independent") and not name.startswith("memcached")]
    (plots / "independent_1m.svg").write_text(
        bars("independent lookups, 1 M entries, hits", "ns", sorted(fast, key=lambda one: one[1])))
    slow = [(name.replace(".dependent", ""), large[name]) for name in large
            if name.endswith(".dependent") and not name.startswith("memcached")]
    (plots / "dependent_1m.svg").write_text(
        bars("dependent lookups, 1 M entries, hits", "ns", sorted(slow, key=lambda one: one[1])))
    (plots / "workers.svg").write_text(
        bars("sum of the workers ÷ sum of 2", "", [(f"ours, {count}", one["over_2"])
                                                   for count, one in contention["workers"].items()]))
    parts = [
        f"Measured by `bench/run{' --quick' if scale == 'quick' else ''}` on {machine()}; "
        f"load average when it began {raw['load_before']}, when it ended {raw['load_after']}.",
        "### Ratios and targets",
        table(["key", "what", "target", "measured", "verdict"],
              [[f"`{key}`", what, f"{'≤' if operator == '<=' else '≥'} {figure(bound)}", figure(flat[key]),
                verdict(key, flat[key])] for key, (operator, bound, what) in TARGETS.items()]),
        "![independent lookups](plots/independent_1m.svg)\n\n![dependent lookups](plots/dependent_1m.svg)\n\n"
        "![workers](plots/workers.svg)",
    ]
    for name, measured in rounds.items():
        if name != "bucket":
            parts += [f"### `{name}`, nanoseconds per lookup", lookup_table(measured)]
    latency = contention["latency"]
    quantiles = ("p50", "p90", "p99", "p99_9", "p99_99")
    parts += [
        f"### One resolve beside 100,000 changes a second, nanoseconds (the timer's own {latency['timer_ns']} included)",
        table(["", *[name.replace("_", ".") for name in quantiles], "samples"],
              [[side, *[f"{latency[side][name]:,}" for name in quantiles], f"{latency[side]['samples']:,}"]
               for side in ("ours", "control")]),
        "### Workers",
        table(["workers", "sum ÷ sum of 2", "slowest ÷ fastest, worst window"],
              [[count, figure(one["over_2"]), figure(one["slowest_over_fastest"])]
               for count, one in contention["workers"].items()]),
        "### Beside a writer, throughput ÷ control",
        table(["the writer", "ratio"],
              [[f"{int(rate):,} changes a second", figure(one["ratio"])]
               for rate, one in contention["throughput"].items()]
              + [["rebuilds the table", figure(contention["rebuild"]["ratio"])],
                 ["is stopped in mid-batch (÷ before)", figure(contention["stopped"]["ratio"])],
                 ["is dead (÷ before)", figure(contention["dead"]["ratio"])]]),
        "### Other costs",
        table(["what", "measured"],
              [[f"snapshot load, {cost['load']['entries']:,} entries, s", figure(cost["load"]["load_s"])],
               ["the same without io_uring, s", figure(cost["load"]["load_plain_io_s"])],
               ["the same with the file not in the page cache, once, s", figure(cost["load"]["load_cold_s"])],
               ["`cp` of the file into tmpfs, s", figure(cost["load"]["cp_s"])],
               ["snapshot write, rows a second", figure(cost["load"]["write_rows_per_s"])],
               [f"`fingerpost import` of a CSV file of {cost['import']['rows']:,} rows, rows a second",
                figure(cost["import"]["import_rows_per_s"])],
               ["reload of the same from the directory, rows a second", figure(cost["import"]["reload_rows_per_s"])],
               *([[f"exec of fingerpostd to ready, {cost['large_daemon']['entries']:,} entries, s",
                   figure(cost["large_daemon"]["ready_s"])],
                  ["adoption of the same, s", figure(cost["large_daemon"]["adopt_s"])]] if "large_daemon" in cost else []),
               [f"growth by a quarter, {cost['daemon']['entries']:,} entries, s", figure(cost["apply"]["grow_s"])],
               ["commit to visible, s", figure(cost["daemon"]["commit_to_visible_s"])],
               ["the syncer's idle share of a processor", figure(cost["daemon"]["idle_cpu_share"])]]),
    ]
    path = folder / "RESULTS.md"
    missing = [peer for peer in PEERS if f"{peer}.independent" not in large]
    parts[0] += " Peers not installed and left out: " + ", ".join(missing) + "." if missing else " All peers took part."
    begin, end = "<!-- bench/run begins -->", "<!-- bench/run ends -->"
    text = path.read_text(encoding="utf-8")
    before, after = text.split(begin)[0], text.split(end)[1]
    path.write_text(before + begin + "\n\n" + "\n\n".join(parts) + "\n\n" + end + after, encoding="utf-8")
