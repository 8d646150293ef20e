"""
Real data: on foot or driving
=============================

Delivery drivers get out of the van all the time. Their GPS gives a position every 5 seconds: when do they drive, and
when are they on foot? We learn from 40 trips of six minutes, and evaluate on 20 others. Each row has the speed before
and after a point, the speed over 20 seconds (all in m/s), and how sharply the path turns (in radians). Download
:download:`gps.csv <../../examples/data/gps.csv>` into a folder ``data`` beside this script, or run it in the folder
``examples`` of the repository. :download:`SOURCE.md <../../examples/data/SOURCE.md>` names the source (GPS-ordered
Activity Labels).
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from drhmm import DensityRatioHMM, dataframes, plotting

table = pd.read_csv("data/gps.csv")
speeds = ["speed_before", "speed_after", "speed_20s"]
table[speeds] = np.log1p(table[speeds])  # from standing to driving within one scale
parts = {part: rows.drop(columns="part").reset_index(drop=True) for part, rows in table.groupby("part")}
train, test = parts["training"], parts["test"]
model = dataframes.fit(DensityRatioHMM(random_state=0), train, label="label", sequence="trip").model_

# %%
# What does the chain add? We compare answers without the chain, live, with a delay of ten seconds, and given the whole
# trip. A lower log loss means better probabilities. Without the chain, trips break into too many segments. The whole
# trip has the best probabilities, and misses some short segments. The live answer is no better than that without
# the chain, because the context already has the past.

ways = {"without the chain": {"method": "frame"}, "live": {"method": "filter"}}
ways |= {"10 s later": {"lag": 2}, "whole trip": {}}
found = {name: dataframes.evaluate(model, test, **how) for name, how in ways.items()}
rows = [(one.accuracy, one.log_loss, one.predicted_segments.sum()) for one in found.values()]
print(pd.DataFrame(rows, list(found), ["accuracy", "log loss", "segments"]).round(3))
print("segments in the labels:", found["live"].true_segments.sum())
print("always on foot:", round(found["live"].baseline, 3))

# %%
# The first trip with at least four segments. From top to bottom: the speed, the labels, and the probability of each
# state, without the chain and given the whole trip.

segments = (test.label != test.label.shift()).groupby(test.trip).sum()
trip = test[test.trip == segments.index[segments >= 4][0]]
columns = trip[list(model.feature_names)]
alone, together = model.predict_proba(columns, method="frame"), model.predict_proba(columns)
posteriors = {"without the chain": alone, "whole trip": together}
speed = np.expm1(trip[["speed_20s"]])
axes = plotting.sequence(speed, posteriors, states=trip.label, names=model.classes)
axes[0].set_ylabel("speed, m/s")
axes[-1].set_xlabel("points, 5 seconds apart")
plt.show()
