"""
Real data: minutes of apnea in a night
======================================

People with sleep apnea stop breathing many times in a night, and their heart rate swings with it. Which minutes of a
night have apnea, and how many are there? We learn from nine nights whose minutes were labelled by an expert, and
evaluate on seven other people. Each row describes the electrocardiogram of one minute. Download
:download:`apnea.csv <../../examples/data/apnea.csv>` into a folder ``data`` beside this script, or run it in the folder
``examples`` of the repository. :download:`SOURCE.md <../../examples/data/SOURCE.md>` names the source (PhysioNet
Apnea-ECG). This is an example, not a medical device.
"""

import matplotlib.pyplot as plt
import pandas as pd

from drhmm import DensityRatioHMM, dataframes, plotting

table = pd.read_csv("data/apnea.csv")
parts = {part: rows.drop(columns="part").reset_index(drop=True) for part, rows in table.groupby("part")}
train, test = parts["training"], parts["test"]
model = dataframes.fit(DensityRatioHMM(random_state=0), train, label="label", sequence="night").model_

# %%
# Seven new nights. The table compares the accuracy with that of the most frequent class, "normal", and counts the
# stretches of apnea in the labels and in the predictions.

evaluation = dataframes.evaluate(model, test)
evaluation

# %%
# How many minutes of apnea does each night have? The sum of the probabilities is the expected number. Some nights are
# far off: nine people are too few to learn from.

p_apnea = pd.Series(evaluation.posteriors[:, list(model.classes).index("apnea")])
minutes = pd.DataFrame({"labelled": test.label == "apnea", "expected": p_apnea})
print(minutes.groupby(test.night).sum().round(0).astype(int))

# %%
# Are the probabilities calibrated? Above the diagonal the model is too cautious, below it overconfident.

plotting.calibration(test.label, evaluation.posteriors, names=model.classes)
plt.show()

# %%
# One of the nights. From top to bottom: the heart rate, the labels of the expert, and the probability of apnea and of
# normal sleep, without the chain and given the whole night.

night = test[test.night == "a33"]
columns = night[list(model.feature_names)]
alone, together = model.predict_proba(columns, method="frame"), model.predict_proba(columns)
posteriors = {"without the chain": alone, "whole night": together}
axes = plotting.sequence(night[["heart_rate"]], posteriors, states=night.label, names=model.classes)
axes[0].set_ylabel("heart rate")
axes[-1].set_xlabel("minute")
plt.show()
