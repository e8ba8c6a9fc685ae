"""Numbers as people read them; always with a decimal point, whatever the locale."""

import math


def plain(value, digits=3):
    """0.0412, 6.21, 1234, 4.5e-7: so many digits, all of those before the point."""
    if value == 0:
        return "0"
    if abs(value) < 1e-3:
        mantissa, power = f"{value:.{digits - 2}e}".split("e")
        return f"{mantissa}e{int(power)}"
    # Of the rounded value: 0.9999 has the magnitude of 1.
    magnitude = int(f"{value:.{digits - 1}e}".split("e")[1])
    return f"{value:.{max(0, digits - 1 - magnitude)}f}"


def tick(value):
    """0.5, 20, 1e-6."""
    if 1e-3 <= abs(value) < 1e6 or value == 0:
        return f"{value:g}"
    mantissa, power = f"{value:.6e}".split("e")
    return f"{float(mantissa):g}e{int(power)}"


def tokens(count):
    """8160 → 8,160."""
    return f"{count:,.0f}"


def about_tokens(count):
    """Two digits: 6349 → ≈ 6,300."""
    return f"≈ {tokens(float(f'{count:.1e}'))}"


def binary(count):
    """1572864 → 1.5 MiB."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 999.5 or unit == "GiB":
            return f"{count:.3g} {unit}"
        count /= 1024
    raise AssertionError(count)


def signed_percent(change):
    """0.0312 → +3.1 %, −0.4 → −40 %."""
    digits = 1 if abs(change) < 0.0995 else 0
    return f"{100 * change:+.{digits}f} %".replace("-", "−")


def clipped(text, most=60):
    """A name that is longer than any label can be ends in dots."""
    return text if len(text) <= most else text[:most - 1] + "…"


def span(values):
    """The smallest and largest of some numbers: 3, or 3–7."""
    low, high = min(values), max(values)
    return f"{low:g}" if math.isclose(low, high) else f"{low:g}–{high:g}"
