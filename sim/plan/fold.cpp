#include "sim/plan/fold.hpp"

#include <algorithm>
#include <utility>

namespace weft {
namespace {

/// What belongs to one channel, connections numbered from its first.
struct ChannelPart {
  std::vector<Connection> connections;
  std::vector<Program> programs;
  friend bool operator==(const ChannelPart&, const ChannelPart&) = default;
};

/// Channels that something is on: of sends to several peers there are more than Plan::channels.
std::uint32_t channels_of(const Plan& plan) {
  std::uint32_t count = 0;
  for (const Connection& c : plan.connections) count = std::max(count, c.channel + 1);
  for (const Program& p : plan.programs) count = std::max(count, p.channel + 1);
  return count;
}

/// Of every connection its number within its channel.
std::vector<ConnectionIndex> numbers_within_channels(const Plan& plan, std::uint32_t channels) {
  std::vector<ConnectionIndex> next(channels, 0);
  std::vector<ConnectionIndex> out;
  out.reserve(plan.connections.size());
  for (const Connection& c : plan.connections) out.push_back(next[c.channel]++);
  return out;
}

template <class Renumber>
void renumber(ConnectionList& list, const Renumber& number) {
  ConnectionList out;
  for (const ConnectionIndex c : list) out.add(number(c));
  list = out;
}

template <class Renumber>
void renumber(Program& program, const Renumber& number) {
  for (Loop& loop : program.loops) {
    for (Step& step : loop.body) {
      renumber(step.in, number);
      renumber(step.out, number);
    }
  }
}

bool has_messages(const Plan& plan) {
  return std::any_of(plan.connections.begin(), plan.connections.end(),
                     [](const Connection& c) { return c.carry.has_value(); });
}

std::vector<ChannelPart> parts_of(const Plan& plan, std::uint32_t channels) {
  const std::vector<ConnectionIndex> within = numbers_within_channels(plan, channels);
  std::vector<ChannelPart> parts(channels);
  for (Connection c : plan.connections) {
    ChannelPart& part = parts[std::exchange(c.channel, 0)];
    part.connections.push_back(c);
  }
  for (Program p : plan.programs) {
    ChannelPart& part = parts[std::exchange(p.channel, 0)];
    renumber(p, [&within](ConnectionIndex c) { return within[c]; });
    part.programs.push_back(std::move(p));
  }
  return parts;
}

}  // namespace

Plan fold_channels(Plan plan) {
  const std::uint32_t channels = channels_of(plan);
  if (channels < 2 || has_messages(plan)) return plan;
  struct Fold {
    ChannelPart part;
    std::uint32_t channel;
    std::uint32_t copies;
  };
  std::vector<Fold> folds;
  std::uint32_t channel = 0;
  for (ChannelPart& part : parts_of(plan, channels)) {
    const auto like = std::find_if(folds.begin(), folds.end(),
                                   [&part](const Fold& fold) { return fold.part == part; });
    if (like == folds.end()) {
      folds.push_back({std::move(part), channel, 1});
    } else {
      ++like->copies;
    }
    ++channel;
  }
  if (folds.size() == channels) return plan;
  plan.connections.clear();
  plan.programs.clear();
  for (Fold& fold : folds) {
    const auto first = static_cast<ConnectionIndex>(plan.connections.size());
    for (Connection c : fold.part.connections) {
      c.channel = fold.channel;
      plan.connections.push_back(c);
    }
    for (Program& p : fold.part.programs) {
      p.channel = fold.channel;
      p.copies = fold.copies;
      renumber(p, [first](ConnectionIndex c) { return first + c; });
      plan.programs.push_back(std::move(p));
    }
  }
  return plan;
}

}  // namespace weft
