#pragma once

#include <span>
#include <string>
#include <string_view>

#include "sim/io/keys.hpp"
#include "sim/topology/spec.hpp"

namespace weft {

/// What a topology file may say of a network as a whole, one word or number each: "kind", "ports",
/// "oversubscription" and so on, as NetworkSpec's members are named. The same keys, after
/// "network.", are settings.
std::span<const KeySpec> network_keys();

/// Sets one of them from its text. Another kind drops what only the kind before could be told; a
/// ratio drops the count of ports that it stands for, and the other way round. Throws InputError
/// without a place: no such key, not a kind, not a number. How the values go together is checked by
/// Fabric's constructor.
void set_network(NetworkSpec& network, std::string_view key, const std::string& text);
/// What set_network reads back; "" where nobody set it. Throws InputError: no such key.
std::string network_text(const NetworkSpec& network, std::string_view key);

}  // namespace weft
