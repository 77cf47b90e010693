# SPDX-License-Identifier: Apache-2.0
"""Grids of numbers, from imshow and pcolormesh: one element {label, values: rows}."""
from .axis import Plane, number

SIDE_MAX = 500


def grid_of(artist):
    """The numbers as a matrix, or None: a picture in colours is no data."""
    import numpy

    array = artist.get_array()
    if array is None:
        return None
    array = numpy.ma.filled(numpy.ma.asarray(array, dtype=float), numpy.nan) if array.dtype.kind in "fiub" else None
    if array is not None and array.ndim == 1:
        corners = getattr(artist, "_coordinates", None)
        array = None if corners is None else fold(array, corners.shape)
    return array if array is not None and array.ndim == 2 else None


def fold(array, shape):
    """Flat shading has a value per cell, Gouraud's one per corner."""
    rows, columns = shape[0] - 1, shape[1] - 1
    if array.size == rows * columns:
        return array.reshape(rows, columns)
    return array.reshape(shape[0], shape[1]) if array.size == shape[0] * shape[1] else None


def fill_grid(ax, chart, grid):
    Plane(ax).describe(chart, ticks=True)
    kept = grid[:SIDE_MAX, :SIDE_MAX]
    made = {"label": "", "values": [[number(v) for v in row] for row in kept.tolist()]}
    if kept.size < grid.size:
        made["truncated"] = list(grid.shape)
    chart["elements"].append(made)
