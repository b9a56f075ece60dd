#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/result/log_text.hpp"
#include "sim/result/measured.hpp"

namespace weft {

/// Which tests of a perftest log are the two ends of one run: client and server print the same
/// table, and each the other's address as its remote one. QPN and PSN tell runs apart.
class PerftestEnds {
 public:
  /// A test begins behind that many rows.
  void begin(std::size_t rows);
  /// A line of its head: " local address: LID 0x01 QPN 0x0867 PSN 0x6d058e RKey ...".
  void read(const Words& words);
  /// The head of its table, "#bytes #iterations ...".
  void table();
  /// Takes one end's rows out of the table where the other has their sizes, and notes it: those of
  /// the end that has fewer sizes, else the server's, else those below. Of ends that printed into
  /// one another, the second row of each size that has two. Ends whose memory differs both stay.
  void take_out(MeasuredTable& table) const;

 private:
  /// A queue pair's number and first sequence number, of 24 bits each; 0: not known.
  using Address = std::uint64_t;
  struct Test {
    std::size_t first{0};  ///< of its rows
    std::vector<Address> local{};
    std::vector<Address> remote{};
    bool is_client{false};  ///< it says its send queue's depth
    int tables{0};          ///< heads of tables: two, where the other end's stands among its rows
  };
  using Pair = std::pair<std::size_t, std::size_t>;  // of tests

  static bool are_both_ends(const Test& test);
  std::vector<Pair> pairs() const;
  std::size_t end_of(std::size_t test, const MeasuredTable& table) const;
  std::size_t rows_of(std::size_t test, const MeasuredTable& table) const;
  std::set<std::int64_t> sizes_of(std::size_t test, const MeasuredTable& table) const;
  bool are_alike(Pair pair, MeasuredTable& table) const;
  Pair kept_first(Pair pair, const MeasuredTable& table) const;
  /// Marks the other end's rows of sizes that the first has as to be dropped, and notes it.
  void take_other_end(Pair kept_and_other, MeasuredTable& table, std::vector<bool>& drop) const;
  /// Of a test among whose rows the other end's stand, as two heads of tables tell, marks the
  /// second row of each size that has two as to be dropped, and notes it. A size of more is of a
  /// run without end (--run_infinitely), which prints it again and again: these stay.
  void take_half(std::size_t test, MeasuredTable& table, std::vector<bool>& drop) const;

  std::vector<Test> tests_;
};

}  // namespace weft
