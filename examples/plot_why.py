"""
Why does a time step have its label?
====================================

The log odds of the two likeliest states, split into the past, the future, and each column of the time step. The data
are every tenth minute of an office: is it occupied? Download
:download:`occupancy.csv <../../examples/data/occupancy.csv>` into a folder ``data`` beside this script, or run it in
the folder ``examples`` of the repository.
"""

import matplotlib.pyplot as plt
import pandas as pd

from drhmm import DensityRatioHMM, dataframes

table = pd.read_csv("data/occupancy.csv")
train, test = table[table.recording == "training"], table[table.recording == "test 2"].reset_index(drop=True)
estimator = DensityRatioHMM(random_state=0)
model = dataframes.fit(estimator, train, label="occupancy", sequence="recording", time="minute").model_
columns = test[list(model.feature_names)]

# %%
# The first wrong row of the new recording, if there is one.

wrong = (model.predict(columns) != test.occupancy).to_numpy()
explained = model.explain(columns, int(wrong.argmax()))
explained.plot()
plt.show()
print(explained)

# %%
# The importance of columns over the whole recording.

model.rank_columns(columns, n_frames=200, random_state=0).plot()
plt.show()
