#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/cases/change.hpp"

namespace weft {

/// What a piece of evidence says, and where: "f.txt:17".
struct Quote {
  std::string place;  ///< "" where several places say it together
  std::string text;
};

/// One size on two machines.
struct SizePrice {
  std::int64_t bytes{0};
  double found_us{0};
  double mended_us{0};
  std::string found_path;  ///< memory path: "gdr", "host-staged", "nccl": GPUDirect RDMA in part
  std::string mended_path;

  /// The share of bus bandwidth that is lost: 1 - found / mended.
  double cost() const { return found_us > 0 ? 1 - mended_us / found_us : 0; }
};

/// The most that any size costs; 0 where none does.
double most_cost(const std::vector<SizePrice>& sizes);

/// What nothing says of the machine, where it makes a finding worse than what is assumed.
struct AtWorst {
  std::string where;  ///< "where pages are of 4 KiB"
  Change change;      ///< makes the machine so
};

/// What a finding costs, as the model predicts it.
struct FindingPrice {
  std::string why_not;           ///< why there is none; "" if there is
  std::vector<SizePrice> alone;  ///< with only this one mended
  std::vector<SizePrice> last;   ///< with all others mended, against all mended
  std::vector<SizePrice> worst;  ///< of AtWorst, against only this one mended

  /// The most over sizes, as the machine is taken to be.
  double most() const;
  /// And at worst.
  double at_most() const;
};

/// One thing that is wrong.
struct Finding {
  std::string check;
  std::string host;                  ///< "" where the evidence names none
  std::vector<std::string> also_on;  ///< other hosts whose own evidence says the same
  std::string what;                  ///< "3 of 8 GPUs ..."
  std::string remedy;                ///< what to do
  std::vector<Quote> evidence;
  Change mend;
  std::optional<AtWorst> at_worst{};
  std::string why_unpriced;  ///< where it is nothing that the model can mend
  bool is_error{false};      ///< counts whatever it costs
  FindingPrice price{};

  bool can_be_mended() const { return why_unpriced.empty() && !mend.empty(); }
};

enum class Verdict : std::uint8_t { kOk, kFinding, kUnknown, kNotHere };
/// "ok", "finding", "unknown", "does not apply".
std::string_view verdict_name(Verdict verdict);

/// What a check came to.
struct Outcome {
  Verdict verdict{Verdict::kUnknown};
  std::string text;     ///< what was seen, or what is not known
  std::string command;  ///< that would tell; of an unknown one
  std::vector<Quote> evidence;
  std::vector<Finding> findings;
};

Outcome all_well(std::string text, std::vector<Quote> evidence = {});
Outcome not_known(std::string text, std::string command);
Outcome not_here(std::string text);
Outcome found(std::vector<Finding> findings);

}  // namespace weft
