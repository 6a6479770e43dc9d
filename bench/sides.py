"""A side of a comparison: a process that stays and times blocks of runs, as `sinter bench --serve` and peer.py do."""
import json
import os
import subprocess
import tempfile
import time

SETTLE_S = 0.03  # for a side's threads to stop spinning before the next side's block
LIMIT_S = 600    # for a side to be ready


class Side:
    """A process that stays: says that it is ready, then answers a number of runs with their times."""

    def __init__(self, name, command, limit_s=LIMIT_S):
        self.name, self.blocks, self.runs, self.why, self.limit_s, self.processor = name, [], 1, None, limit_s, []
        self.errors = tempfile.TemporaryFile("w+")
        start = time.perf_counter()
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True)
        self.first = self.read(limit_s)
        self.ready_s = time.perf_counter() - start

    def read(self, seconds):
        """A line, or None after so long or when the process is gone."""
        import select
        got, _, _ = select.select([self.process.stdout], [], [], seconds)
        text = self.process.stdout.readline() if got else ""
        if not text:
            self.fail(f"no answer in {seconds} s" if not got else None)
        return text or None

    def fail(self, why):
        self.process.kill()
        self.errors.seek(0)
        said = [each for each in self.errors.read().splitlines() if each.strip()]
        self.why = why or (said[-1][:200] if said else "ended without a word")

    def processor_ms(self):
        """What all threads of the process have taken so far; 0 where the system does not say."""
        try:
            with open(f"/proc/{self.process.pid}/stat") as f:
                times = f.read().rsplit(")", 1)[1].split()[11:13]
        except OSError:
            return 0
        return sum(map(int, times)) * 1e3 / os.sysconf("SC_CLK_TCK")

    def block(self, runs):
        if self.why:
            return []
        time.sleep(SETTLE_S)
        before = self.processor_ms()
        try:
            self.process.stdin.write(f"{runs}\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            self.fail(None)
            return []
        answer = self.read(self.limit_s)
        if answer:
            self.processor.append((self.processor_ms() - before) / (runs + 1))  # and the one that is not timed
        return json.loads(answer) if answer else []

    def settle(self, block_ms):
        """A first block, which does not count, says how many runs fit into one."""
        times = self.block(2)
        if times:
            self.runs = max(1, min(200, int(block_ms / max(min(times), 1e-3))))
        return min(times) if times else None

    def close(self):
        self.process.kill()
        self.process.wait()
        self.errors.close()
