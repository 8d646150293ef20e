"""
More data than memory: Dask
===========================

The statistics of labelled time steps are sums, so a cluster adds up those of its partitions. Prediction runs on
partitions of whole sequences. This example uses threads of one machine;
with a ``distributed.Client`` it uses a cluster (see :doc:`/ecosystem`).
"""

# %%
# Sixty patients in six partitions. In practice this is ``dd.read_parquet("vitals/")``.

import dask.dataframe as dd
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from drhmm import DensityRatioHMM
from drhmm.dask import fit, predict
from drhmm.datasets import blobs
from drhmm.plotting import COLORS

X, y = blobs(60 * 400, noise=1.2, stay=0.985, random_state=0)
rows = pd.DataFrame(X, columns=["pulse", "pressure"])
rows["condition"] = np.array(["calm", "strained", "asleep"])[y]
rows["patient"] = np.arange(len(rows)) // 400
rows["minute"] = np.arange(len(rows)) % 400.0
ddf = dd.from_pandas(rows, npartitions=6)

# %%
# A sample of 5000 rows chooses centres, sigma, rho and the evidence scale; all 24,000 rows give the coefficients and
# the transitions.

estimator = DensityRatioHMM(n_basis=200, random_state=0)
fit(
    estimator,
    ddf,
    features=["pulse", "pressure"],
    label="condition",
    sequence="patient",
    time="minute",
    sample_size=5000,
)
result = predict(estimator, ddf, sequence="patient", time="minute").compute()
print(f"{np.mean(result.state == result.condition):.1%} of {len(result):,} rows right")

# %%
# One line per patient, true and predicted.

codes = {name: k for k, name in enumerate(["calm", "strained", "asleep"])}
palette = np.array([tuple(int(c[k : k + 2], 16) for k in (1, 3, 5)) for c in COLORS[:3]])
figure, panels = plt.subplots(1, 2, figsize=(9, 4), sharey=True, layout="constrained")
for axes, column, title in ((panels[0], "condition", "true"), (panels[1], "state", "predicted")):
    table = result.pivot(index="patient", columns="minute", values=column)
    image = palette[table.replace(codes).to_numpy(dtype=int)]
    axes.imshow(image.astype(np.uint8), aspect="auto", interpolation="nearest")
    axes.set(title=title, xlabel="minute")
panels[0].set_ylabel("patient")
figure.legend(
    handles=[plt.Rectangle((0, 0), 1, 1, color=COLORS[k], label=name) for name, k in codes.items()],
    loc="outside upper right",
    ncols=3,
    frameon=False,
)
plt.show()
