"""Direct labels: beside curves and points, never over each other, never outside the picture."""

import math

import numpy as np
from matplotlib.text import Text

import style

LINE = 0.19  # inches from label to label


def room(count):
    """Inches that axes need for so many labels beside them."""
    return max(3.5, LINE * count)


def spread(wanted, gap):
    """The ascending positions nearest to `wanted` (ascending, in [0, 1]) that lie `gap` apart.

    Least squares: neighbours that are too close form a block around their mean (pool adjacent
    violators), which may not leave [0, 1].
    """
    blocks = []  # [sum, count] of wanted positions, each less the gaps below it
    for i, at in enumerate(wanted):
        blocks.append([at - i * gap, 1])
        while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] > blocks[-1][0] / blocks[-1][1]:
            total, count = blocks.pop()
            blocks[-1][0] += total
            blocks[-1][1] += count
    means = [total / count for total, count in blocks for _ in range(count)]
    low, high = gap / 2, 1 - gap / 2 - (len(wanted) - 1) * gap
    return [max(low, min(high, mean)) + i * gap for i, mean in enumerate(means)]


def label_ends(axes, ends):
    """Writes labels right of the axes beside the ends of curves, and makes room for them.

    ends: list of (x, y, text, colour) in data coordinates. The limits of the axes become fixed.
    """
    axes.set(xlim=axes.get_xlim(), ylim=axes.get_ylim())
    figure = axes.figure
    style.set_margins(figure, right=0.35 + style.width_of(figure, [end[2] for end in ends]))
    frame = axes.get_window_extent()
    to_axes = axes.transData + axes.transAxes.inverted()
    ends = sorted(ends, key=lambda end: end[1])
    points = [to_axes.transform(end[:2]) for end in ends]
    gap = min(LINE * figure.dpi / frame.height, 1 / len(ends))
    beside = 1 + 0.22 * figure.dpi / frame.width
    places = spread([min(1, max(0, y)) for _, y in points], gap)
    for (x, y), at, (_, _, text, color) in zip(points, places, ends):
        axes.annotate(text, xy=(x, y), xytext=(beside, at), xycoords="axes fraction",
                      textcoords="axes fraction", fontsize=style.TEXT, color=style.darker(color),
                      va="center", annotation_clip=False,
                      arrowprops={"arrowstyle": "-", "color": color, "lw": 0.7, "alpha": 0.6,
                                  "relpos": (0, 0.5), "shrinkA": 1, "shrinkB": 4})


DISTANCES = (4, 12, 24, 38, 54, 72, 92)  # points between a marker and its label
DIRECTIONS = tuple(math.radians(angle) for angle in (0, 180, 90, 270, 40, 140, 320, 220))


def label_points(axes, points, path=()):
    """Writes a label at the nearest free place to each point, with a line where it is further off.

    points: list of (x, y, text, colour, diameter of the marker in points). path: corners of a line,
    along the axes from one to the next, that no label may cover. Call when the limits are final.
    """
    figure = axes.figure
    pixels = figure.dpi / 72
    renderer = figure.canvas.get_renderer()
    frame = axes.get_window_extent().extents
    centres = [axes.transData.transform(point[:2]) for point in points]
    taken = [box_around(*centre, size * pixels, size * pixels)
             for centre, (*_, size) in zip(centres, points)]
    corners = [axes.transData.transform(corner) for corner in path]
    taken += [(*np.minimum(start, end) - 2, *np.maximum(start, end) + 2)
              for start, end in zip(corners, corners[1:])]
    for (x, y), (at_x, at_y, text, color, size) in zip(centres, points):
        label = axes.annotate(text, (at_x, at_y), xytext=(0, 0), textcoords="offset points",
                              fontsize=style.TEXT - 0.5, color=style.darker(color), va="center",
                              ha="center", arrowprops={"arrowstyle": "-", "color": color, "lw": 0.7,
                                                       "shrinkA": 0, "shrinkB": size / 2})
        # Of the text alone: an annotation's own extent has its line in it.
        extent = Text.get_window_extent(label, renderer)
        places = [place_of(x, y, extent, (size / 2 + distance) * pixels, angle)
                  for distance in DISTANCES for angle in DIRECTIONS]
        place = min(places, key=lambda box: crowding(box, taken, frame))
        taken.append(place)
        left, bottom, right, top = place
        label.set_position((((left + right) / 2 - x) / pixels, ((bottom + top) / 2 - y) / pixels))
        label.arrow_patch.set_visible(place not in places[:len(DIRECTIONS)])


# Boxes are (left, bottom, right, top) in pixels.

def box_around(x, y, width, height):
    return x - width / 2, y - height / 2, x + width / 2, y + height / 2


def place_of(x, y, extent, distance, angle):
    """The box of a text that lies `distance` away from a point in a direction."""
    return box_around(x + math.cos(angle) * (distance + extent.width / 2),
                      y + math.sin(angle) * (distance + extent.height / 2),
                      extent.width, extent.height)


def overlap(one, other):
    """Square pixels that two boxes share."""
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    return width * height if width > 0 and height > 0 else 0


def crowding(box, taken, frame):
    """Square pixels of a box that are taken already, or outside the frame."""
    outside = overlap(box, box) - overlap(box, frame)
    return round(outside + sum(overlap(box, other) for other in taken), 3)
