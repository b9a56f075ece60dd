#!/usr/bin/env python3
"""The recorder on real verbs: soft-RoCE of Debian's kernel in a small virtual machine (tests/rxe/vm).

    rxe_test.py WEFT SOURCE_DIR PROGRAMS_DIR [-v] [TEST...]

One machine runs all programs (runs.sh); the tests look at what came out. Skips, with the reason, where no machine can
be had.
"""
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import unittest

WEFT = PROGRAMS = ""
SOURCE = pathlib.Path()
LIMIT_S = 240
NO_MACHINE = 125


class Runs:
    """What the machine's programs left behind; made once."""
    folder = None
    missing = ""
    log = ""

    @classmethod
    def make(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="weft-rxe-")
        here = pathlib.Path(cls.folder.name)
        script = f"weft={WEFT} programs={PROGRAMS}; . {SOURCE}/tests/rxe/runs.sh"
        done = subprocess.run([SOURCE / "tests/rxe/vm", here, script], capture_output=True, text=True,
                              timeout=2 * LIMIT_S, env=dict(os.environ, RXE_TIMEOUT=str(LIMIT_S)))
        cls.log = done.stdout + done.stderr
        if done.returncode == NO_MACHINE:
            cls.missing = done.stderr.strip().splitlines()[-1]
        elif done.returncode == 124:
            cls.missing = f"the machine did not end within {LIMIT_S} s"


def setUpModule():
    Runs.make()


def tearDownModule():
    Runs.folder.cleanup()


class InMachine(unittest.TestCase):
    def setUp(self):
        if Runs.missing:
            self.skipTest(Runs.missing)
        self.here = pathlib.Path(Runs.folder.name)

    def info(self, name):
        done = subprocess.run([WEFT, "trace", "info", self.here / f"{name}.weft", "--json", "-"],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, f"{name}: {done.stderr}\n{Runs.log}")
        return json.loads(done.stdout)

    def counts(self, name):
        """{opcode: (posts, bytes, completions)}"""
        return {o["opcode"]: (o["posts"], o["bytes"], o["completions"]) for o in self.info(name)["operations"]}

    def exits_well(self, *names):
        for name in names:
            self.assertIn(f"{name}: exit code 0", Runs.log)

    def whole(self, name):
        info = self.info(name)
        self.assertTrue(info["is_ended"], name)
        for key in ("dropped_records", "lost_blocks", "lost_bytes", "refused", "unmatched"):
            self.assertEqual(info[key], 0, f"{name}: {key}")
        return info

    def report(self, name):
        """What perftest's client says of itself: bytes of an operation, operations."""
        text = (self.here / f"{name}.client.txt").read_text()
        line = re.search(r"(?m)^ (\d+)\s+(\d+)\s", text)
        self.assertTrue(line, text)
        return int(line[1]), int(line[2])


class Perftest(InMachine):
    def holds(self, name, opcode):
        """The client's operations and bytes are those of its own report."""
        self.exits_well(name)
        size, operations = self.report(name)
        for end in ("client", "server"):
            self.whole(f"{name}.{end}")
        posts, posted, completions = self.counts(f"{name}.client")[opcode]
        self.assertEqual((posts, posted), (operations, operations * size), name)
        return operations, completions

    def test_ib_write_bw(self):
        operations, completions = self.holds("write_bw", "write")
        self.assertGreaterEqual(operations, completions)
        self.assertNotIn("write", self.counts("write_bw.server"))

    def test_ib_read_lat(self):
        self.assertEqual(*self.holds("read_lat", "read"))

    def test_ib_send_bw_and_what_its_server_received(self):
        operations, _ = self.holds("send_bw", "send")
        self.assertEqual(self.counts("send_bw.server")["receive"][2], operations)

    def test_many_queue_pairs(self):
        operations, _ = self.holds("many_pairs", "write")
        pairs = self.info("many_pairs.client")["pairs"]
        self.assertEqual(len(pairs), 4)
        for pair in pairs:
            self.assertEqual(pair["operations"][0]["posts"], operations // 4)

    def test_a_shared_receive_queue(self):
        operations, _ = self.holds("shared", "send")
        self.assertEqual(self.counts("shared.server")["receive"][2], operations)

    def test_each_end_names_the_others_queue_pair(self):
        client = self.info("write_bw.client")["pairs"][0]
        server = self.info("write_bw.server")["pairs"][0]
        self.assertEqual(client["peer_number"], server["number"])
        self.assertEqual(server["peer_number"], client["number"])


class Pingpong(InMachine):
    def test_both_interfaces_and_both_ends(self):
        for name in ("pingpong", "pingpong_builder"):
            self.exits_well(name)
            for end in ("client", "server"):
                self.whole(f"{name}.{end}")
                counts = self.counts(f"{name}.{end}")
                self.assertEqual(counts["send"], (50, 50 * 1024, 50), (name, end))
                self.assertEqual(counts["receive"][2], 50, (name, end))


class OwnPrograms(InMachine):
    def test_linked_and_loaded_as_nccl_does(self):
        for program in ("verbs_program", "verbs_program_dlvsym"):
            for what in ("classic", "builder"):
                name = f"{program}-{what}"
                self.exits_well(name)
                self.whole(f"{name}.client")
                counts = self.counts(f"{name}.client")
                for opcode, size in (("send", 100), ("write_with_immediate", 300), ("fetch_and_add", 8),
                                     ("read", 4096), ("write", 5000)):
                    self.assertEqual(counts[opcode], (10, 10 * size, 10), (name, opcode))
                self.assertEqual(counts["receive"][2], 20)

    def test_a_shared_receive_queue(self):
        self.exits_well("own_shared")
        self.assertEqual(self.counts("own_shared.client")["receive"][2], 10)

    def test_a_peer_that_is_not_there(self):
        self.exits_well("failing")
        errors = self.whole("failing.client")["errors"]
        self.assertEqual(len(errors), 1)
        self.assertEqual(errors[0]["completions"], 1)
        self.assertEqual(errors[0]["status"], "retries_exceeded")

    def test_a_killed_program_leaves_a_readable_trace(self):
        self.assertIn("killed: exit code 137", Runs.log)
        info = self.info("killed.client")
        self.assertFalse(info["is_ended"])
        self.assertEqual((info["lost_blocks"], info["lost_bytes"]), (0, 0))
        self.assertGreater(self.counts("killed.client")["write"][0], 100)


class Again(InMachine):
    """weft replay --device: the operations of a trace on the devices, recorded again."""

    def sends(self, name):
        """{opcode: (posts, bytes)} of all but receives."""
        return {opcode: (posts, size) for opcode, (posts, size, _) in self.counts(name).items()
                if opcode != "receive"}

    def test_a_bandwidth_run(self):
        self.exits_well("write_bw_again")
        self.assertEqual(self.sends("write_bw_again.client"), self.sends("write_bw.client"))
        self.assertEqual(self.sends("write_bw_again.server"), {})

    def test_a_pingpong_of_both_ends(self):
        self.exits_well("pingpong_again")
        for end in ("client", "server"):
            self.assertEqual(self.sends(f"pingpong_again.{end}"), self.sends(f"pingpong.{end}"))
            self.assertEqual(self.counts(f"pingpong_again.{end}")["receive"][2], 50)

    def test_what_is_not_done_again_is_said(self):
        self.exits_well("own_again")
        said = (self.here / "own_again.client.txt").read_text()
        self.assertRegex(said, r"not replayed: 10 .*atomic")
        recorded = self.sends("verbs_program-builder.client")
        del recorded["fetch_and_add"]
        self.assertEqual(self.sends("own_again.client"), recorded)

    def goodput(self, name):
        """Bytes a second of a trace's writes, from its first post to its last completion."""
        info = self.whole(f"{name}.client")
        return sum(o["bytes"] for o in info["operations"] if o["opcode"] == "write") / (info["span_ns"] * 1e-9)

    def near(self, again, recorded, allowed):
        """Goodputs: of runs again, within a share of the recorded one."""
        error = again / recorded - 1
        print(f"goodput: recorded {recorded / 1e6:.2f} MB/s, again {error:+.1%} (allowed {allowed:.1%})", file=sys.stderr)
        self.assertLessEqual(abs(error), allowed)

    def test_goodput_of_processors_that_set_the_pace(self):
        """Five runs, each recorded and done again by turns: the median of the five ratios. The emulated machine's
        goodput has two modes (about 40 and 65 MB/s) and its recorded runs alone spread by 7 to 40 %; repetitions
        were -16 to +4 % of the run before them, medians -8 % where nothing else ran. So this finds a repetition that
        waits where its recording did not; how near one comes is the next test's."""
        runs = [self.goodput(f"repeat-{i}") for i in range(1, 6)]
        again = [self.goodput(f"repeat_again-{i}") for i in range(1, 6)]
        print(f"recorded runs spread by {(max(runs) - min(runs)) / max(runs):.1%}", file=sys.stderr)
        ratio = statistics.median(a / r for a, r in zip(again, runs))
        self.near(ratio * statistics.median(runs), statistics.median(runs), 0.25)

    def test_goodput_over_a_link_that_sets_the_pace(self):
        again = [self.goodput(f"linked_again-{i}") for i in range(1, 4)]
        self.near(statistics.median(again), self.goodput("linked"), 0.10)


class Cost(InMachine):
    def test_message_rate(self):
        """What recording a post and its poll takes, as the recorder measured it where it ran, is at most 6 % of the
        time that a message took without it: 1.5 to 3.8 % by the host, as an emulated clock is slow to read (on real
        processors: record_bench). The rates side by side are only printed: under emulation they spread by
        more than that from one run to the next."""
        rates = {"bare": [], "recorded": []}
        for how, found in rates.items():
            for round_ in range(1, 4):
                text = (self.here / f"rate-{round_}-{how}.txt").read_text()
                rate = re.search(r"(?m)^ 64\s+2000\s+\S+\s+\S+\s+(\S+)", text)
                self.assertTrue(rate, text)
                found.append(float(rate[1]) * 1e6)
        bare, recorded = (statistics.median(rates[how]) for how in ("bare", "recorded"))
        infos = [self.info(f"rate-{round_}.client") for round_ in range(1, 4)]
        cost_ns = min(info["post_ns"] + info["poll_ns"] for info in infos)  # what else runs only adds
        share = cost_ns * 1e-9 * bare
        spread = (max(rates["bare"]) - min(rates["bare"])) / bare
        print(f"message rate: {bare:.0f}/s, recorded {recorded / bare - 1:+.1%} (bare alone spreads {spread:.1%}); "
              f"recording takes {cost_ns:.0f} ns of a message's {1e9 / bare:.0f}: {share:.1%}", file=sys.stderr)
        self.assertLess(share, 0.06)


def main():
    global WEFT, SOURCE, PROGRAMS
    WEFT, source, PROGRAMS = sys.argv[1:4]
    SOURCE = pathlib.Path(source)
    result = unittest.main(argv=[sys.argv[0], *sys.argv[4:]], exit=False).result
    for test, why in result.skipped:  # tools/check shows these lines
        print(f"skipped: {test.id().removeprefix('__main__.')}: {why}", file=sys.stderr)
    sys.exit(not result.wasSuccessful())


if __name__ == "__main__":
    main()
