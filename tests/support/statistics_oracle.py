"""Writes tests/data/statistics_oracle.json: what scipy and krippendorff compute for random arguments.

Neither is a dependency (docs/decisions.md, "Statistics"). To write the file anew:
`uv run --no-project --with scipy --with krippendorff python tests/support/statistics_oracle.py`.
"""

import json
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any, Final

ORACLE: Final = Path(__file__).parents[1] / "data" / "statistics_oracle.json"
ROUNDS: Final = 60
SEED: Final = 1

Rows = list[list[Any]]
"""Arguments, then what the library makes of them."""


def proportions(stats: Any, random: Random) -> tuple[Rows, Rows, Rows]:
    """Wilson intervals, McNemar's test, and the two chances of k tries."""
    wilson, mcnemar, tries = Rows(), Rows(), Rows()
    for at in range(ROUNDS):
        whole = random.randint(1, (3, 30, 300, 3000)[at % 4])
        part = random.randint(0, whole)
        interval = stats.binomtest(part, whole).proportion_ci(0.95, "wilson")
        wilson.append([part, whole, float(interval.low), float(interval.high)])
        most = (4, 40, 400)[at % 3]
        broken, fixed = random.randint(0, most), random.randint(1, most)
        exact = float(stats.binomtest(broken, broken + fixed).pvalue)
        seen = float(stats.binom.pmf(min(broken, fixed), broken + fixed, 0.5))
        mcnemar.append([broken, fixed, exact, 1.0 if broken == fixed else exact - seen])
        n = random.randint(1, 40)
        passed, k = random.randint(0, n), random.randint(1, n)
        drawn = stats.hypergeom(n, passed, k)
        tries.append([n, passed, k, float(drawn.sf(0)), float(drawn.pmf(k))])
    return wilson, mcnemar, tries


def means(stats: Any, random: Random) -> tuple[Rows, Rows]:
    """Standard errors, and BCa intervals of skewed values from 20,000 resamples."""
    errors, intervals = Rows(), Rows()
    mean = import_module("numpy").mean
    for _ in range(ROUNDS // 5):
        values = [round(random.lognormvariate(0, 1), 3) for _ in range(random.randint(15, 60))]
        errors.append([values, float(stats.sem(values))])
        found = stats.bootstrap((values,), mean, method="BCa", n_resamples=20_000, random_state=SEED)
        bounds = found.confidence_interval
        intervals.append([values, float(bounds.low), float(bounds.high)])
    return errors, intervals


def agreements(random: Random) -> Rows:
    """Alpha of panels with missing verdicts."""
    alpha, found = import_module("krippendorff").alpha, Rows()
    for _ in range(ROUNDS):
        words, judges = range(random.randint(2, 4)), random.randint(2, 6)
        units = [[random.choice([*words, None]) for _ in range(judges)] for _ in range(random.randint(2, 25))]
        raters = [
            [float("nan") if word is None else word for word in rater] for rater in zip(*units, strict=True)
        ]
        found.append([units, float(alpha(reliability_data=raters, level_of_measurement="nominal"))])
    return found


def main() -> None:
    """Writes the file, one row a line."""
    stats, random = import_module("scipy.stats"), Random(SEED)
    names = ("wilson", "mcnemar", "tries", "standard_error", "bca", "alpha")
    tables = (*proportions(stats, random), *means(stats, random), agreements(random))
    parts = [
        f"{json.dumps(name)}: [\n" + ",\n".join(map(json.dumps, rows)) + "\n]"
        for name, rows in zip(names, tables, strict=True)
    ]
    ORACLE.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
