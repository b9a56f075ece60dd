#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/input/evidence/fact.hpp"

namespace weft {

/// Two facts that cannot both hold, and which of them was taken.
struct Conflict {
  std::string what;
  std::string taken;
  Place taken_place;
  std::string other;
  Place other_place;
  std::size_t alike{0};  ///< how many more there are of the kind, which stand with this one
};
/// "gpu0: lanes: 16 (a.txt:3) is taken, not 8 (b.txt:9)".
std::string text_of(const Conflict& conflict);

/// What facts say, in their order.
std::vector<std::string> values_of(const std::vector<const Fact*>& facts);

/// The facts of one host: its own, and those of evidence that names no host.
class HostView {
 public:
  HostView(const Facts& facts, std::vector<std::string> hosts);

  std::vector<const Fact*> find(const std::string& subject, std::string_view what) const;
  /// The first in order of the evidence, or nullptr. Other values of the same are conflicts.
  const Fact* first(const std::string& subject, std::string_view what) const;
  std::vector<const Fact*> beginning(std::string_view what) const;
  /// Its value; "" if there is none.
  std::string value(const std::string& subject, std::string_view what) const;
  /// Subjects that are PCI functions, sorted.
  const std::vector<std::string>& functions() const { return functions_; }
  /// Facts of one subject that differ, of what has one value. Two matrices of topo -m differ once.
  std::vector<Conflict> conflicts() const;

 private:
  const Facts& facts_;
  std::vector<std::string> hosts_;
  std::vector<std::string> functions_;
};

/// The hosts of some evidence: the one that an import is of, and how the others differ from it.
struct HostDifference {
  std::string host;
  std::string subject;
  std::string what;
  std::string value;
  std::string usual;  ///< what most hosts say
  Place place;
  Place usual_place;
};
struct ComparedHosts {
  std::string reference;  ///< the first that is as most are, of those of which most is known
  std::vector<std::string> names;   ///< sorted; "" alone where none is named
  std::vector<HostDifference> odd;  ///< by host
  bool unnamed{false};              ///< evidence without a host, taken to be the reference's
};
ComparedHosts compare_hosts(const Facts& facts);

}  // namespace weft
