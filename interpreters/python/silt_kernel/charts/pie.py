# SPDX-License-Identifier: Apache-2.0
"""Pies and rings: elements {label, angle (degrees), radius}."""
from .axis import number


def fill_pie(ax, chart, wedges):
    for wedge in wedges:
        label = str(wedge.get_label())
        chart["elements"].append({"label": "" if label.startswith("_") else label,
                                  "angle": round(float(abs(wedge.theta2 - wedge.theta1)), 4),
                                  "radius": number(wedge.r)})
