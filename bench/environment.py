"""The peers' own Python: a virtual environment, made on first use."""
import os
import subprocess
import sys

IMPORTED = {"scikit-learn": "sklearn"}  # packages whose module has another name


def enter(folder, packages, script):
    """Continues `script` under `folder`; where what it needs cannot be installed, says so and exits with 77."""
    python = os.path.join(folder, "bin", "python")
    if os.path.realpath(sys.prefix) == os.path.realpath(folder):
        return
    check = [python, "-c", "import " + ", ".join(IMPORTED.get(p, p) for p in packages)]
    if not os.path.exists(python) or subprocess.run(check, capture_output=True, check=False).returncode:
        print(f"installing {' '.join(packages)} into {folder}", file=sys.stderr)
        made = subprocess.run([sys.executable, "-m", "venv", folder], check=False).returncode == 0
        if not made or subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check"] + packages, check=False).returncode:
            print("SKIPPED: the peers cannot be installed here", file=sys.stderr)
            sys.exit(77)
    os.execv(python, [python, os.path.abspath(script)] + sys.argv[1:])
