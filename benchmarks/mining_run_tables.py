# ruff: noqa: E501 - prose
"""The two real runs of mining as text: an endpoint that fails, and the example on google-adk."""

from typing import Any

FAULTS_HEAD = """\
## An endpoint that fails

`tests/mining/faulty_server.py` speaks OpenAI's protocol, fails on a seeded schedule and counts tokens itself. 8 \
calls run at a time.
"""

FAULT_NAMES = {
    "limit": "429",
    "down": "500",
    "cut": "broken off",
    "drop": "dropped",
    "garbage": "broken JSON around the answer",
    "broken": "broken JSON inside it",
    "slow": "delayed",
}

ADK_HEAD = """\
## google-adk, mined offline

Cases of `examples/adk`: API questions with an answer string, and failing programs with a fixed file and a test. The \
judge is the answer string, for programs the test after it. The second judge, the answer string alone, is not \
independent.
"""

ADK_TAIL = """\
The controls favour this judge: targets contain the answer string by construction, and a context that says the same \
in other words counts as a negative. κ is low because a context can contain the answer string but not everything the \
program needs. Imports list more than is needed, expansion less than a person would want.
"""


def faults(part: dict[str, Any]) -> str:
    """Nothing lost, nothing twice, spend counted exactly."""
    calm, killed = part["undisturbed"], part["killed"]
    again = killed["asked again"]
    went_wrong = sum(calm["happened"][kind] for kind in FAULT_NAMES)
    kinds = ", ".join(f"{calm['happened'][kind]} × {name}" for kind, name in FAULT_NAMES.items())
    verdicts = ", ".join(f"{count} {label}" for label, count in calm["verdicts"].items())
    rows = [
        ("calls required", f"{calm['calls']:,}"),
        ("requests made", f"{calm['requests']:,}, of which {went_wrong} went wrong: {kinds}"),
        ("verdicts", f"{verdicts}; missing: {calm['missing']}"),
        (
            "spend",
            f"{calm['tokens']:,} tokens, {calm['cost']:.4f}; equal to the server's own count: "
            f"{_yes(calm['counted as the server did'])}; {calm['unanswered']} incomplete requests are "
            "counted separately",
        ),
        ("killed by SIGKILL and resumed", f"{killed['kills']} times in {killed['calls']:,} calls"),
        ("same bytes as the undisturbed run", _yes(killed["same bytes"])),
        ("verdicts in the journal", f"{killed['verdicts']:,}; twice: {killed['kept twice']}"),
        (
            "calls repeated",
            f"{again}: those in flight at a kill ({again / killed['kills']:.1f} per kill; at most 8 in flight, "
            "two requests each)",
        ),
    ]
    return f"{FAULTS_HEAD}\n{_table(('', ''), rows)}\n"


def adk(part: dict[str, Any]) -> str:
    """What was mined, how far to trust it, and σ."""
    contexts = part["positives"] + part["negatives"] + part["unsure"]
    controls, agreed = part["controls"], part["agreement"]
    sizes = ", ".join(f"{count} of {size}" for size, count in part["kernel sizes"].items())
    statuses = ", ".join(f"{count} {status}" for status, count in part["kernels"].items())
    sigma = part["sigma"]
    rows = [
        (
            "questions, contexts",
            f"{part['pairs']} with {contexts}: {part['positives']} positive, {part['negatives']} negative, "
            f"{part['unsure']} unsure",
        ),
        ("false positives", _rate(controls["false_positive"])),
        ("false negatives", _rate(controls["false_negative"])),
        ("answered without any context", str(len(controls["answered_without_context"]))),
        (
            "check against answer string alone",
            f"{agreed['pairs']} contexts of {agreed['cases']} programs, {agreed['observed']:.1%} alike, "
            f"κ = {agreed['kappa']:.2f} ({agreed['low']:.2f} to {agreed['high']:.2f})",
        ),
        ("kernels", f"{statuses}: {sizes} documents"),
        *(_compared(one) for one in part["compared"]),
        (
            "σ",
            f"{sigma['value']:.4f} ({sigma['low']:.4f} to {sigma['high']:.4f}) from {sigma['pairs']} pairs",
        ),
    ]
    return f"{ADK_HEAD}\n{_table(('', ''), rows)}\n\n{ADK_TAIL}\n{_held_out(part['calibration'])}\n"


def _held_out(calibration: dict[str, Any]) -> str:
    kept = {"default": "kept automatic σ", "divisor": "chose another divisor", "sigma": "chose that σ"}
    corpora = list(next(iter(calibration["held out"].values())))
    rows = [
        (kind, *(f"{by_corpus[one]:.3f}" for one in corpora))
        for kind, by_corpus in calibration["held out"].items()
    ]
    head = f"On held-out questions, calibration {kept[calibration['kind']]}. Recall@{calibration['k']}:"
    return f"{head}\n\n{_table(('', *corpora), rows)}"


def _compared(one: dict[str, Any]) -> tuple[str, str]:
    return (
        f"{one['first']} against {one['second']}",
        f"{one['cases']} programs, Jaccard {one['jaccard']:.3f} ({one['low']:.3f} to {one['high']:.3f}), "
        f"{one['equal']} equal",
    )


def _rate(rate: dict[str, Any]) -> str:
    return (
        f"{rate['errors']} of {rate['decided']} controls (95 % interval {rate['low']:.1%} to "
        f"{rate['high']:.1%}, {rate['cases']} cases)"
    )


def _yes(value: bool) -> str:
    return "yes" if value else "**no**"


def _table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])
