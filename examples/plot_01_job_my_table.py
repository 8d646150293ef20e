"""
Labels for a table of several recordings
========================================

A CSV file with a label, a recording and a time in every row: learn, evaluate on a new recording, and label the rest.
The data are every tenth minute of an office: is it occupied? Download
:download:`occupancy.csv <../../examples/data/occupancy.csv>` into a folder ``data`` beside this script, or run it in
the folder ``examples`` of the repository.
"""

import matplotlib.pyplot as plt
import pandas as pd

from drhmm import DensityRatioHMM, dataframes, evaluate, plotting

table = pd.read_csv("data/occupancy.csv")
train, test = table[table.recording == "training"], table[table.recording == "test 2"]
model = dataframes.fit(
    DensityRatioHMM(random_state=0), train, label="occupancy", sequence="recording", time="minute"
).model_
model

# %%
# How good is it on a new recording?

features = list(model.feature_names)
evaluation = evaluate(model, test[features], test.occupancy)
evaluation

# %%
# ``evaluation.save_html("report.html")`` writes a page with pictures. The model finds the columns of new rows by name.

unlabelled = table[table.recording == "test 1"].drop(columns="occupancy")
states = dataframes.predict(model, unlabelled)
states.tail()

# %%
# The same as a picture: the CO2 of the new recording, and the probability of each state.

posteriors = model.predict_proba(unlabelled[features])
plotting.sequence(unlabelled[["co2"]], posteriors, names=model.classes, times=unlabelled.minute)
plt.show()
