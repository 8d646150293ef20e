"""
Data frames
===========

Tables come from pandas, polars and Arrow, columns are found by name, and missing rows by the time column. The result is
a table of the same kind with a state and its probability in every row.
"""

# %%
# Three people wear a sensor; one row is one second. Bela's sensor paused for a minute.

import matplotlib.dates as mdates
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from drhmm import DensityRatioHMM, dataframes
from drhmm.datasets import markov_chain
from drhmm.plotting import COLORS

names = np.array(["rest", "walk", "run"])
transmat = [[0.98, 0.02, 0.0], [0.02, 0.97, 0.01], [0.0, 0.03, 0.97]]
random = np.random.RandomState(0)


def day(person, n_rows, seed):
    states = markov_chain(n_rows, transmat, random_state=seed)
    second = pd.date_range("2026-05-01 08:00", periods=n_rows, freq="s")
    motion, pulse = np.array([[0.2, 65], [1.2, 95], [2.2, 130]])[states].T
    return pd.DataFrame(
        {
            "person": person,
            "second": second,
            "motion": motion + 0.5 * random.standard_normal(n_rows),
            "pulse": pulse + 18 * random.standard_normal(n_rows),
            "activity": names[states],
        }
    )


train = pd.concat([day("Ada", 900, 0), day("Cleo", 900, 1)])
test = pd.concat([day("Bela", 600, 2), day("Dora", 600, 3), day("Edda", 600, 4)], ignore_index=True)
test = test[~((test.person == "Bela") & test.second.between("2026-05-01 08:04", "2026-05-01 08:05"))]

# %%
# ``sequence_id`` names the sequence of each row. The labels are text, and so are the predictions.

columns = ["motion", "pulse"]
model = DensityRatioHMM(random_state=0).fit(train[columns], train.activity, sequence_id=train.person).model_
result = dataframes.predict(model, test, sequence="person", time="second")
result.sample(5, random_state=0).sort_index()

# %%
# The true activities above, the predicted ones below, faint where they are uncertain. The prediction after the pause
# takes its length into account.

figure, panels = plt.subplots(3, 1, figsize=(9, 3.6), sharex=True, layout="constrained")
color = dict(zip(names, COLORS, strict=False))
for axes, (person, rows) in zip(panels, result.groupby("person"), strict=True):
    axes.bar(rows.second, 0.45, bottom=0.52, width=1 / 86400, color=rows.activity.map(color))
    shades = [(color[state], p) for state, p in zip(rows.state, rows.probability, strict=True)]
    axes.bar(rows.second, 0.45, width=1 / 86400, color=shades)
    share = np.mean(rows.state == rows.activity)
    axes.set_ylabel(f"{person}\n{share:.0%} right", rotation=0, ha="right", va="center", fontsize=9)
    axes.set_yticks([])
    axes.spines[["top", "right", "left"]].set_visible(False)
panels[-1].xaxis.set_major_formatter(mdates.DateFormatter("%H:%M"))
figure.legend(
    handles=[plt.Rectangle((0, 0), 1, 1, color=color[name], label=name) for name in names],
    loc="outside upper right",
    ncols=3,
    frameon=False,
    fontsize=9,
)
plt.show()

# %%
# A polars table gives a polars table.

import polars as pl

dataframes.predict(model, pl.from_pandas(test), sequence="person", time="second", probabilities=True).head(3)
