"""The invented shop that ships: 60 products with options, 40 goals, and all that the catalogue needs, from one seed.

    python -m handoff.envs.webshop.generator --out artifacts/webshop

No product, brand or price is of the real world.  Every goal can be reached in full, by the exact product with the exact
options.
"""

from __future__ import annotations

import json
from collections import Counter
from itertools import product as combinations
from pathlib import Path
from typing import Any

import click

from handoff import files
from handoff.envs.dice import Dice
from handoff.envs.webshop.search import terms

SEED = 11
PRODUCTS, GOALS = 60, 40
_BRANDS = ("Norvale", "Tamsin", "Okelle", "Brindle", "Quarry", "Lumora", "Vestor", "Halden", "Pellow", "Ristow")
#: Kind of product: category levels, query, materials, attributes.
_KINDS: tuple[tuple[str, str, str, str, str], ...] = (
    ("Lamp", "Home › Lighting › Lamps", "table lamps", "brass oak glass", "dimmable light, low glare, easy assembly"),
    ("Kettle", "Kitchen › Drinks › Kettles", "kettles", "steel copper enamel", "fast boil, auto shutoff, drip free"),
    (
        "Backpack",
        "Travel › Bags › Backpacks",
        "backpacks",
        "canvas nylon leather",
        "padded straps, quick access",
    ),
    (
        "Blanket",
        "Home › Bedding › Blankets",
        "throw blankets",
        "wool cotton fleece",
        "double sided, non shedding",
    ),
    ("Notebook", "Office › Paper › Notebooks", "notebooks", "linen cork paper", "lay flat, numbered pages, acid free"),
    ("Shirt", "Clothing › Tops › Shirts", "shirts", "linen cotton flannel", "long sleeve, slim fit, wrinkle free"),
)
_COLOURS = ("black", "blue", "green", "grey", "ivory", "red", "white", "yellow")
_SIZES = ("small", "medium", "large", "x-large")


def generate(seed: int = SEED) -> dict[str, bytes]:
    """The files by name."""
    dice = Dice("webshop", seed)
    records = [_record(dice, number) for number in range(PRODUCTS)]
    prices = {record["asin"]: record["pricing"][0] for record in records}
    goals = [goal for record in records for goal in _goals(dice, record)]
    chosen = dice.shuffled(goals)[:GOALS]
    lines = [json.dumps({"id": record["asin"], "contents": _contents(record), "product": record}) for record in records]
    vectors = []
    for record in records:
        counts = Counter(terms(_contents(record)))
        vectors.append("\t".join([record["asin"], *(f"{term} {counts[term]}" for term in sorted(counts))]))
    nouns = {record["asin"]: _nouns(record) for record in records}
    return {
        "products.jsonl": ("\n".join(lines) + "\n").encode(),
        "termvectors.tsv": ("\n".join(vectors) + "\n").encode(),
        "goals.json": (json.dumps({"seed": seed, "goals": chosen}, indent=1) + "\n").encode(),
        "prices.json": (json.dumps(prices) + "\n").encode(),
        "title_nouns.json": (json.dumps(nouns) + "\n").encode(),
        "colours.txt": ("\n".join(_COLOURS) + "\n").encode(),
    }


def _record(dice: Dice, number: int) -> dict[str, Any]:
    noun, category, query, materials, attributes = _KINDS[number % len(_KINDS)]
    brand, material = dice.pick(_BRANDS), dice.pick(materials.split())
    own = dice.shuffled(attributes.split(", "))[: dice.between(1, 3)]
    options: dict[str, list[str]] = {}
    if dice.below(5):
        options["color"] = dice.shuffled(_COLOURS)[: dice.between(2, 4)]
    if noun in ("Shirt", "Backpack", "Blanket") and dice.below(4):
        options["size"] = list(_SIZES[: dice.between(2, 4)])
    price = dice.between(600, 12_000) / 100
    title = f"{brand} {material.capitalize()} {noun} {dice.between(100, 999)}, {' and '.join(own)}"
    return {
        "asin": f"S{number:02d}{dice.between(100_000, 999_999)}X",
        "Title": title,
        "Description": f"A {material} {noun.lower()} by {brand}. It is {', '.join(own)}.",
        "BulletPoints": [f"{text.capitalize()}." for text in own],
        "Reviews": [],
        "Rating": "N.A.",
        "Price": f"${price:.2f}",
        "pricing": [price],
        "options": options,
        "Attributes": own,
        "query": query,
        "product_category": category,
    }


def _contents(record: dict[str, Any]) -> str:
    return " ".join([record["Title"], record["Description"], *record["BulletPoints"], record["query"]]).lower()


def _nouns(record: dict[str, Any]) -> list[str]:
    """Brand, material and noun of the title: the words before the number."""
    words = record["Title"].split(",")[0].lower().split()
    return [word for word in words if not word.isdigit()]


def _goals(dice: Dice, record: dict[str, Any]) -> list[dict[str, Any]]:
    """A goal per combination of options."""
    names = sorted(record["options"])
    upper = float(10 * (int(record["pricing"][0] // 10) + dice.between(1, 3)))
    found = []
    for values in combinations(*(record["options"][name] for name in names)):
        chosen = dict(zip(names, values, strict=True))
        asked = ", and ".join(f"{name}: {value}" for name, value in chosen.items())
        text = f"Find me {', '.join(record['Attributes'])} {record['query']}{' with ' + asked if asked else ''}"
        found.append(
            {
                "asin": record["asin"],
                "query": record["query"],
                "product_category": record["product_category"],
                "instruction_text": f"{text}, and price lower than {upper:.2f} dollars",
                "attributes": record["Attributes"],
                "price_upper": upper,
                "goal_options": chosen,
            }
        )
    return found


@click.command()
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), required=True, help="Folder of the files.")
@click.option("--seed", type=int, default=SEED, show_default=True, help="Seed of everything.")
def main(out: Path, seed: int) -> None:
    """Write the invented shop of WebShop into a folder."""
    out.mkdir(parents=True, exist_ok=True)
    for name, data in generate(seed).items():
        files.write_atomically(out / name, data)
        click.echo(f"{out / name}: {len(data):,} bytes")


if __name__ == "__main__":
    main()
