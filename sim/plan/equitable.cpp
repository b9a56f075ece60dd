#include "sim/plan/equitable.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <span>
#include <stdexcept>
#include <utility>

#include "sim/base/random.hpp"

namespace weft {

std::uint32_t LabelNumbers::operator()(std::uint64_t label) {
  Slot& slot = find(label);
  if (slot.number != kNone) return slot.number;
  slot = {label, count_++};
  const std::uint32_t number = slot.number;
  if (2 * std::size_t{count_} > slots_.size()) grow();
  return number;
}

LabelNumbers::Slot& LabelNumbers::find(std::uint64_t label) {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = static_cast<std::size_t>(label) & mask;
  while (slots_[at].number != kNone && slots_[at].label != label) at = (at + 1) & mask;
  return slots_[at];
}

void LabelNumbers::grow() {
  std::vector<Slot> old(2 * slots_.size());
  old.swap(slots_);
  for (const Slot& slot : old) {
    if (slot.number != kNone) find(slot.label) = slot;
  }
}

std::uint32_t LabelledGraph::add_edge(std::uint32_t from, std::uint32_t to, std::uint64_t label) {
  Run& run = from_[from];
  if (run.count == 0) run.begin = static_cast<std::uint32_t>(to_.size());
  if (run.begin + run.count != to_.size()) {
    throw std::logic_error("LabelledGraph: edges of others between those of a node");
  }
  ++run.count;
  const std::uint32_t number = number_of_(label);
  if (number == labels_.size()) labels_.push_back(label);
  to_.push_back({to, number});
  return number;
}

namespace {

constexpr std::uint32_t kNone = ~std::uint32_t{0};

/// A partition that is refined: classes are split by their nodes' edges to one class after another.
class Refinement {
 public:
  /// `asked` is called now and then.
  Refinement(const LabelledGraph& graph, const std::function<void()>& asked)
      : graph_{graph}, edges_to_{graph, [&asked, edges = 0U](std::uint32_t) mutable {
                                   constexpr std::uint32_t kBetween = 1U << 16U;
                                   if (++edges % kBetween == 0) asked();
                                   return true;
                                 }} {
    for (const std::uint64_t label : graph.labels()) {
      weights_.push_back({splitmix64(label), splitmix64(~label)});
    }
    add_classes(graph.nodes);
  }

  /// Until it is equitable; false if `goes_on` says no before.
  bool refine(const std::function<bool(std::size_t)>& goes_on) {
    std::size_t halves = 0;
    while (!open_.empty()) {
      if (!goes_on(std::exchange(halves, 0) / 2)) return false;
      const std::uint32_t splitter = open_.back();
      open_.pop_back();
      halves = weigh_edges_to(splitter);
      for (const std::uint32_t c : met_classes_) split(c);
      met_classes_.clear();
    }
    return true;
  }

  /// It is over then: its memory is the partition's.
  Partition partition() && {
    Partition out;
    std::vector<std::uint32_t> number(classes_.size(), kNone);
    for (std::uint32_t& c : class_of_) {
      if (number[c] == kNone) {
        number[c] = static_cast<std::uint32_t>(out.size.size());
        out.size.push_back(classes_[c].size);
      }
      c = number[c];
    }
    out.class_of = std::move(class_of_);
    return out;
  }

 private:
  using Half = LabelledGraph::Half;
  /// Of an edge of a label, seen from where it begins and from where it ends.
  struct Weights {
    std::uint64_t forwards;
    std::uint64_t backwards;
  };
  /// Its members stand side by side in members_, those that were met first.
  struct Class {
    std::uint32_t begin{0};
    std::uint32_t size{0};
    std::uint32_t met{0};
  };

  void add_classes(const std::vector<std::uint64_t>& labels) {
    LabelNumbers number_of;
    class_of_.reserve(labels.size());
    for (const std::uint64_t label : labels) {
      const std::uint32_t c = number_of(label);
      if (c == classes_.size()) classes_.emplace_back();
      ++classes_[c].size;
      class_of_.push_back(c);
    }
    for (std::uint32_t c = 1; c < classes_.size(); ++c) {
      classes_[c].begin = classes_[c - 1].begin + classes_[c - 1].size;
    }
    open_.resize(classes_.size());
    std::iota(open_.rbegin(), open_.rend(), 0);
    members_.resize(labels.size());
    place_.resize(labels.size());
    weight_.resize(labels.size());
    std::vector<std::uint32_t> filled(classes_.size());
    for (std::uint32_t n = 0; n < labels.size(); ++n) {
      const std::uint32_t c = class_of_[n];
      put(n, classes_[c].begin + filled[c]++);
    }
  }

  void put(std::uint32_t node, std::uint32_t place) {
    members_[place] = node;
    place_[node] = place;
  }

  /// For each node with edges from or to a class the sum of these edges' weights: with labels of 64
  /// bits it stands for how many of each label there are. How many edges.
  std::size_t weigh_edges_to(std::uint32_t splitter) {
    const auto begin = members_.begin() + classes_[splitter].begin;
    of_splitter_.assign(begin, begin + classes_[splitter].size);  // members_ is reordered
    std::size_t count = 0;
    for (const std::uint32_t member : of_splitter_) {
      for (const Half& edge : graph_.edges_from(member)) weigh(edge, weights_[edge.label].forwards);
      for (const Half& edge : edges_to_.of(member)) weigh(edge, weights_[edge.label].backwards);
      count += graph_.edges_from(member).size() + edges_to_.of(member).size();
    }
    return count;
  }

  void weigh(const Half& edge, std::uint64_t weight) {
    meet(edge.node);
    weight_[edge.node] += weight;
  }

  /// Puts a node first in its class, among those that were met before.
  void meet(std::uint32_t node) {
    Class& c = classes_[class_of_[node]];
    const std::uint32_t place = place_[node];
    const std::uint32_t end = c.begin + c.met;
    if (place < end) return;
    if (c.met++ == 0) met_classes_.push_back(class_of_[node]);
    put(members_[end], place);
    put(node, end);
  }

  /// By the weights of its members. The largest part keeps the number and is not opened for that:
  /// what it would split, the whole has split or will, together with the other parts (Hopcroft).
  void split(std::uint32_t number) {
    const Class whole = classes_[number];
    const std::uint32_t end_of_met = whole.begin + whole.met;
    parts_.clear();
    sort_met(whole);
    for (std::uint32_t begin = whole.begin; begin < end_of_met;) {
      std::uint32_t end = begin;
      const std::uint64_t weight = weight_[members_[begin]];
      for (; end < end_of_met && weight_[members_[end]] == weight; ++end)
        weight_[members_[end]] = 0;
      parts_.push_back({begin, end - begin});
      begin = end;
    }
    if (whole.met < whole.size) parts_.push_back({end_of_met, whole.size - whole.met});
    const auto largest = std::ranges::max_element(parts_, {}, &Class::size);
    classes_[number] = *largest;
    for (auto part = parts_.begin(); part != parts_.end(); ++part) {
      if (part == largest) continue;
      const auto added = static_cast<std::uint32_t>(classes_.size());
      for (std::uint32_t at = part->begin; at < part->begin + part->size; ++at) {
        class_of_[members_[at]] = added;
      }
      classes_.push_back(*part);
      open_.push_back(added);
    }
  }

  void sort_met(const Class& c) {
    const std::span<std::uint32_t> met(members_.data() + c.begin, c.met);
    const auto weight_of = [this](std::uint32_t node) { return weight_[node]; };
    if (std::ranges::is_sorted(met, {}, weight_of)) return;
    std::ranges::sort(met, {}, weight_of);
    for (std::uint32_t at = c.begin; at < c.begin + c.met; ++at) place_[members_[at]] = at;
  }

  const LabelledGraph& graph_;
  EdgesTo edges_to_;
  std::vector<Weights> weights_;  // by label
  std::vector<Class> classes_;
  std::vector<std::uint32_t> class_of_;  // by node
  std::vector<std::uint32_t> members_;
  std::vector<std::uint32_t> place_;   // by node: in members_
  std::vector<std::uint64_t> weight_;  // by node: of its edges to the splitter
  std::vector<std::uint32_t> open_;    // classes that others are still to be split by
  std::vector<std::uint32_t> of_splitter_;
  std::vector<std::uint32_t> met_classes_;
  std::vector<Class> parts_;
};

}  // namespace

std::optional<Partition> coarsest_equitable_partition(
    const LabelledGraph& graph, const std::function<bool(std::size_t)>& goes_on) {
  bool is_stopped = false;
  Refinement refinement(graph, [&] { is_stopped = is_stopped || !goes_on(0); });
  if (is_stopped || !refinement.refine(goes_on)) return std::nullopt;
  return std::move(refinement).partition();
}

}  // namespace weft
