#pragma once

#include <string>
#include <vector>

#include "models/doctor/patient.hpp"
#include "models/explain/catalogue.hpp"

namespace weft {

/// A cause at one place of a machine, and what speaks for and against it.
struct Suspect {
  const CauseEntry* entry;  ///< of a catalogue that outlives it
  Variant variant;
  double weight{1};             ///< by which evidence makes it more likely; 0: it is ruled out
  std::vector<Quote> quotes{};  ///< that say so
  std::string said{};           ///< what the check came to; "" if evidence says nothing of it
};

/// Every variant of every entry that can be on the machine.
std::vector<Suspect> suspects_of(const std::vector<CauseEntry>& entries, const Site& site);

/// Goes through the doctor's checklist. A finding of an entry's check about the same parameter of
/// the same device, or of one alike at `site`, or the same variable, makes a suspect more likely; a
/// check that is ok rules out those it decides, and makes others that it looks at less likely, but
/// for variables at the values that the evidence sets; GPUDirect RDMA that NCCL's log shows in use
/// rules out what would turn it off. `as_found`: the machine is the evidence's, so that each
/// finding that has a mend is a suspect of its own, with the values that were found.
void weigh_by(const Patient& patient, const Site& site, bool as_found,
              std::vector<Suspect>& suspects);

/// The evidence's machine with all that is found there mended.
MachineCase mended_machine(const Patient& patient);

}  // namespace weft
