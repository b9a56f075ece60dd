#pragma once

#include <map>
#include <string>
#include <vector>

#include "models/nccl/decide/env.hpp"
#include "sim/base/params.hpp"
#include "sim/input/scenario.hpp"
#include "sim/topology/spec.hpp"

namespace weft {

/// Splits the "key=value" of a `--set`. Throws InputError.
ScenarioSetting parse_setting(const std::string& text);
/// A command line's settings: each "--set", then its "--gpu" (a part's name) if there is one.
/// Throws InputError.
std::vector<ScenarioSetting> parse_settings(const std::vector<std::string>& set,
                                            const std::string& gpu = {});

/// A key that `--set` and a scenario's `set` take, in words for people.
struct SettingKey {
  std::string key;       ///< "nic.pcie_width", "network.kind", "nodes"
  std::string unit;      ///< as unit_symbol has it; "" for words and for what no parameter is
  std::string range;     ///< what is allowed
  std::string fallback;  ///< the value without it
  std::string origin;    ///< where that value comes from; "topology": the topology file says it
  std::string source;
  std::string meaning;
  std::vector<std::string> also;  ///< the key for one device, named ("<nic>.pcie_width"), or a tier
};

/// Every key that apply_settings takes, sorted: the catalogue's parameters, and what changes the
/// topology instead.
std::vector<SettingKey> setting_keys(const ParamCatalog& catalog);

/// Gives `params` what the topology says for all and what the user sets. A setting's scope is a
/// kind of device ("nic.pcie_width"), a device of the topology ("nic3.pcie_width", and
/// "spine.latency" for a tier of its network), a device or kind of one node alone
/// ("nic3@5.trained_width", see may_differ_by_node()) or none of these ("wire.mtu"). Some change
/// `spec` instead: "nodes"; "gpu.count" and "nic.count", how many GPUs and cabled NICs of each node
/// there are; "network.KEY", what the file could say of the network ("network.oversubscription");
/// "gpu.part" which product all devices of a kind are, "gpu3.part" one of them ("h100" stands for
/// "h100-sxm", "A100-SXM4-80GB" for "a100-sxm"). Then a skeleton's NVLinks are drawn where its
/// GPUs' part says how many they have. Throws InputError with the setting's place.
void apply_settings(const std::vector<ScenarioSetting>& settings, TopologySpec& spec,
                    Params& params);

/// Takes out the NICs that are cabled to no network (a storage NIC, say): collectives use none of
/// them.
void drop_uncabled_nics(TopologySpec& spec);

/// Reads NCCL's environment variables and sets what they mean for the plans' parameters, and NCCL's
/// own default for the retransmission timeout: before apply_settings. Its notes
/// name those that weft does not model. Throws InputError: a name or value that is not NCCL's, with
/// the variable's place where `places` has it.
NcclEnv apply_nccl_env(const std::map<std::string, std::string>& env, Params& params,
                       const std::map<std::string, Place>& places = {}, NcclVersion version = {});

}  // namespace weft
