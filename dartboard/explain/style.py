"""Colours and style rules for notebooks.

The card has its own background, so it is readable on any page. It follows the notebook's theme if that is
declared (JupyterLab, VS Code, Colab, documentation themes), otherwise the system's. Pick colours are Okabe
and Ito's, darkened or lightened for contrast, and always come with a number.
"""

PICKS = ("#0072b2", "#c44f00", "#007d5b", "#a8477d", "#d08b00", "#45a3d9", "#a39500", "#4c545c")
_DARK_PICKS = ("#4aa8e8", "#f58a45", "#2fc79b", "#e39cc6", "#f0b434", "#93d4fa", "#ece25a", "#c4cad1")
_BRIGHT = (4, 5, 6)
"""Pick colours that need dark numbers even on a light page."""

INK, PAPER = "#10151a", "#ffffff"

LIGHT = {
    "surface": PAPER,
    "ring": "#f4f4f1",
    "ink": "#1b1e22",
    "soft": "#565d66",
    "line": "#d9dad6",
    "rest": "#ecece8",
    "alone": "#7d858d",
}
DARK = {
    "surface": "#191c1f",
    "ring": "#202428",
    "ink": "#e9ebee",
    "soft": "#a3abb5",
    "line": "#3a4046",
    "rest": "#2a2f34",
    "alone": "#8b949f",
}
_DARK_HOSTS = (
    "[data-jp-theme-light=false]",
    ".vscode-dark",
    ".vscode-high-contrast:not(.vscode-high-contrast-light)",
    "[data-theme=dark]",
    "[theme=dark]",
    "[data-md-color-scheme=slate]",
)
_LIGHT_HOSTS = (
    "[data-jp-theme-light=true]",
    ".vscode-light",
    ".vscode-high-contrast-light",
    "[data-theme=light]",
    "[data-md-color-scheme=default]",
)
_RULES = """
.dbv{box-sizing:border-box;max-width:1080px;padding:12px 14px;border:1px solid var(--db-line);
border-radius:8px;background:var(--db-surface);color:var(--db-ink);
font:13px/1.45 system-ui,"Segoe UI",Roboto,Arial,sans-serif;
text-align:start;container-type:inline-size}
.dbv *{box-sizing:border-box}
.dbv p{margin:0 0 2px;color:inherit;font-size:13px}
.dbv .dbv-head{font-size:14px;font-weight:650}
.dbv .dbv-facts,.dbv figcaption,.dbv summary,.dbv .dbv-text{color:var(--db-soft)}
.dbv figcaption,.dbv summary{font-size:12px}
.dbv summary{cursor:pointer;margin-top:8px}
.dbv .dbv-cols{display:flex;flex-wrap:wrap;gap:10px 22px;margin-top:8px;align-items:flex-start}
.dbv figure{flex:1 1 300px;max-width:430px;margin:0}
.dbv .dbv-side{flex:2 1 320px;min-width:0;overflow-x:auto}
.dbv svg{display:block;max-width:100%}
.dbv .dbv-map{width:100%;height:auto}
.dbv .dbv-ring{fill:var(--db-surface);stroke:var(--db-line)}
.dbv .dbv-odd{fill:var(--db-ring)}
.dbv .dbv-map text{font:11px system-ui,"Segoe UI",Roboto,Arial,sans-serif;text-anchor:middle}
.dbv .dbv-scale{fill:var(--db-soft);stroke:var(--db-surface);stroke-width:4px;paint-order:stroke}
.dbv .dbv-eye{stroke:var(--db-ink)}
.dbv .dbv-map .dbv-no,.dbv .dbv-mass .dbv-no{font-weight:700;font-size:12px}
.dbv .dbv-pick{stroke:var(--db-surface)}
.dbv .dbv-rest{fill:var(--db-rest)}
.dbv .dbv-most{stroke:var(--db-ink)}
.dbv .dbv-mass{width:100%;margin:2px 0 8px}
.dbv.dbv.dbv table{width:100%;margin:0;border-collapse:collapse;font-size:12.5px;color:inherit;
background:none;font-variant-numeric:tabular-nums;table-layout:auto}
.dbv.dbv.dbv tr{background:none;border:0}
.dbv.dbv.dbv th,.dbv.dbv.dbv td{padding:4px 12px 4px 0;border:0;border-top:1px solid var(--db-line);
background:none;text-align:end;vertical-align:baseline;color:inherit;font-weight:400;white-space:nowrap}
.dbv.dbv.dbv thead th{color:var(--db-soft);font-weight:600;border-top:0}
.dbv.dbv.dbv .dbv-l{text-align:start}
.dbv.dbv.dbv .dbv-free{white-space:normal;overflow-wrap:anywhere}
.dbv.dbv.dbv .dbv-name{min-width:7em;width:34%}
.dbv.dbv.dbv .dbv-text{border-top:0;padding-top:0}
.dbv .dbv-gain{display:inline-flex;align-items:center;justify-content:flex-end}
.dbv.dbv.dbv .dbv-gain svg{flex:none;width:48px;height:9px;max-width:none}
.dbv.dbv.dbv .dbv-mass{height:22px}
.dbv .dbv-gain span{min-width:3.6em}
.dbv .dbv-no-box{display:inline-block;min-width:20px;padding:0 5px;border-radius:10px;
text-align:center;font-weight:700}
.dbv .dbv-scroll{max-height:320px;overflow:auto}
@container (max-width:600px){.dbv.dbv.dbv .dbv-gain svg{display:none}.dbv.dbv.dbv .dbv-name{min-width:0}
.dbv.dbv.dbv th,.dbv.dbv.dbv td{padding-right:6px;font-size:11.5px}.dbv.dbv.dbv thead th{white-space:normal}}
"""


def tint(order: int) -> str:
    """The class of a pick's colour; ``dbv-a`` for candidates that no pick represents."""
    return "dbv-a" if order < 0 else f"dbv-c{order % len(PICKS)}"


def colour(order: int) -> str:
    """The same as a colour for a light page, for viewers that strip styles."""
    return LIGHT["alone"] if order < 0 else PICKS[order % len(PICKS)]


def number_colour(order: int) -> str:
    """The text colour of a number on that colour, on a light page."""
    return INK if order % len(PICKS) in _BRIGHT else PAPER


def sheet() -> str:
    """The style sheet; every rule applies only inside of the card."""
    tinted = [(tint(order), f"c{order}") for order in range(len(PICKS))] + [("dbv-a", "alone")]
    return "".join(
        (
            _RULES.replace("\n", ""),
            f".dbv{{color-scheme:light;{_variables(_light())}}}",
            f"@media (prefers-color-scheme:dark){{.dbv{{color-scheme:dark;{_variables(_dark())}}}}}",
            f"{_inside(_DARK_HOSTS)}{{color-scheme:dark;{_variables(_dark())}}}",
            f"{_inside(_LIGHT_HOSTS)}{{color-scheme:light;{_variables(_light())}}}",
            *(_tinted(name, value) for name, value in tinted),
        )
    )


def _tinted(name: str, value: str) -> str:
    """Fill and stroke of a colour, and of text on it."""
    rules = f".dbv .{name}{{fill:var(--db-{value});stroke:var(--db-{value})}}"
    if value == "alone":
        return rules
    return (
        f"{rules}.dbv .dbv-pick.{name}{{stroke:var(--db-surface)}}"
        f".dbv .dbv-no.{name}{{fill:var(--db-on-{value});stroke:none}}"
        f".dbv .dbv-no-box.{name}{{background:var(--db-{value});color:var(--db-on-{value})}}"
    )


def _light() -> dict[str, str]:
    numbers = {f"on-c{order}": number_colour(order) for order in range(len(PICKS))}
    return {**LIGHT, **{f"c{order}": value for order, value in enumerate(PICKS)}, **numbers}


def _dark() -> dict[str, str]:
    numbers = {f"on-c{order}": INK for order in range(len(PICKS))}
    return {**DARK, **{f"c{order}": value for order, value in enumerate(_DARK_PICKS)}, **numbers}


def _variables(colours: dict[str, str]) -> str:
    return ";".join(f"--db-{name}:{value}" for name, value in colours.items())


def _inside(hosts: tuple[str, ...]) -> str:
    return ",".join(f"{host} .dbv" for host in hosts)
