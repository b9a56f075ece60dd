#!/usr/bin/env python3
"""`weft trace` and `weft replay` as design.md section 5 promises them.

    trace_test.py WEFT SOURCE_DIR [-v] [TEST...]
"""
import csv
import io
import json
import struct
import zlib

import cli_test
from cli_test import CliTest, damaged, weft

HEAD = {"format": "weft.trace/1", "clock": "monotonic_raw", "salted": False, "cut": False, "post_ns": 61,
        "poll_ns": 74, "tool": "test", "topology": ""}
PAIR = {"domain": 4, "send_queue": 5, "receive_queue": 5, "shared_receives": None, "send_depth": 16,
        "receive_depth": 16, "max_inline": 0, "transport": "rc", "signals_all": "no", "is_unseen": "no"}
STATE = {"peer_port": "0x7", "state": "rts", "path_mtu": "4096", "timeout": 14, "retries": 7, "rnr_retries": 7,
         "max_reads": 16, "max_peer_reads": 16, "port": 1}
TOPOLOGY = ("--topology", "../../topologies/hgx-h100-8nic.yaml")

BOGUS_USAGE = (
    (["trace"], "action is required (see weft --help)"),
    (["trace", "look", "a.weft"],
     "action: look not in {info,dump,cut,merge,scrub,import} (see weft --help)"),
    (["trace", "info"], "file is required (see weft --help)"),
    (["trace", "info", "nowhere.weft"], "nowhere.weft: no such file"),
    (["trace", "info", "a.weft", "a.weft"], "weft trace info takes one file"),
    (["trace", "info", "a.jsonl"], "a.jsonl: is no verbs trace"),
    (["trace", "info", "a.weft", "--salt", "s"], "weft trace info takes no --salt; it is for: scrub"),
    (["trace", "cut", "a.weft"], "weft trace cut: --output FILE is required: the trace to write"),
    (["trace", "cut", "a.weft", "-o", "-"], "weft trace cut: --output FILE is required: the trace to write"),
    (["trace", "cut", "a.weft", "-o", "b.weft", "--from", "5"], "--from '5': '5' has no unit"),
    (["trace", "cut", "a.weft", "-o", "b.weft", "--from", "-1 us"],
     "--from '-1 us': from 0 on, since the trace's begin"),
    (["trace", "cut", "a.weft", "-o", "b.weft", "--from", "5 us", "--to", "5 us"],
     "--to '5 us': not later than --from"),
    (["trace", "cut", "a.weft", "-o", "b.weft", "--pair", "one"],
     "--pair 'one': a queue pair's number, as weft trace info shows it"),
    (["trace", "cut", "a.weft", "-o", "b.weft", "--pair", "99"], "no queue pair 99 in the trace; there are: 7"),
    (["trace", "merge", "a.weft", "-o", "b.weft"], "weft trace merge takes two files or more"),
    (["trace", "scrub", "a.weft", "-o", "nowhere/b.weft"], "nowhere/b.weft: "),
    (["trace", "import", TOPOLOGY[1], "-o", "b.weft"],
     f"{TOPOLOGY[1]}:1: the columns of network operations are dir,dev,link,seq,bytes,post_s,done_s,gpu_mem"),
    (["replay", "a.weft"], "--topology FILE is required: where it is replayed"),
    (["replay", "a.weft", *TOPOLOGY, "--open", "--closed"], "--open and --closed: one of them"),
    (["replay", "a.weft", *TOPOLOGY, "--factor", "1"], "--factor '1': a number above 1"),
    (["replay", "a.weft", *TOPOLOGY, "--map", "mlx5_9=nic0"],
     "--map 'mlx5_9=nic0': no such device in the trace; there are: mlx5_0@0"),
    (["replay", "a.weft", *TOPOLOGY, "--json", "-", "--csv", "-"],
     "--json and --csv cannot both go to standard output"),
)


def objects(host):
    yield {"type": "host", "host": 1, "process": 4711, "realtime_ns": 5, "clock_shift_ns": 0, "clock_error_ns": 0,
           "text": host}
    yield {"type": "thread", "thread": 2, "host": 1, "tid": 4711, "text": "main\u0001\n"}
    yield {"type": "device", "device": 3, "host": 1, "vendor": "0x15b3", "part": "0x1021",
           "guid": "0x1234567890abcdef", "max_queue_pairs": 1, "max_requests": 1, "ports": 1, "text": "mlx5_0"}
    yield {"type": "protection_domain", "domain": 4, "device": 3}
    yield {"type": "region", "region": 6, "domain": 4, "address": "0x7f0012345678", "length": 1 << 20,
           "access": "local_write|remote_write", "page_bytes": 4096, "kind": "host"}


def pair(number, peer):
    yield {"type": "queue_pair", "pair": 7, "number": number, **PAIR}
    yield {"type": "queue_pair_state", "pair": 7, "peer_number": peer, **STATE}


def post(ns, opcode, wr_id, size=64, flags="signaled"):
    return {"type": "post", "time_ns": ns, "id": hex(wr_id), "bytes": size, "remote_offset": "0x55001234abcd",
            "queue": 7, "remote_region": None, "remote_key": "0x63", "call_ns": 80, "list_index": 0,
            "opcode": opcode, "flags": flags, "segments": [{"offset": "0x0", "length": size, "region": 6}]}


def completion(ns, opcode, wr_id, size=64, status="success"):
    return {"type": "completion", "time_ns": ns, "id": hex(wr_id), "queue": 5, "pair": 7, "bytes": size,
            "vendor_error": 0, "status": status, "opcode": opcode, "has_immediate": "no"}


def lines(*records, head=None):
    """A trace of one block as JSON lines."""
    rows = [{**HEAD, **(head or {})}, {"block": "records", "by": 2}]
    rows += [{"by": 2, "time_ns": 0, **record} for record in records]
    return "".join(json.dumps(row) + "\n" for row in [*rows, {"block": "end"}])


def reads():
    """Two reads, one after the other."""
    return [*objects("h"), *pair(100, 200), post(1000, "read", 1, 65536), completion(9000, "read", 1, 65536),
            post(9700, "read", 2, 65536), completion(20000, "read", 2, 65536)]


class TraceTest(CliTest):
    def setUp(self):
        super().setUp()
        self.made("a", *reads())

    def made(self, name, *records, **options):
        """A trace of these records: NAME.jsonl and NAME.weft."""
        (self.here / f"{name}.jsonl").write_text(lines(*records, **options))
        self.assertEqual(self.ok("trace", "import", f"{name}.jsonl", "-o", f"{name}.weft"), "")

    def info(self, name):
        return json.loads(self.ok("trace", "info", name, "--json", "-"))


class BadInput(TraceTest):
    def test_usage(self):
        for arguments, expected in BOGUS_USAGE:
            with self.subTest(arguments):
                before = self.files()
                run = weft(*arguments, cwd=self.here)
                self.assertEqual((run.returncode, run.stdout), (2, b""))
                self.assertTrue(run.stderr.decode().startswith(f"error: {expected}"), run.stderr)
                self.assertEqual(run.stderr.count(b"\n"), 1)
                self.assertEqual(self.files(), before)

    def test_a_damaged_trace_never_crashes_and_loses_nothing_in_silence(self):
        whole = (self.here / "a.weft").read_bytes()
        count = self.info("a.weft")["records"]
        for seed in range(60):
            (self.here / "d.weft").write_bytes(damaged(whole, seed, range(256)))
            run = weft("trace", "info", "d.weft", "--json", "-", cwd=self.here)
            self.assertIn(run.returncode, (0, 2), seed)
            if run.returncode == 0:
                info = json.loads(run.stdout)
                self.assertTrue(info["records"] == count or info["losses"] or not info["is_ended"], seed)
            else:
                self.assertEqual(run.stderr.count(b"\n"), 1)

    def test_damaged_lines_are_refused_in_one_line(self):
        whole = (self.here / "a.jsonl").read_bytes()
        for seed in range(60):
            (self.here / "d.jsonl").write_bytes(damaged(whole, seed, b'{}[]",:0x9\x00\xff\n'))
            run = weft("trace", "import", "d.jsonl", "-o", "d.weft", cwd=self.here)
            self.assertIn(run.returncode, (0, 2), seed)
            self.assertEqual(run.stderr.count(b"\n"), 1 if run.returncode == 2 else 0, seed)

    def test_a_full_disk_is_an_error(self):
        run = weft("trace", "dump", "a.weft", "-o", "/dev/full", cwd=self.here)
        self.assertEqual((run.returncode, run.stdout), (2, b""))
        self.assertIn(b"/dev/full: cannot be written: No space left on device", run.stderr)


class Format(TraceTest):
    def test_the_file_is_as_its_page_says(self):
        data = (self.here / "a.weft").read_bytes()
        magic, major, minor, order, head, tool, topology, post_ns, poll_ns = struct.unpack_from("<8sHHIIIIII", data)
        self.assertEqual(magic, b"\x89weft\r\n\x1a")
        self.assertEqual((major, minor, order, tool, topology, post_ns, poll_ns), (1, 0, 0x01020304, 4, 0, 61, 74))
        self.assertEqual((head, data[48:52]), (56, b"test"))
        checksum, = struct.unpack_from("<I", data, 44)
        self.assertEqual(checksum, zlib.crc32(data[:44] + bytes(4)) ^ zlib.crc32(data[48:head]))
        block = struct.unpack_from("<8sIIQQQIIII", data, head)
        self.assertEqual(block[:7], (b"\xb1weftblk", 1, 2, 0, 0, 20000, 11))
        self.assertEqual(block[9], zlib.crc32(data[head:head + 52] + bytes(4)))
        end = struct.unpack_from("<8sIIQQQIIII", data, head + 56 + block[8])
        self.assertEqual(end[:4], (b"\xb1weftblk", 2, 0xffffffff, 1))
        self.assertEqual(len(data), head + 56 + block[8] + 56)

    def test_lines_and_traces_are_the_same(self):
        self.ok("trace", "dump", "a.weft", "--format", "json", "-o", "b.jsonl")
        self.ok("trace", "import", "b.jsonl", "-o", "b.weft")
        self.assertEqual((self.here / "a.weft").read_bytes(), (self.here / "b.weft").read_bytes())
        as_written = [json.loads(line) for line in (self.here / "b.jsonl").read_text().splitlines()]
        self.assertEqual(as_written, [json.loads(line) for line in (self.here / "a.jsonl").read_text().splitlines()])

    def test_a_dump_is_a_line_a_record_whatever_names_hold(self):
        text = self.ok("trace", "dump", "a.weft")
        self.assertEqual(len(text.splitlines()), 11)
        self.assertRegex(text, r"(?m)^0\.000009700 s  by 2  post id=0x2 bytes=65536 .*opcode=read flags=signaled"
                               r" \[region=6 offset=0x0 length=65536\]$")


class Actions(TraceTest):
    def test_info_counts(self):
        info = self.info("a.weft")
        self.assertEqual(info["operations"], [{"opcode": "read", "posts": 2, "bytes": 131072, "completions": 2}])
        self.assertEqual(info["pairs"][0]["operations"], info["operations"])
        self.assertEqual((info["span_ns"], info["unmatched"], info["waiting"], info["is_ended"]), (19000, 0, 0, True))
        text = self.ok("trace", "info", "a.weft")
        self.assertIn("recording added 61 ns to a post, 74 ns to a poll", text)

    def test_a_trace_that_was_cut_off_is_read_and_says_so(self):
        whole = (self.here / "a.weft").read_bytes()
        (self.here / "off.weft").write_bytes(whole[:-60])
        info = self.info("off.weft")
        self.assertEqual((info["is_ended"], info["lost_blocks"], info["records"]), (False, 1, 0))
        run = weft("trace", "dump", "off.weft", cwd=self.here)
        self.assertEqual((run.returncode, run.stdout), (0, b""))
        self.assertIn(b"warning: off.weft: ", run.stderr)
        self.assertIn(b"has no end: its writer was stopped, or it is cut off", run.stderr)

    def test_cut(self):
        self.assertEqual(self.ok("trace", "cut", "a.weft", "-o", "c.weft", "--from", "9.5 us", "--device", "mlx5_0"),
                         "kept 2 posts and completions, left out 2\n")
        self.assertEqual(self.info("c.weft")["operations"][0]["posts"], 1)

    def test_merge(self):
        for host, numbers, sent, got in (("one", (100, 200), 10000, 12400), ("two", (200, 100), 7000, 6000)):
            self.made(host, *objects(host), *pair(*numbers), post(10, "receive", 1), post(sent, "send", 2),
                      completion(got, "receive", 1), completion(30000, "send", 2))
        # Of two's clock: its receive at 6000 is not before one's send at 10000, and one's at 12400 not before its
        # send at 7000: between 4000 and 5400.
        said = self.ok("trace", "merge", "one.weft", "two.weft", "-o", "m.weft")
        self.assertIn("two.weft (two): shifted by 4700 ns, known to 700 ns, by 2 matched operations\n", said)
        info = self.info("m.weft")
        self.assertEqual(info["operations"][0]["completions"], 2)
        self.assertEqual([(d["name"], d["host"], d["host_number"]) for d in info["devices"]],
                         [("mlx5_0", "one", 0), ("mlx5_0", "two", 1)])
        text = self.ok("trace", "info", "m.weft")
        for device in ("mlx5_0@0 of one (", "mlx5_0@1 of two ("):
            self.assertIn(f"  {device}", text)
        self.assertEqual(self.ok("trace", "cut", "m.weft", "-o", "c.weft", "--device", "mlx5_0@1"),
                         "kept 4 posts and completions, left out 4\n")

    def test_scrub(self):
        self.made("s", *objects("secret-host"), *pair(1, 2), {"type": "mark", "text": "secret"},
                  head={"topology": "secret: yes\n"})
        said = self.ok("trace", "scrub", "s.weft", "-o", "t.weft", "--salt", "pepper")
        self.assertIn("replaced 1 host.text\n", said)
        self.assertIn("left out the topology's text\n", said)
        text = self.ok("trace", "dump", "t.weft", "--format", "json")
        for secret in ("secret", "mlx5", "7f0012345", "4711", "1234567890abcdef"):
            self.assertNotIn(secret, text)
        self.ok("trace", "scrub", "s.weft", "-o", "u.weft")
        self.ok("trace", "scrub", "s.weft", "-o", "v.weft")
        self.assertNotEqual((self.here / "u.weft").read_bytes(), (self.here / "v.weft").read_bytes())


class Replay(TraceTest):
    def test_tables(self):
        for fidelity in ("fluid", "packet"):
            out = self.ok("replay", "a.weft", *TOPOLOGY, "--fidelity", fidelity, "--json", "r.json", "--csv", "r.csv")
            self.assertIn(f"# weft replay: a.weft on {TOPOLOGY[1]}, closed loop, {fidelity}\n", out)
            report = json.loads((self.here / "r.json").read_text())
            self.assertEqual((report["schema"], report["compared"]), ("weft.replay/1", 2))
            self.assertEqual([row["opcode"] for row in report["errors"]], ["read"])
            rows = list(csv.DictReader(io.StringIO((self.here / "r.csv").read_text())))
            think = float(rows[1]["predicted_post_us"]) - float(rows[0]["predicted_done_us"])
            self.assertAlmostEqual(think, 0.7, 2)  # as recorded

    def test_what_is_not_replayed_is_said(self):
        self.made("n", *reads(), post(30000, "fetch_and_add", 9, 8), completion(31000, "fetch_and_add", 9, 8))
        out = self.ok("replay", "n.weft", *TOPOLOGY, "--open")
        self.assertRegex(out, r"(?m)^not replayed\n +1 atomic operations$")


if __name__ == "__main__":
    cli_test.main(__doc__)
