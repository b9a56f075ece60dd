#!/usr/bin/env python3
"""What is set and cannot have an effect on a run is named, with why; what has one is not.

    unused_test.py WEFT SOURCE_DIR [-v] [TEST...]
"""
import json

import cli_test
from cli_test import CliTest

SCENARIO = """scenario: s
topology: ../../topologies/%s.yaml
nodes: %d
memory_paths: [%s]
workload: {op: %s, sizes: [%s]}
env: {NCCL_NVLS_ENABLE: "0"}
"""
SIMPLE = "nccl.decisions=simple"
# nodes, operation, what else is set, then what has no effect and why; and what may have one, without a word.
NOTES = (
    (2, "allreduce", (), "explain.slow=0.5", "but in weft explain"),
    (2, "allreduce", (), "staging.chunk=64 KiB", "but in weft perftest --mem staged"),
    (2, "allreduce", (), "gpu.copy_tags=4",
     "but on copies (weft copies; emulated NICs): NCCL's kernels take no copy engine"),
    (2, "allreduce", (), "gpu3.copy_start=1 us",
     "but on copies (weft copies; emulated NICs): NCCL's kernels take no copy engine"),
    (2, "allreduce", (), "nic.copy_call=1 us", "without emulated NICs (nic.emulation)"),
    (2, "allreduce", ("nic.emulation=copies",), "nic.copy_call=1 us", ""),
    (2, "allreduce", ("nic.emulation=copies",), "gpu.copy_tags=4", ""),
    (2, "allreduce", (), "nccl.ll_max=1 KiB", "without weft's simple rules (nccl.decisions=simple)"),
    (2, "allreduce", (), "nccl.channels_per_nic=1", "without weft's simple rules (nccl.decisions=simple)"),
    (2, "allreduce", (SIMPLE,), "nccl.ll_max=1 KiB", ""),
    (2, "allreduce", (SIMPLE,), "nccl.channels_per_nic=1", ""),
    (2, "allreduce", (SIMPLE, "nccl.proto=LL"), "nccl.ll_max=1 KiB", "beside nccl.proto"),
    (2, "allreduce", (SIMPLE, "nccl.channels=4"), "nccl.channels_per_nic=1", "beside nccl.channels"),
    (2, "allreduce", (SIMPLE,), "nccl.local_channels=1", "on several nodes"),
    (1, "allreduce", (SIMPLE,), "nccl.local_channels=1", ""),
    (1, "allreduce", (SIMPLE,), "nccl.channels_per_nic=1", "inside one node"),
    (2, "alltoall", (SIMPLE,), "nccl.ll128_max=1 MiB", "on sends and receives"),
    (2, "allreduce", (), "nccl.p2p_net_chunk=64 KiB", "but on sends and receives"),
    (2, "alltoall", (), "nccl.p2p_net_chunk=64 KiB", ""),
    (1, "allreduce", (), "wire.mtu=1024", "inside one node, where no NIC is used"),
    (1, "allreduce", (), "nic3.mrrs=256", "inside one node, where no NIC is used"),
    (2, "allreduce", (), "wire.mtu=1024", ""),
    (2, "allreduce", (), "nic.collnet=on", "without NCCL's decisions and NCCL_COLLNET_ENABLE=1"),
    (2, "allreduce", (), "wire.roce_overhead=80", "with wire.kind=infiniband"),
    (2, "allreduce", ("wire.kind=roce",), "wire.ib_overhead=80", "with wire.kind=roce"),
    (2, "allreduce", (), "cpu.dram_large_share=0.5", "with cpu.dma_buffers=small"),
    (2, "allreduce", (), "cpu.iommu_walk=1 us", "without cpu.iommu=translate"),
    (2, "allreduce", ("cpu.iommu=translate",), "cpu.iommu_walk=1 us", ""),
    (2, "allreduce", (), "gpu.c2c_rate=100 GB/s", "on a machine without NVLink-C2C"),
    (2, "allreduce", (), "virtual-root.mps=128", "on a machine without any virtual-root"),
    (2, "allreduce", (), "switch.mps=128", ""),
)


class Unused(CliTest):
    def run_of(self, nodes, op, *arguments, topology="hgx-h100-8nic", path="gdr", sizes="64 KiB"):
        (self.here / "s.yaml").write_text(SCENARIO % (topology, nodes, path, op, sizes))
        return json.loads(self.ok("run", "s.yaml", "--json", "-", *arguments))

    def no_effect(self, result):
        return [note for note in result["notes"] if "no effect" in note]

    def test_what_takes_no_part_is_named(self):
        for nodes, op, others, setting, why in NOTES:
            with self.subTest(nodes=nodes, op=op, others=others, setting=setting):
                beside = [word for other in others for word in ("--set", other)]
                without = self.run_of(nodes, op, *beside)
                result = self.run_of(nodes, op, *beside, "--set", setting)
                said = [n for n in self.no_effect(result) if n not in self.no_effect(without)]
                self.assertEqual(said, [f"no effect {why}: {setting.split('=')[0]}"] if why else [])
                if why:
                    self.assertEqual(result["results"], without["results"])

    def test_one_note_a_reason(self):
        said = self.no_effect(self.run_of(2, "allreduce", "--set", "staging.chunk=64 KiB", "--set", "gpu.copy_rate=9 GB/s",
                                          "--set", "staging.buffers=2", "--set", "staging.chunk=32 KiB"))
        self.assertEqual(len(said), 2)
        self.assertEqual(said[0], "no effect but in weft perftest --mem staged: staging.chunk, staging.buffers")

    def test_a_rate_beyond_the_nics_is_named(self):
        asked = self.run_of(2, "allreduce", "--set", "wire.rate=800 Gb/s")
        self.assertIn("wire.rate=800 Gb/s: no NIC sends more than nic.rate, 50 GB/s", asked["notes"])
        for nic, wire in (("800", "800"), ("200", "200"), ("400", "400")):
            both = self.run_of(2, "allreduce", "--set", f"wire.rate={wire} Gb/s", "--set", f"nic.rate={nic} Gb/s")
            self.assertFalse([n for n in both["notes"] if n.startswith("wire.rate=")])

    def test_one_switch_that_is_too_small_is_named(self):
        def said(nodes, *arguments):
            notes = self.run_of(nodes, "allreduce", *arguments, sizes="8 B")["notes"]
            return [note for note in notes if note.startswith("one switch joins")]
        self.assertEqual(said(8), [], "64 NICs on 64 ports")
        self.assertEqual(said(9, "--set", "network.kind=leaf-spine", "--set", "network.ports=64"), [])
        for nodes, kind in ((9, "leaf-spine"), (257, "fat-tree")):
            note, = said(nodes)
            self.assertIn(f"joins {8 * nodes} NICs, whose links carry {400 * nodes} GB/s, but one quantum-2 carries 3200", note)
            asked = note[note.index("--set"):].split()
            self.assertEqual(asked, ["--set", f"network.kind={kind}", "--set", "network.ports=64"])
            self.assertEqual(said(nodes, *asked), [])

    def test_steps_traffic_and_jobs_say_it_too(self):
        step = cli_test.SOURCE / "scenarios/steps/llama-70b.yaml"
        said = json.loads(self.ok("step", step, "--set", "staging.chunk=64 KiB", "--json", "-"))["notes"]
        self.assertIn("no effect but in weft perftest --mem staged: staging.chunk", said)

    def test_sends_have_no_protocol_of_the_users(self):
        for op in ("alltoall", "sendrecv"):
            usual = self.run_of(2, op)
            for arguments, name in ((("--env", "NCCL_PROTO=LL"), "NCCL_PROTO=LL"), (("--set", "nccl.proto=LL"), "nccl.proto=LL")):
                asked = self.run_of(2, op, *arguments)
                self.assertEqual(asked["results"], usual["results"])
                self.assertIn("no effect on sends and receives, of which NCCL takes LL inside a node up to "
                              f"NCCL_P2P_LL_THRESHOLD (nccl.p2p_ll_threshold) a channel, else Simple: {name}", asked["notes"])
                self.assertFalse([n for n in asked["notes"] if n.startswith("set by the user in place")])
        self.assertFalse(self.no_effect(self.run_of(2, "allreduce", "--env", "NCCL_PROTO=LL")))


class Limits(CliTest):
    """Of what limits, both transports take the same parameter."""

    def time(self, fidelity, *arguments):
        (self.here / "s.yaml").write_text(SCENARIO % ("genoa-2p-same-switch", 2, "host-staged", "sendrecv", "256 KiB"))
        run = cli_test.weft("run", "s.yaml", "--fidelity", fidelity, "--json", "-", *arguments, cwd=self.here)
        return json.loads(run.stdout)["results"][0]["time_us"]

    def test_loads_of_host_memory(self):
        for fidelity in ("fluid", "packet"):
            self.assertGreater(self.time(fidelity, "--set", "gpu.far_bytes_per_thread=32"), 1.2 * self.time(fidelity))
        self.assertAlmostEqual(self.time("packet") / self.time("fluid"), 1, delta=0.1)

    def rate(self, fidelity, ends, *arguments, topology="merlin-gh200"):
        said = self.ok("copies", f"../../topologies/{topology}.yaml", *ends, "--size", "4M", "--fidelity", fidelity,
                       "--json", "-", *arguments)
        return json.loads(said)["results"][0]["GBps"]

    def test_nvlink_c2c_has_no_pcie_tags(self):
        h2d = ("--from", "cpu", "--to", "gpu0")
        for fidelity in ("fluid", "packet"):
            usual = self.rate(fidelity, h2d)
            self.assertGreater(usual, 300)  # 768 requests of 256 B: 147
            self.assertEqual(self.rate(fidelity, h2d, "--set", "gpu.copy_tags=64"), usual)
            self.assertLess(self.rate(fidelity, h2d, "--set", "gpu.c2c_copy_requests=768"), 150)
            pcie = self.rate(fidelity, h2d, topology="hgx-h100-8nic")
            self.assertLess(self.rate(fidelity, h2d, "--set", "gpu.copy_tags=64", topology="hgx-h100-8nic"), pcie / 2)


if __name__ == "__main__":
    cli_test.main(__doc__)
