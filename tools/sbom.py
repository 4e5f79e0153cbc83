"""Write what a plain installation consists of, as CycloneDX JSON.

``python -m tools.sbom`` builds the wheel, installs it without extras into an empty environment, and lists
every package there with its version and licence in ``dist/dartboard-VERSION.cdx.json``.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from dartboard.version import __version__
from tools.installing import ROOT, build, environment_with


def write_sbom(python: Path, out: Path) -> None:
    """List the packages that ``python`` sees in the file ``out``, with dartboard as their root."""
    command = [sys.executable, "-m", "cyclonedx_py", "environment", str(python), "--output-reproducible"]
    command += ["--pyproject", str(ROOT / "pyproject.toml"), "--output-format", "JSON", "--output-file", "-"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(listed.stdout)
    found["metadata"]["component"]["version"] = __version__  # stated in one place, which is no pyproject.toml
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


def main() -> None:
    """Build, install, list."""
    out = ROOT / "dist" / f"dartboard-{__version__}.cdx.json"
    with tempfile.TemporaryDirectory() as folder:
        wheel = build("wheel", Path(folder))
        write_sbom(environment_with(Path(folder) / "plain", [str(wheel)]), out)
    print(out)


if __name__ == "__main__":
    main()
