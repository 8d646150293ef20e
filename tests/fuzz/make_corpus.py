"""Writes the inputs that fuzzing starts from: two models, a snapshot and lines."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from drhmm import DensityRatioHMM

FOLDER = Path(__file__).parent / "corpus"

LINES = {
    "plain.csv": "1.5,2.5\n-3,0.25\n,1\n1e3,-1e-3\n",
    "names.csv": "a,b\n1.5,2.5\n-3,0.25\nnan,1\n",
    "sequences.csv": "who,when,a,b\nx,1,0.5,1\ny,1,0.25,2\nx,2,0.5,1\nx,9,1,1\n",
    "dates.csv": 'when,a,b\n2026-01-31T12:00:00,1,2\n2026-01-31T12:00:01,"1",2\n2026-02-01,3,4\n',
    "lists.json": "[1.5, 2.5]\n[null, 1]\n[3, -4e2]\n",
    "objects.json": '{"a": 1, "b": 2.5}\n{"b": null, "a": 1, "more": [1, {"x": "y"}]}\n',
    "sequences.json": '{"a": 1, "b": 2, "who": "x", "when": 1}\n{"a": 1, "b": 2, "who": 7, "when": "2026-01-31"}\n',
}


def main():
    random = np.random.default_rng(0)
    y = np.repeat(random.integers(3, size=40), 5)
    X = 3.0 * random.normal(size=(3, 2))[y] + random.normal(size=(200, 2))
    common = {"n_basis": 4, "sigma": 2.0, "rho": 0.01, "evidence_scale": 1.0, "random_state": 0}
    plain = DensityRatioHMM(**common).fit(X, y).model_
    novelty = DensityRatioHMM(**common, window=2, novelty=True).fit(X, np.array(["x", "y", "z"])[y]).model_
    for name in ("model_files", "snapshots", "lines"):
        (FOLDER / name).mkdir(parents=True, exist_ok=True)
    plain.save(FOLDER / "model_files" / "plain.drhmm")
    novelty.save(FOLDER / "model_files" / "novelty.drhmm")
    stream = novelty.stream(1)
    for x in X[:5]:
        stream.step(x)
    (FOLDER / "snapshots" / "novelty.bin").write_bytes(stream.snapshot())
    for name, text in LINES.items():
        (FOLDER / "lines" / name).write_text(text)


if __name__ == "__main__":
    main()
