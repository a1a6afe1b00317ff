#!/usr/bin/env python3
"""Prints one line per column of a CSV file: type, filled cells, smallest and largest value."""

import csv
import sys


def main(path: str) -> None:
    with open(path, newline="", encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    for column in rows[0] if rows else ():
        cells = [row[column].strip() for row in rows if (row[column] or "").strip()]
        numbers = [number for cell in cells if (number := as_number(cell)) is not None]
        kind = "number" if cells and len(numbers) == len(cells) else "text"
        values = numbers if kind == "number" else cells
        span = f"{min(values)} … {max(values)}" if values else "empty"
        print(f"{column}\t{kind}\t{len(cells)}/{len(rows)} filled\t{span}")


def as_number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: summarize.py FILE.csv")
    main(sys.argv[1])
