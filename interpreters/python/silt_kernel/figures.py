# SPDX-License-Identifier: Apache-2.0
"""Matplotlib without a window: figures that are shown, or still open when a cell ends, become results.

The backend stays Agg, also for the programs that a cell starts; only what would open a window is changed.
"""
import io
import sys

from traitlets import Dict, Set, Unicode, observe
from traitlets.config import SingletonConfigurable

from . import imports, png

TIGHT = {"bbox_inches": "tight"}


class InlineBackend(SingletonConfigurable):
    """What notebooks set by `%config InlineBackend.figure_format = "retina"`."""

    figure_formats = Set(Unicode(), default_value={"png"}).tag(config=True)
    figure_format = Unicode("png").tag(config=True)
    print_figure_kwargs = Dict(TIGHT).tag(config=True)
    rc = Dict().tag(config=True)

    @observe("figure_format")
    def _format_changed(self, change):
        self.figure_formats = {change["new"]}


class Drawer:
    def __init__(self, settings):
        self.settings = settings

    def png(self, figure):
        formats = self.settings.figure_formats
        if "retina" in formats or "png2x" in formats:
            return self._draw(figure, "png", dpi=2 * figure.dpi)
        return self._draw(figure, "png") if "png" in formats or not formats & {"svg", "jpeg", "jpg"} else None

    def svg(self, figure):
        drawn = self._draw(figure, "svg") if "svg" in self.settings.figure_formats else None
        return drawn and drawn.decode("utf-8")

    def jpeg(self, figure):
        return self._draw(figure, "jpeg") if self.settings.figure_formats & {"jpeg", "jpg"} else None

    def _draw(self, figure, form, **extra):
        if not has_content(figure):
            return None
        if form == "png" and not extra and self.settings.print_figure_kwargs == TIGHT:
            drawn = draw_cropped(figure)
            if drawn is not None:
                return drawn
        out = io.BytesIO()
        figure.savefig(out, format=form, **{**self.settings.print_figure_kwargs, **extra})
        return out.getvalue()


def draw_cropped(figure):
    """What savefig(bbox_inches="tight") makes, but drawn once and cut, where it draws twice. None: it would
    not be the same, because something reaches over the edge, or is set otherwise."""
    from matplotlib import rcParams
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from numpy import asarray

    canvas, dpi = figure.canvas, figure.dpi
    if type(canvas) is not FigureCanvasAgg or rcParams["savefig.dpi"] not in ("figure", dpi) \
            or rcParams["savefig.facecolor"] != "auto" or rcParams["savefig.transparent"]:
        return None
    canvas.draw()
    box = tight_box(figure, canvas.get_renderer()).padded(rcParams["savefig.pad_inches"])
    width, height = canvas.get_width_height()
    left, lower = round(box.x0 * dpi), round(box.y0 * dpi)
    right, upper = left + int(box.width * dpi), lower + int(box.height * dpi)
    if left < 0 or lower < 0 or right > width or upper > height or right <= left or upper <= lower:
        return None
    return png.encode(asarray(canvas.buffer_rgba())[height - upper:height - lower, left:right], dpi)


def tight_box(figure, renderer):
    """figure.get_tightbbox(), which asks all axes twice: as what the figure holds, and as axes. The latter alone
    do the same in half of the time."""
    asked = [axes for axes in figure.axes if axes.get_in_layout()]
    try:
        for axes in asked:
            axes.set_in_layout(False)
        return figure.get_tightbbox(renderer)
    finally:
        for axes in asked:
            axes.set_in_layout(True)


def has_content(figure):
    return bool(figure.axes or figure.texts or figure.images or figure.lines or figure.patches
                or figure.legends or getattr(figure, "subfigs", None))


def chart(figure):
    """Marks the figure as shown; a chart that we cannot describe is no reason to fail."""
    figure._silt_shown = True
    from .charts.figure import chart_of

    try:
        return chart_of(figure)
    except Exception:
        return {"type": "unknown", "title": None, "elements": [], "data": [], "library": "matplotlib"}


def open_managers():
    helpers = sys.modules.get("matplotlib._pylab_helpers")
    return [] if helpers is None else helpers.Gcf.get_all_fig_managers()


def show_open():
    """Each figure once, in the order of their numbers, then none is open."""
    from IPython.core.display_functions import display

    try:
        for manager in open_managers():
            figure = manager.canvas.figure
            if not getattr(figure, "_silt_shown", False) and has_content(figure):
                display(figure)
    finally:
        close_open()


def close_open():
    helpers = sys.modules.get("matplotlib._pylab_helpers")
    if helpers is not None:
        helpers.Gcf.destroy_all()


def show(*_, block=None, **__):
    """pyplot.show(). With block=False (pause() calls it so) the figure goes on growing."""
    if block is not False:
        show_open()


def show_one(manager):
    from IPython.core.display_functions import display

    display(manager.canvas.figure)


def install():
    imports.after_import("matplotlib.pyplot", change_pyplot)
    imports.after_import("matplotlib.backend_bases", change_managers)


def change_pyplot(pyplot):
    show.__doc__ = pyplot.show.__doc__
    pyplot.show = show


def change_managers(backend_bases):
    backend_bases.FigureManagerBase.show = show_one
