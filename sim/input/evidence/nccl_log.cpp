#include <array>
#include <cctype>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "sim/base/error.hpp"
#include "sim/input/evidence/readers.hpp"
#include "sim/input/evidence/scan.hpp"

namespace weft {
namespace {

constexpr std::string_view kInfo = "NCCL INFO ";
constexpr std::string_view kWarn = "NCCL WARN ";

/// A message and who wrote it.
struct Message {
  std::string host;
  std::string_view text;
  bool is_warning{false};
};

/// "[time] host:pid:tid [dev] file.cc:334 NCCL WARN text". Lines without such a head, of which
/// somebody took it away, are messages too. nullopt for a line into which several ranks wrote at
/// once: what stands in it is of nobody.
std::optional<Message> message_of(std::string_view line, const std::string& host) {
  const std::size_t info = line.find(kInfo);
  const std::size_t warn = line.find(kWarn);
  const std::size_t at = std::min(info, warn);
  if (at == std::string_view::npos) return Message{host, line, false};
  const std::string_view text = line.substr(at + kInfo.size());
  if (holds(text, kInfo) || holds(text, kWarn)) return std::nullopt;
  Message out{host, text, warn < info};
  Scan head(line.substr(0, at));
  while (!head.blanks().at_end()) {
    const std::string_view word = head.word();
    const std::size_t colon = word.find(':');
    // "host:pid:tid", hosts may be digits and dashes; a file's line has no second colon, a time
    // ("[2025-11-02 07:12:33.5]") digits of two behind each.
    const std::string_view ids = colon == std::string_view::npos ? "" : word.substr(colon);
    const bool is_time =
        word.front() == '[' || word.back() == ']' ||
        (colon <= 2 && word.find_first_not_of("0123456789:.,+-TZ") == std::string_view::npos);
    const bool named = colon != std::string_view::npos && colon > 0 && word.rfind(':') != colon &&
                       ids.find_first_not_of("0123456789:") == std::string_view::npos && !is_time;
    if (named) out.host = word.substr(0, colon);
  }
  return out;
}

/// The NICs of a name: NCCL merges the ports of one card, "mlx5_0+mlx5_1".
std::vector<std::string> parts_of(std::string_view name) {
  std::vector<std::string> out;
  Scan scan(name);
  while (!scan.at_end()) {
    if (std::string part(scan.until("+")); !part.empty()) out.push_back(std::move(part));
  }
  return out;
}

class NcclLogReader {
 public:
  NcclLogReader(const EvidenceSection& section, Facts& facts) : section_{section}, facts_{facts} {}

  void read() {
    for (const EvidenceLine& line : section_.lines) {
      if (list_.read(section_, line)) continue;
      const std::optional<Message> message = message_of(line.text, section_.host);
      if (!message) continue;
      host_ = message->host;
      line_ = &line;
      if (message->is_warning) {
        const std::string said = one_line(without_blanks(message->text.substr(0, 240)));
        if (!said.empty()) add("host", fact::kAlert, std::string(fact::kOfNccl) + said);
      } else {
        read(*message);
      }
    }
    list_.add_to(facts_);
  }

 private:
  void read(const Message& message);
  bool read_environment(std::string_view text);
  bool read_nics(std::string_view text);
  bool read_virtual_nic(std::string_view text);
  bool read_nic(std::string_view text);
  bool read_ofi(std::string_view text);
  bool read_rank(std::string_view text);
  bool read_gdr(std::string_view text);
  bool read_connection(std::string_view text);
  bool read_choice(std::string_view text);
  bool read_trees(std::string_view text);
  bool read_other(std::string_view text);

  void add(std::string subject, std::string_view what, std::string value) {
    Fact fact = section_.fact(*line_, std::move(subject), what, std::move(value));
    fact.host = host_;
    facts_.add(std::move(fact));
  }
  void log(std::string subject, std::string_view what, std::string_view value,
           std::size_t most = 512) {
    add(std::move(subject), std::string(fact::kLog) + std::string(what),
        one_line(without_blanks(value).substr(0, most)));
  }

  const EvidenceSection& section_;
  Facts& facts_;
  std::string host_;
  const EvidenceLine* line_{nullptr};
  NcclGraphReader graph_;
  NcclTestsList list_;
};

void NcclLogReader::read(const Message& message) {
  const EvidenceSection named{section_.kind, section_.file, message.host, {}, {}};
  if (graph_.read(named, *line_, message.text, facts_)) return;
  const std::string_view text = without_blanks(message.text);
  [[maybe_unused]] const bool known = read_environment(text) || read_nics(text) ||
                                      read_virtual_nic(text) || read_nic(text) || read_ofi(text) ||
                                      read_rank(text) || read_gdr(text) || read_connection(text) ||
                                      read_choice(text) || read_trees(text) || read_other(text);
}

bool NcclLogReader::read_environment(std::string_view text) {
  if (!text.starts_with("NCCL_")) return false;
  for (const std::string_view words : {" set by environment to ", " set to "}) {
    Scan scan(text);
    const std::string_view name = scan.until(words);
    if (name.size() == text.size() || holds(name, " ")) continue;
    std::string_view value = without_blanks(scan.rest());
    if (value.ends_with('.')) value.remove_suffix(1);
    add("host", std::string(fact::kEnv) + std::string(name), one_line(value.substr(0, 256)));
    return true;
  }
  return false;
}

/// "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.7<0>", "NET/IB : No device
/// found.".
bool NcclLogReader::read_nics(std::string_view text) {
  if (text.starts_with("NET/IB : No device found")) {
    log("NET/IB", "NICs", text);
    return true;
  }
  Scan scan(text);
  if (!scan.skip("NET/IB : Using ") && !scan.skip("NET/IBext")) return false;
  if (!holds(text, " Using ")) return false;
  scan.skip_to("Using ");
  const std::string_view list = Scan(text).until(";");
  log("NET/IB", "list", list);
  std::vector<std::string> names;
  Scan entries(list);
  while (entries.skip_to("[")) {
    const std::optional<std::int64_t> index = entries.whole();
    if (!index || !entries.skip("]")) continue;
    // Merged: "[0]={[0] mlx5_0:1/RoCE, [1] mlx5_1:1/RoCE}".
    if (entries.skip("={")) continue;
    entries.blanks();
    const std::string name(entries.until(":"));
    const bool plain = !name.empty() &&
                       name.find_first_not_of(
                           "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.+") ==
                           std::string::npos;
    if (!plain) continue;
    const std::vector<std::string> nics = parts_of(name);
    names.insert(names.end(), nics.begin(), nics.end());
    const bool has_layer = entries.skip_to("/");
    const bool is_ib = entries.skip("IB");
    const bool is_roce = entries.skip("RoCE");
    for (const std::string& nic : nics) {
      add(nic, fact::kNetIndex, std::to_string(*index));
      if (is_ib || is_roce) add(nic, fact::kLinkLayer, is_ib ? "InfiniBand" : "Ethernet");
    }
    if (!has_layer) break;
  }
  if (holds(list, "[RO]")) {
    for (const std::string& name : names) add(name, fact::kRelaxedOrdering, "on");
  }
  return true;
}

/// "NET/IB : Made virtual device [0] name=mlx5_0 speed=400000 ndevs=1", whose number is NCCL's.
bool NcclLogReader::read_virtual_nic(std::string_view text) {
  Scan scan(text);
  if (!scan.skip("NET/IB : Made virtual device [")) return false;
  const std::optional<std::int64_t> index = scan.whole();
  if (!index || !scan.skip("] name=")) return true;
  const std::string name(scan.word());
  if (scan.at_end() || parts_of(name) != std::vector{name}) return true;  // of several, or cut off
  add(name, fact::kNetIndex, std::to_string(*index));
  return true;
}

/// "NET/IB: [0] mlx5_0:uverbs0:1/IB provider=Mlx5 speed=400000 context=... pciPath=... ar=1". The
/// number is of all verbs devices, also of those that NCCL leaves out.
bool NcclLogReader::read_nic(std::string_view text) {
  Scan scan(text);
  if (!scan.skip("NET/IB: [")) return false;
  if (!scan.whole() || !scan.skip("]")) return true;
  scan.blanks();
  const std::string name(scan.until(":"));
  if (name.empty() || scan.at_end()) return true;
  if (parts_of(name).size() != 1) return true;  // its rate and place are those of several
  Scan speed(scan.rest());
  if (speed.skip_to("speed=")) {
    const std::optional<std::int64_t> megabits = speed.whole();
    if (megabits && *megabits > 0 && *megabits % 1000 == 0) {
      add(name, fact::kRate, std::to_string(*megabits / 1000));
    }
  }
  Scan path(scan.rest());
  if (path.skip_to("pciPath=")) {
    const EvidenceSection named{section_.kind, section_.file, host_, {}, {}};
    const std::string id = add_sysfs_path(named, *line_, path.word(), facts_);
    if (!id.empty()) add(name, fact::kBusId, id);
  }
  return true;
}

/// The plugin for libfabric, aws-ofi-nccl: "NET/OFI Selected provider is efa, fabric is efa (found
/// 4 nics)", older "Selected Provider is efa"; "NET/OFI NIC group 0 device #1 0000:55:00.0".
bool NcclLogReader::read_ofi(std::string_view text) {
  Scan scan(text);
  if (!scan.skip("NET/OFI ")) return false;
  if (scan.skip("Using aws-ofi-nccl ")) {
    const std::string_view version = scan.word();
    add("host", std::string(fact::kVersion) + "aws-ofi-nccl", one_line(version.substr(0, 64)));
  } else if (scan.skip("Selected Provider is ") || scan.skip("Selected provider is ")) {
    const std::string_view provider = Scan(scan.word()).until(",");
    if (!provider.empty()) log("NET/OFI", "provider", provider, 64);
    if (!scan.skip_to("(found ")) return true;
    const std::optional<std::int64_t> nics = scan.whole();
    constexpr std::int64_t kMostNics = 1024;
    if (nics && *nics > 0 && *nics <= kMostNics) log("NET/OFI", "NICs", std::to_string(*nics));
  } else if (text.starts_with("NET/OFI NIC group ")) {
    const std::size_t blank = text.rfind(' ');
    const std::string id = bus_id_of(text.substr(blank + 1));
    if (!id.empty()) log(std::string(text.substr(0, std::min<std::size_t>(blank, 64))), "NIC", id);
  } else {
    return false;
  }
  return true;
}

/// "... comm 0x... rank 3 nranks 16 cudaDev 3 nvmlDev 3 busId 8b000 commId ...";
/// "comm 0x... rank 0 nRanks 16 nNodes 2 localRanks 8 localRank 0 MNNVL 0".
bool NcclLogReader::read_rank(std::string_view text) {
  Scan scan(text);
  if (!scan.skip_to("comm 0x") || !scan.skip_to(" rank ")) return false;
  const std::optional<std::int64_t> rank = scan.whole();
  if (!rank) return false;
  const auto number_behind = [&](std::string_view word) -> std::optional<std::int64_t> {
    Scan at(scan.rest());
    return at.skip_to(word) ? at.whole() : std::nullopt;
  };
  if (const auto nodes = number_behind(" nNodes ")) {
    add("host", fact::kNodes, std::to_string(*nodes));
  }
  for (const std::string_view word : {" nranks ", " nRanks "}) {
    const std::optional<std::int64_t> ranks = number_behind(word);
    if (ranks && *ranks > 0) add("host", fact::kRanks, std::to_string(*ranks));
  }
  Scan bus(scan.rest());
  if (!bus.skip_to(" busId ")) return true;
  const std::optional<std::uint64_t> number = bus.hex();
  if (!number) return true;
  const std::string id = bus_id_of_number(*number);
  add(id, fact::kClass, "0302");
  log("rank " + std::to_string(*rank), "bus id", id);
  if (const auto device = number_behind(" nvmlDev ")) {
    add("gpu" + std::to_string(*device), fact::kBusId, id);
  }
  return true;
}

/// Of a NIC: "NET/IB : GPU Direct RDMA Enabled for HCA 0 'mlx5_0'". Of a pair, up to 2.29: "GPU
/// Direct RDMA Enabled for GPU 18000 / HCA 0 (distance 4 <= 4), read 1".
bool NcclLogReader::read_gdr(std::string_view text) {
  Scan scan(text);
  if (!scan.skip_to("GPU Direct RDMA ")) {
    if (text.starts_with("DMA-BUF is available on GPU device")) {
      add("host", fact::kDmaBuf, "on");
      return true;
    }
    return false;
  }
  const bool on = scan.skip("Enabled");
  if (!on && !scan.skip("Disabled")) return false;
  Scan hca(scan.rest());
  if (hca.skip(" for HCA ")) {
    const std::optional<std::int64_t> index = hca.whole();
    const std::string name(hca.skip_to("'") ? hca.until("'") : "");
    if (!index || name.empty()) return true;
    for (const std::string& nic : parts_of(name)) {
      add(nic, fact::kNetIndex, std::to_string(*index));
      add(nic, fact::kGdr, on ? "on" : "off");
    }
  } else {
    log("GDR" + std::string(scan.rest().substr(0, 64)), "GDR", on ? "on" : "off");
  }
  return true;
}

/// "Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0/GDRDMA", "Channel 00/16 : 0 1 2 3".
bool NcclLogReader::read_connection(std::string_view text) {
  Scan scan(text);
  if (!scan.skip("Channel ")) return false;
  const std::string_view channel = scan.until(" : ");
  if (scan.at_end()) return true;
  Scan via(scan.rest());
  if (via.skip_to(" via ")) {
    const std::string_view pair = without_blanks(scan.until(" via "));
    log("connection " + std::string(pair.substr(0, 64)), "via", via.rest());
  } else {
    // "00/16": of how many.
    log("ring " + std::string(Scan(channel).until("/").substr(0, 16)), "ring", scan.rest(),
        kMostEvidenceLineBytes);
  }
  return true;
}

/// "AllReduce: 1048576 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..15}", and older
/// "1048576 Bytes -> Algo 1 proto 2 time 54.2".
bool NcclLogReader::read_choice(std::string_view text) {
  Scan scan(text);
  const std::string_view what = scan.until(" Bytes -> ");
  if (scan.at_end() || what.size() > 64) return false;
  log("choice " + std::string(what), "choice", scan.rest());
  return true;
}

/// "Trees [0] 1/8/-1->0->-1 [1] 1/-1/-1->0->8": a rank's children and parent in each channel.
bool NcclLogReader::read_trees(std::string_view text) {
  Scan scan(text);
  if (!scan.skip("Trees ")) return false;
  Scan rank(scan.rest());
  if (!rank.skip_to("->")) return true;
  log("trees of rank " + std::string(rank.until("->").substr(0, 16)), "trees", scan.rest(),
      kMostEvidenceLineBytes);
  return true;
}

bool NcclLogReader::read_other(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kLines{
      {{"Pattern ", "graph"},
       {"Ring ", "ring"},
       {"P2P Chunksize set to ", "chunk"},
       {"Check P2P Type ", "P2P"},
       {"NVLS ", "NVLS"},
       {"MNNVL ", "MNNVL"},
       {"Using network ", "network"},
       {"threadThresholds ", "thresholds"},
       {"Init timings", "timings"}}};
  Scan version(text);
  if (version.skip("NCCL version ")) {
    add("host", std::string(fact::kVersion) + "NCCL", std::string(version.word()));
    return true;
  }
  if (version.skip("cudaDriverVersion ")) {
    add("host", std::string(fact::kVersion) + "CUDA driver", std::string(version.word()));
    return true;
  }
  for (const auto& [begin, what] : kLines) {
    if (!text.starts_with(begin)) continue;
    log(std::string(what) + " " + std::string(text.substr(0, text.find_first_of(",:]"))), what,
        text);
    return true;
  }
  // Up to 2.4: "CUDA Dev 0[0], IB NIC distance :  PIX".
  if (text.starts_with("CUDA Dev ") && holds(text, " NIC distance :")) {
    Scan distance(text);
    const std::string_view device = distance.until(",");
    distance.skip_to(" :");
    log(std::string(device.substr(0, 64)), "NIC distance", distance.rest());
    return true;
  }
  if (holds(text, " coll channels, ")) {
    log("channels", "channels", text);
    return true;
  }
  const std::size_t bar = text.find(" | ");
  const bool is_command = text.starts_with('#') || text.starts_with('$');  // "# lsmod | grep peer"
  if (bar != std::string_view::npos && bar < 24 && !is_command) {
    log("tuning " + std::string(without_blanks(text.substr(0, bar))), "tuning",
        text.substr(bar + 3));
    return true;
  }
  return false;
}

}  // namespace

void read_nccl_log(const EvidenceSection& section, Facts& facts) {
  NcclLogReader(section, facts).read();
}

}  // namespace weft
