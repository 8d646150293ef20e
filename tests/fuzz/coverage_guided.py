"""The targets that read bytes, led by what their inputs reach in the Python code (atheris: `pip install --group fuzz`).

    python tests/fuzz/coverage_guided.py model_files --seconds 300
    python tests/fuzz/coverage_guided.py snapshots --seconds 300 --keep folder      inputs that reached something new

Starts from the kept inputs. Half of the changes are those of the target itself, which knows the format and signs what
it made; the others are libFuzzer's. The first finding ends the run with a status and a file that holds the input:

    python tests/fuzz/coverage_guided.py snapshots --again crash-0123
"""

from __future__ import annotations

import argparse
import importlib
import sys
import tempfile
import zlib
from pathlib import Path

import numpy as np

try:
    import atheris
except ModuleNotFoundError:
    atheris = None

CORPUS = Path(__file__).parent / "corpus"


def model_files(target):
    return target.prepare(), lambda random, content, _: target.judged(random, signed_file(target, content))


def signed_file(target, content):
    try:
        return target.joined(*target.split(content))
    except Exception:
        return content  # no longer a file of arrays with a header


def snapshots(target):
    made = target.prepare()
    models = {model.fingerprint: model for model, _, _ in made}

    def judged(random, content, _):
        content = target.signed(content)
        known = [model for fingerprint, model in models.items() if bytes.fromhex(fingerprint) in content]
        method = "resume_batch" if content[10:11] == b"\1" else "resume"
        target.judged(random, (known or list(models.values()))[0], method, content)

    return [content for _, _, content in made], judged


def lines(target):
    folder, texts, n_models = target.prepare()

    def judged(random, content, number):
        options = target.OPTIONS[number % len(target.OPTIONS)]
        target.judged(["stream", str(folder / f"{number % n_models}.drhmm"), *options], content)

    return texts, judged


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", choices=("model_files", "snapshots", "lines"))
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--keep", help="folder for inputs that reached something new")
    parser.add_argument("--again", help="file with one input")
    options = parser.parse_args()
    if atheris is None:
        parser.error("atheris is not installed: pip install --group fuzz")
    with atheris.instrument_imports(include=["drhmm"]):
        target = importlib.import_module(options.target)
    seeds, judged = globals()[options.target](target)

    def one_input(content):
        number = zlib.crc32(content)
        with np.errstate(all="ignore"):
            judged(np.random.default_rng(number), content, number)

    def mutated(content, most, seed):
        random = np.random.default_rng(seed)
        if random.random() < 0.5:
            try:
                made = target.changed(random, content, seeds)
                return made if 0 < len(made) <= most else content
            except Exception:
                pass  # content is no longer what the target can change
        return atheris.Mutate(content, most)

    with tempfile.TemporaryDirectory() as folder:
        for k, seed in enumerate(seeds):
            (Path(folder) / f"seed-{k}").write_bytes(seed)
        arguments = [sys.argv[0], f"-max_total_time={options.seconds}", "-max_len=20000", "-timeout=60"]
        arguments += ["-rss_limit_mb=4096", "-print_final_stats=1", "-verbosity=0"]
        kept = Path(options.keep or folder)
        kept.mkdir(parents=True, exist_ok=True)
        starts = [folder, *(str(CORPUS / name) for name in (options.target, f"reached/{options.target}"))]
        arguments += [options.again] if options.again else [str(kept), *starts]
        atheris.Setup(arguments, one_input, custom_mutator=mutated)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
