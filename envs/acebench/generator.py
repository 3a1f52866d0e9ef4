"""The invented set that ships: two tasks per category, in English, with functions and questions of its own.

python -m handoff.envs.acebench.generator --out artifacts/acebench
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from handoff import files

Properties = dict[str, Any]


def _function(name: str, description: str, required: str, **properties: Properties) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": required.split()}
    return {"name": name, "description": description, "parameters": parameters}


def _text(description: str, *choices: str) -> Properties:
    return {"type": "string", "description": description, **({"enum": list(choices)} if choices else {})}


def _of(kind: str, description: str, **more: Any) -> Properties:
    return {"type": kind, "description": description, **more}


_STRINGS = {"items": {"type": "string"}}
BOOK = _function(
    "bookRoom",
    "Book a meeting room.",
    "room day",
    room=_text("Name of the room."),
    day=_text("Day of the week."),
    hours=_of("integer", "How many hours."),
    catering=_of("boolean", "Whether there is to be food."),
    guests=_of("array", "Names of guests.", **_STRINGS),
)
LAMP = _function(
    "setLamp",
    "Set a lamp.",
    "lamp",
    lamp=_text("Which lamp."),
    on=_of("boolean", "Whether it is lit."),
    colour=_text("Colour.", "warm", "cold", "red"),
    level=_of("integer", "Brightness in percent."),
)
PARCEL = _function(
    "sendParcel",
    "Send a parcel.",
    "weight receiver",
    weight=_of("number", "Kilograms."),
    receiver=_of(
        "object",
        "Who gets it.",
        required=["name", "city"],
        properties={"name": {"type": "string"}, "city": {"type": "string"}, "floor": {"type": "integer"}},
    ),
    options=_of(
        "object",
        "How it is sent.",
        properties={
            "speed": {"type": "string", "enum": ["normal", "express"]},
            "insurance": {"type": "object", "properties": {"value": {"type": "integer"}, "kind": {"type": "string"}}},
        },
    ),
)
WALK = _function(
    "planWalk",
    "Plan a walk.",
    "start",
    start=_text("Where it starts."),
    stops=_of("array", "Places on the way.", **_STRINGS),
)
TEA = _function("orderTea", "Order tea.", "kind", kind=_text("Which tea."), cups=_of("integer", "How many cups."))
TEA_SHOP = _function(
    "orderTeaLeaves",
    "Order tea leaves for a shop.",
    "kind kilograms",
    kind=_text("Which tea."),
    kilograms=_of("integer", "How much."),
)

#: Category -> question, functions, gold.
TASKS: dict[str, tuple[tuple[str, list[dict[str, Any]], Any], ...]] = {
    "normal_atom_bool": (
        ("user: Please light the desk lamp.\n", [LAMP, TEA], {"setLamp": {"lamp": "desk lamp", "on": True}}),
        (
            "user: Book the Blue Room on Monday, with food.\n",
            [BOOK],
            {"bookRoom": {"room": "Blue Room", "day": "Monday", "catering": True}},
        ),
    ),
    "normal_atom_enum": (
        ("user: Make the hall lamp red.\n", [LAMP], {"setLamp": {"lamp": "hall lamp", "colour": "red"}}),
        (
            "user: The kitchen lamp, cold please.\n",
            [LAMP, WALK],
            {"setLamp": {"lamp": "kitchen lamp", "colour": "cold"}},
        ),
    ),
    "normal_atom_list": (
        (
            "user: Plan a walk from the mill by the bridge and the oak.\n",
            [WALK],
            {"planWalk": {"start": "mill", "stops": ["bridge", "oak"]}},
        ),
        (
            "user: Book the Attic on Friday for Ada and Ben.\n",
            [BOOK, TEA],
            {"bookRoom": {"room": "Attic", "day": "Friday", "guests": ["Ada", "Ben"]}},
        ),
    ),
    "normal_atom_number": (
        ("user: Three cups of mint tea.\n", [TEA], {"orderTea": {"kind": "mint", "cups": 3}}),
        ("user: Dim the bed lamp to 20 percent.\n", [LAMP], {"setLamp": {"lamp": "bed lamp", "level": 20}}),
    ),
    "normal_atom_object_short": (
        (
            "user: Send 2 kg to Ida in Norwick.\n",
            [PARCEL],
            {"sendParcel": {"weight": 2, "receiver": {"name": "Ida", "city": "Norwick"}}},
        ),
        (
            "user: 5 kg for Sam, Farport, third floor.\n",
            [PARCEL, LAMP],
            {"sendParcel": {"weight": 5, "receiver": {"name": "Sam", "city": "Farport", "floor": 3}}},
        ),
    ),
    "normal_atom_object_deep": (
        (
            "user: Send 1 kg to Uma in Ostgate, express, insured for 300 against loss.\n",
            [PARCEL],
            {
                "sendParcel": {
                    "weight": 1,
                    "receiver": {"name": "Uma", "city": "Ostgate"},
                    "options": {"speed": "express", "insurance": {"value": 300, "kind": "loss"}},
                }
            },
        ),
        (
            "user: 4 kg to Leo in Marfield, insured for 50 against damage.\n",
            [PARCEL],
            {
                "sendParcel": {
                    "weight": 4,
                    "receiver": {"name": "Leo", "city": "Marfield"},
                    "options": {"insurance": {"value": 50, "kind": "damage"}},
                }
            },
        ),
    ),
    "normal_single_turn_single_function": (
        (
            "user: Book the Green Room on Tuesday for 2 hours.\n",
            [BOOK, TEA],
            {"bookRoom": {"room": "Green Room", "day": "Tuesday", "hours": 2}},
        ),
        (
            "user: A walk from the station.\nsystem: By which places?\nuser: By the old well.\n",
            [WALK],
            {"planWalk": {"start": "station", "stops": ["old well"]}},
        ),
    ),
    "normal_single_turn_parallel_function": (
        (
            "user: Light the hall lamp and order 2 cups of green tea.\n",
            [LAMP, TEA],
            {"setLamp": {"lamp": "hall lamp", "on": True}, "orderTea": {"kind": "green", "cups": 2}},
        ),
        (
            "user: One cup of mint tea and one of black tea.\n",
            [TEA],
            {"orderTea_1": {"kind": "mint", "cups": 1}, "orderTea_2": {"kind": "black", "cups": 1}},
        ),
    ),
    "normal_similar_api": (
        (
            "user: I need 5 kilograms of jasmine tea leaves for my shop.\n",
            [TEA, TEA_SHOP],
            {"orderTeaLeaves": {"kind": "jasmine", "kilograms": 5}},
        ),
        ("user: 4 cups of jasmine tea, please.\n", [TEA, TEA_SHOP], {"orderTea": {"kind": "jasmine", "cups": 4}}),
    ),
    "normal_preference": (
        ("user: Two cups of my usual tea.\n", [TEA], {"orderTea": {"kind": "elderflower", "cups": 2}}),
        ("user: My reading lamp as I like it.\n", [LAMP], {"setLamp": {"lamp": "reading lamp", "colour": "warm"}}),
    ),
    "special_incomplete": (
        ("user: Send a parcel to Ida in Norwick.\n", [PARCEL], {"sendParcel": ["weight"]}),
        ("user: Book a room, please.\n", [BOOK], {"bookRoom": ["room", "day"]}),
    ),
    "special_error_param": (
        ("user: Make the hall lamp purple.\n", [LAMP], {"colour": ["purple"]}),
        ("user: Book the Attic on Someday.\n", [BOOK], {"day": ["Someday"]}),
    ),
    "special_irrelevant": (
        (
            "user: What is the weather in Norwick?\n",
            [LAMP, TEA],
            "Due to the limitations of the function, I cannot solve this problem.",
        ),
        (
            "user: Translate this letter.\n",
            [WALK],
            "Due to the limitations of the function, I cannot solve this problem.",
        ),
    ),
}
PROFILES = {"normal_preference": '{"usual tea": "elderflower", "likes reading light": "warm"}'}


def generate() -> dict[str, bytes]:
    """The files by name."""
    made: dict[str, bytes] = {}
    for category, tasks in TASKS.items():
        entries, golds = [], []
        for number, (question, functions, gold) in enumerate(tasks):
            id = f"{category}_{number}"
            profile = {"profile": PROFILES[category]} if category in PROFILES else {}
            entries.append(json.dumps({"id": id, "question": question, "function": functions, **profile}))
            golds.append(json.dumps({"id": id, "ground_truth": gold}))
        made[f"data_en/data_{category}.json"] = ("\n".join(entries) + "\n").encode()
        made[f"data_en/possible_answer/data_{category}.json"] = ("\n".join(golds) + "\n").encode()
    return made


@click.command()
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), required=True, help="Folder of the files.")
def main(out: Path) -> None:
    """Write the invented set of ACEBench into a folder."""
    for name, data in generate().items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        files.write_atomically(out / name, data)


if __name__ == "__main__":
    main()
