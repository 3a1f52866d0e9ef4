"""The catalogue: products, goals, prices, nouns of titles and colours, in one folder.

    products_index_docs_1k.jsonl   one product per line, as the original's index has it
    termvectors_1k.tsv             per product the stems of its text with their counts
    goals_500.json.gz              the goals, with the digest-relevant seeds
    prices_seed0.json              the price of every product
    title_nouns.json.gz            the nouns of every title, with repeats
    colours.txt                    the names of colours

The names may also lack the ``.gz``, and the numbers in them are not read.
"""

from __future__ import annotations

import gzip
import hashlib
import io
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import attrs

from handoff import files
from handoff.canonical import parse
from handoff.envs.webshop.search import Index
from handoff.errors import DataError

#: The most bytes of one file, as it lies there and unpacked.
MOST_BYTES = 200_000_000
#: The pattern of each file's name.
FILES = {
    "products": "products*.jsonl",
    "vectors": "termvectors*.tsv",
    "goals": "goals*.json*",
    "prices": "prices*.json",
    "nouns": "title_nouns.json*",
    "colours": "colours.txt",
}


@attrs.frozen
class Product:
    """One product."""

    asin: str
    title: str
    description: str
    bullets: tuple[str, ...]
    #: As it is listed.
    price_text: str
    rating: str
    #: Values by the name of the option, in the record's order.
    options: Mapping[str, tuple[str, ...]]
    attributes: tuple[str, ...]
    query: str
    category: str
    reviews: int = 0

    @property
    def texts(self) -> tuple[str, str, str]:
        """What an attribute may be contained in, in lower case."""
        return self.title.lower(), " ".join(self.bullets).lower(), self.description.lower()


@attrs.frozen
class ShopGoal:
    """What is to be bought."""

    number: int
    asin: str
    query: str
    category: str
    instruction: str
    attributes: tuple[str, ...]
    price_upper: float
    options: tuple[tuple[str, str], ...]


@attrs.frozen(eq=False)
class Catalogue:
    """All that the shop has."""

    products: Mapping[str, Product]
    goals: Sequence[ShopGoal]
    prices: Mapping[str, float]
    nouns: Mapping[str, tuple[str, ...]]
    colours: tuple[str, ...]
    index: Index
    #: sha256 by file.
    digests: Mapping[str, str]


@lru_cache(maxsize=4)
def load(folder: str, prices: str | None = None) -> Catalogue:
    """The catalogue in ``folder``; ``prices`` is a file of other prices.

    Raises :class:`~handoff.errors.DataError`, naming the file.
    """
    reader = _Reader(Path(folder).expanduser())
    colours = tuple(sorted(line.strip() for line in reader.text("colours").splitlines() if line.strip()))
    products = {}
    for number, line in enumerate(reader.text("products").splitlines(), start=1):
        if line.strip():
            product = _product(reader.parsed(line, "products", number), reader.where("products", number))
            products[product.asin] = product
    stated: Any = reader.parsed(reader.text("prices", prices), "prices")
    if not isinstance(stated, dict):
        raise DataError(f"{reader.where('prices')}: not an object of prices")
    for asin in products:
        if type(stated.get(asin)) not in (int, float):
            raise DataError(f"{reader.where('prices')}: the price of {asin} is {stated.get(asin)!r:.40}, not a number")
    form: Any = reader.parsed(reader.text("goals"), "goals")
    entries = form.get("goals") if isinstance(form, dict) else form
    if not isinstance(entries, list):
        raise DataError(f"{reader.where('goals')}: not a list of goals")
    goals = [_goal(entry, number, reader.where("goals", number + 1)) for number, entry in enumerate(entries)]
    for goal in goals:
        if goal.asin not in products:
            raise DataError(
                f"{reader.where('goals', goal.number + 1)}: its product {goal.asin} is not in the catalogue"
            )
    nouns: Any = reader.parsed(reader.text("nouns"), "nouns")
    missing = next((asin for asin in products if not isinstance(nouns, dict) or asin not in nouns), None)
    if missing is not None:
        raise DataError(f"{reader.where('nouns')}: no nouns of the title of {missing}")
    return Catalogue(
        products=products,
        goals=tuple(goals),
        prices={asin: float(stated[asin]) for asin in products},
        nouns={asin: tuple(map(str, nouns[asin])) for asin in products},
        colours=colours,
        index=Index.of(_vectors(reader, products)),
        digests=dict(sorted(reader.digests.items())),
    )


def _vectors(reader: _Reader, products: Mapping[str, Product]) -> list[tuple[str, dict[str, int]]]:
    vectors = []
    for number, line in enumerate(reader.text("vectors").splitlines(), start=1):
        asin, *entries = line.split("\t")
        try:
            pairs = [entry.rsplit(" ", 1) for entry in entries if entry]
            vectors.append((asin, {term: int(count) for term, count in pairs}))
        except ValueError as error:
            raise DataError(f"{reader.where('vectors', number)}: not terms with their counts") from error
    known = {asin for asin, _ in vectors}
    missing = next((asin for asin in products if asin not in known), None)
    if missing is not None:
        raise DataError(f"{reader.where('vectors')}: no terms of {missing}")
    return [(asin, vector) for asin, vector in vectors if asin in products]


def _product(form: Any, where: str) -> Product:
    try:
        record = form["product"]
        options = record["options"]
        return Product(
            asin=str(form["id"]),
            title=str(record["Title"]),
            description=str(record["Description"]),
            bullets=tuple(map(str, record["BulletPoints"])),
            price_text=str(record["Price"]),
            rating=str(record["Rating"]),
            options={str(name): tuple(map(str, values)) for name, values in options.items()},
            attributes=tuple(map(str, record["Attributes"])),
            query=str(record["query"]),
            category=str(record["product_category"]),
            reviews=len(record["Reviews"]),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{where}: a product lacks {error}") from error


def _goal(form: Any, number: int, where: str) -> ShopGoal:
    try:
        if type(form["price_upper"]) not in (int, float):
            raise TypeError("a price cap that is a number")
        return ShopGoal(
            number=number,
            asin=str(form["asin"]),
            query=str(form["query"]),
            category=str(form["product_category"]),
            instruction=str(form["instruction_text"]),
            attributes=tuple(map(str, form["attributes"])),
            price_upper=float(form["price_upper"]),
            options=tuple((str(name), str(value)) for name, value in form["goal_options"].items()),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{where}: a goal lacks {error}") from error


@attrs.define
class _Reader:
    folder: Path
    digests: dict[str, str] = attrs.Factory(dict)
    _paths: dict[str, Path] = attrs.Factory(dict)

    def where(self, kind: str, line: int | None = None) -> str:
        place = f"WebShop's data: {self._paths.get(kind, self.folder)}"
        return place if line is None else f"{place}, entry {line}"

    def text(self, kind: str, instead: str | None = None) -> str:
        """The text of a file of the folder, unpacked, or of the file ``instead``."""
        if instead is not None:
            path = Path(instead).expanduser()
        else:
            paths = sorted(self.folder.glob(FILES[kind]))
            if not paths:
                raise DataError(f"WebShop's data: {self.folder} has no file {FILES[kind]}")
            path = paths[0]
        self._paths[kind] = path
        try:
            raw = files.read(path, MOST_BYTES)
            self.digests[path.name] = hashlib.sha256(raw).hexdigest()
            if path.suffix == ".gz":
                raw = gzip.GzipFile(fileobj=io.BytesIO(raw)).read(MOST_BYTES)
        except (OSError, EOFError) as error:
            raise DataError(f"{self.where(kind)}: cannot read the file: {error}") from error
        return files.text_of(raw, self.where(kind))

    def parsed(self, text: str, kind: str, line: int | None = None) -> Any:
        try:
            return parse(text)
        except ValueError as error:
            raise DataError(f"{self.where(kind, line)}: not valid JSON: {error}") from error
