#include "sim/input/evidence/kernel.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/input/evidence/readers.hpp"
#include "sim/input/evidence/scan.hpp"
#include "sim/io/linux_release.hpp"

namespace weft {
namespace {

/// Red Hat's and Oracle's, Amazon's, SUSE's: their kernels' numbers say little.
bool is_backported(std::string_view linux_release) {
  constexpr std::array<std::string_view, 3> kVendors{".el", ".amzn", "-default"};
  return std::any_of(kVendors.begin(), kVendors.end(),
                     [&](std::string_view vendor) { return holds(linux_release, vendor); });
}

/// "/lib/modules/5.15.0-105-generic/updates/dkms/nvidia.ko.zst": which module it is, of which
/// kernel.
struct ModuleFile {
  std::string_view name;
  std::string_view release;  ///< "" if the path does not say
};
ModuleFile module_file_of(std::string_view path) {
  ModuleFile out;
  out.name = path.substr(path.rfind('/') + 1);
  out.name = out.name.substr(0, out.name.find(".ko"));
  Scan scan(path);
  if (scan.skip_to("/lib/modules/")) out.release = linux_release_of(scan.until("/"));
  return out;
}

}  // namespace

std::optional<bool> registers_dma_buf(std::string_view linux_release) {
  constexpr std::pair<std::int64_t, std::int64_t> kFirst{5, 12};
  Scan scan(linux_release);
  const std::int64_t major = scan.whole().value_or(0);
  const std::int64_t minor = scan.skip(".") ? scan.whole().value_or(0) : 0;
  if (major > 0 && std::pair(major, minor) >= kFirst) return true;
  if (major == 0 || is_backported(linux_release)) return std::nullopt;
  return false;
}

/// Several releases are a list, such as `ls /lib/modules`, and say none.
void read_uname(const EvidenceSection& section, Facts& facts) {
  const EvidenceLine* said = nullptr;
  std::string_view release;
  for (const EvidenceLine& line : section.lines) {
    const std::string_view here = linux_release_of(without_blanks(line.text));
    if (here.empty() || here == release) continue;
    if (said != nullptr) return;
    said = &line;
    release = here;
  }
  if (said == nullptr) return;
  facts.add(
      section.fact(*said, "host", std::string(fact::kVersion) + "Linux", std::string(release)));
}

/// Debian calls NVIDIA's module nvidia-current. Of what `grep` leaves without a file it is taken to
/// be NVIDIA's.
void read_modinfo(const EvidenceSection& section, Facts& facts) {
  bool is_nvidia = true;
  for (const EvidenceLine& line : section.lines) {
    const std::optional<KeyAndValue> entry = key_and_value(line.text);
    if (!entry) continue;
    const auto add = [&, at = &line](std::string_view what, std::string_view value) {
      facts.add(section.fact(*at, "host", what, one_line(value.substr(0, 64))));
    };
    if (entry->key == "filename") {
      const ModuleFile file = module_file_of(entry->value);
      is_nvidia = file.name == "nvidia" || file.name == "nvidia-current";
      if (!file.release.empty()) add(std::string(fact::kVersion) + "Linux", file.release);
    } else if (is_nvidia && entry->key == "version" && !entry->value.empty()) {
      add(std::string(fact::kVersion) + "NVIDIA driver", entry->value);
    } else if (is_nvidia && entry->key == "license") {
      if (entry->value == "Dual MIT/GPL") add(fact::kKernelModules, "open");
      if (entry->value == "NVIDIA") add(fact::kKernelModules, "proprietary");
    }
  }
}

}  // namespace weft
