"""What all pictures share: SVG that follows the reader's light or dark colours, with a name for screen readers. No scripts, nothing loaded."""
from .report import escape

MONO = 'font-family="ui-monospace,Menlo,Consolas,&quot;DejaVu Sans Mono&quot;,monospace"'
SANS = 'font-family="system-ui,sans-serif"'
# By class: the ground, words, words of less weight, what warns, lines, frames of what has no colour of its own. Words on coloured boxes (xd) are
# dark in any case, since the boxes are light. Lines have a contrast of 3:1 at least, words of 4.5:1 (tests/python/test_all_pictures.py).
LIGHT = {"ground": "#ffffff", "text": "#1b1f24", "muted": "#57606a", "warn": "#b91c1c", "line": "#6b7280", "plain": "#ffffff"}
DARK = {"ground": "#0f1318", "text": "#e6edf3", "muted": "#9aa4b2", "warn": "#ff7b72", "line": "#8c959f", "plain": "#1b222b"}
ON_COLOUR = "#1b1f24"


def rules(colours):
    return (f".xg{{fill:{colours['ground']}}}.xt{{fill:{colours['text']}}}.xm{{fill:{colours['muted']}}}.xr{{fill:{colours['warn']}}}"
            f".xl{{stroke:{colours['warn']};fill:none}}.xe{{stroke:{colours['line']};fill:none}}.xa{{fill:{colours['line']}}}"
            f".xc{{fill:{colours['plain']};stroke:{colours['line']}}}")


STYLE = f"<style>.xd{{fill:{ON_COLOUR}}}{rules(LIGHT)}@media (prefers-color-scheme:dark){{{rules(DARK)}}}</style>"


def frame(width, height, parts, what, font=SANS):
    """The whole picture; `what` is its name."""
    size = f'width="{width:.0f}" height="{height:.0f}"'
    return (f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{escape(what)}" {font} '
            f'font-size="11"><title>{escape(what)}</title>{STYLE}<rect width="100%" height="100%" class="xg"/>{"".join(parts)}</svg>')


def words(x, y, said, kind="xt", extra=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" {extra}xml:space="preserve">{escape(said)}</text>'


def channel(value):
    value /= 255
    return value / 12.92 if value <= 0.03928 else ((value + 0.055) / 1.055) ** 2.4


def luminance(colour):
    red, green, blue = (channel(int(colour[i:i + 2], 16)) for i in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    """Of two colours such as #1b1f24, as WCAG defines it: 1 to 21."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)
