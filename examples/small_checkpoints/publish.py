"""Step 4: checkpoints as they ship.

    python publish.py --into ../../artifacts/checkpoints base=work/sft-400 sft=work/sft rl=work/rl control=work/control

copies what transformers loads and writes ``manifest.json`` beside it: the command of the training, seeds, digests of
data and weights, versions, times, and the training curve.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path

from arguments import refuse
from trainer import digest

FILES = ("config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")


def command(arguments: dict[str, object], script: str) -> str:
    """The training's command, folders as in the instructions."""
    words = ["python", script]
    for name, value in arguments.items():
        for each in value if isinstance(value, list) else [value]:
            if each is True:
                words.append(f"--{name}")
            elif each not in (None, False):
                words += [f"--{name}", Path(each).name if name in ("out", "start", "data") else str(each)]
    return " ".join(words)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--into", type=Path, required=True)
    parser.add_argument("checkpoints", nargs="+", metavar="NAME=FOLDER")
    given = parser.parse_args()
    for entry in given.checkpoints:
        name, equals, source = entry.partition("=")
        missing = [file for file in (*FILES, "training.json") if not (Path(source) / file).is_file()]
        if not (name and equals and source) or Path(name).name != name:
            refuse(f"write NAME=FOLDER, such as rl=work/rl, not {entry}")
        if missing:
            refuse(f"{source} holds no finished training: it has no {missing[0]}")
    for entry in given.checkpoints:
        name, _, source = entry.partition("=")
        folder = Path(source)
        target = given.into / name
        target.mkdir(parents=True, exist_ok=True)
        for file in FILES:
            shutil.copyfile(folder / file, target / file)
            (target / file).chmod(0o644)
        training = json.loads((folder / "training.json").read_text("utf-8"))
        arguments = training.pop("arguments")
        script = "rl.py" if "iterations" in arguments else "sft.py"
        curve = folder if (folder / "curve.jsonl").exists() else folder.with_name(folder.name.rpartition("-")[0])
        lines = [json.loads(line) for line in (curve / "curve.jsonl").read_text("utf-8").splitlines()]
        manifest = {
            "name": name,
            "command": command(arguments, script),
            **training,
            "tokenizer_sha256": digest(target / "tokenizer.json"),
            "curve": [line for line in lines if line["step"] <= training["step"]],
        }
        text = json.dumps(manifest, indent=1)
        (target / "manifest.json").write_text(text + "\n", "utf-8")
        print(f"{name}: {(target / 'model.safetensors').stat().st_size / 1e6:.1f} MB, {training['cpu_s']:.0f} s of CPU")


if __name__ == "__main__":
    main()
