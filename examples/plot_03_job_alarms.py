"""
Alarms for a machine
====================

Four days of normal operation, one row per minute from eight correlated sensors, and no labels: raise an alarm at
anything new, with about one false alarm a week.
"""

from drhmm import DensityRatioHMM, plotting
from drhmm.datasets import sensors

normal, _ = sensors(4 * 1440, faults=(), random_state=0)
model = DensityRatioHMM(1, novelty=True, random_state=0).fit(normal).model_
week, _ = sensors(7 * 1440, faults=(), random_state=1)  # normal, too, and not learned from, for the alarm levels
alarm = model.alarm(false_alarms=1, per="7d", hold_off="1h", normal=week, step=60)
alarm

# %%
# In the next two days sensors have offsets, or are swapped. When does that happen, and which columns are unusual?

days, fault = sensors(2 * 1440, faults=("bias", "swap"), random_state=2)
episodes = alarm.episodes(days)
for episode in episodes:
    column, share = episode.columns[0]
    print(f"minutes {episode.begin} to {episode.end}: column {column} ({share:.0%}); true: {fault[episode.peak]}")

# %%
# The evidence of single minutes and its sum, the levels that were learned from normal operation, and the alarms. An
# orange fault without a grey alarm is missed; an alarm without a fault is false.

axes = plotting.alarms(model.novelty_score(days), alarm, truth=fault != "normal")
