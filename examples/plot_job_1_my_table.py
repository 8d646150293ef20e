"""
Labels for a table of several recordings
========================================

A CSV file with a label, a recording and a time in every row: learn, see how good it is where nothing was learned from,
and label the rest. The data are every tenth minute of an office: is it occupied?
"""

import pandas as pd

from drhmm import DensityRatioHMM, dataframes, evaluate

table = pd.read_csv("data/occupancy.csv")
train, test = table[table.recording == "training"], table[table.recording == "test 2"]
model = dataframes.fit(
    DensityRatioHMM(random_state=0), train, label="occupancy", sequence="recording", time="minute"
).model_
model

# %%
# How good is it on a recording that it has never seen?

features = list(model.feature_names)
evaluation = evaluate(model, test[features], test.occupancy)
evaluation

# %%
# ``evaluation.save_html("report.html")`` writes a page with pictures. The states of new rows need no names of columns:
# the model remembers them.

states = dataframes.predict(model, table[table.recording == "test 1"].drop(columns="occupancy"))
states.tail()
