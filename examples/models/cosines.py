#!/usr/bin/env python3
"""The sentences of the MiniLM demo.  usage: cosines.py tokens SENTENCES.json IDS.npy MASK.npy | compare|table SENTENCES.json EMBEDDING.npy

compare: the largest difference to the golden cosines, which have four decimals; exit code 1 if it exceeds their rounding."""
import json
import sys

import numpy as np


def main(action, sentences, *paths):
    with open(sentences, encoding="utf-8") as file:
        known = json.load(file)
    golden = np.array(known["cosine"])
    if action == "tokens":
        ids = np.array(known["input_ids"], np.int64)
        np.save(paths[0], ids)
        np.save(paths[1], (ids != 0).astype(np.int64))
        return 0
    e = np.load(paths[0]).astype(np.float64)
    cosine = e @ e.T
    worst = np.abs(cosine - golden).max()
    if action == "compare":
        print(f"cosines within {worst:.1e} of the golden ones")
        return int(not worst <= 1e-4)
    print("\nCosines, computed (golden):")
    for i, sentence in enumerate(known["sentences"]):
        print("  " + " ".join(f"{cosine[i, j]:6.3f} ({golden[i, j]:6.3f})" for j in range(i + 1)))
        print("      " + sentence)
    return 0


if __name__ == "__main__":
    if len(sys.argv) < 4 or sys.argv[1] not in ("tokens", "compare", "table"):
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
