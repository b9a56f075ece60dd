#include "models/expect/error_band.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/expect/student.hpp"
#include "sim/base/quantile.hpp"
#include "sim/base/units.hpp"
#include "sim/result/measured.hpp"

namespace weft {
namespace {

constexpr std::int64_t kLarge = Bytes::mib(64).count();        // bandwidth decides from here on
constexpr std::int64_t kLargeMessage = Bytes::kib(8).count();  // likewise, of perftest
constexpr std::int64_t kFewInFlight = 8;  // requests; below, the latency of each decides
constexpr std::int64_t kMostInNode = 8;   // GPUs; more are a rack of one NVLink domain

using Has = std::function<bool(const KnownError&)>;
struct ErrorClass {
  std::string name;
  Has has;
};

template <class Point>
bool is_rdma(const Point& p) {
  return std::find(kPerftestOps.begin(), kPerftestOps.end(), p.op) != kPerftestOps.end();
}

template <class Point>
bool is_rack(const Point& p) {
  return p.ranks > kMostInNode * p.nodes;
}

template <class Point>
std::string_view nodes_name(const Point& p) {
  if (is_rack(p)) return p.nodes == 1 ? "1 rack" : "several racks";
  if (p.nodes == 1) return "1 node";
  return p.nodes < 4 ? "2 and 3 nodes" : "4 nodes and more";
}

template <class Point>
std::string_view size_name(const Point& p) {
  if (is_rdma(p)) return p.bytes >= kLargeMessage ? "8 KiB and more" : "below 8 KiB";
  return p.bytes >= kLarge ? "64 MiB and more" : "below 64 MiB";
}

template <class Point>
bool is_deep(const Point& p) {
  return p.qps * p.tx_depth > kFewInFlight;
}

template <class Point>
std::string rdma_name(const Point& p) {
  return fmt::format("perftest of host and GPU memory together, {}, {}", size_name(p),
                     p.op.ends_with("_lat") ? "one message alone"
                     : is_deep(p)           ? "more than 8 requests in flight"
                                            : "up to 8 requests in flight");
}

/// What of the known errors may speak of a query at all.
bool is_alike(const ErrorQuery& query, const KnownError& e) {
  return e.transport == query.transport && is_rdma(e) == is_rdma(query) &&
         (is_rdma(e) || e.memory_path == query.memory_path) &&
         (e.nodes == 1) == (query.nodes == 1) && is_rack(e) == is_rack(query);
}

/// Why nothing that was measured speaks of a query; "" if something does.
std::string obstacle(const ErrorQuery& query, std::span<const KnownError> known) {
  if (query.transport != "nvlink" && query.transport != "net") {
    return "no published run of GPUs that no NVLink joins";
  }
  if (!query.unlike.empty()) return query.unlike;
  if (!is_rdma(query) && query.nodes > 1 && query.ranks <= query.nodes) {
    return "no published run of one GPU a node";
  }
  const auto any = [&](const auto& has) {
    return std::any_of(known.begin(), known.end(),
                       [&](const KnownError& e) { return is_alike(query, e) && has(e); });
  };
  if (!is_rdma(query) && query.memory_path == "host-staged") {
    return "no published run staged in host memory";
  }
  if (!any([&](const KnownError& e) { return e.op == query.op; })) {
    const bool several = query.nodes > 1 && !is_rack(query);
    return fmt::format("no published {} of {}", query.op,
                       several ? "several nodes" : nodes_name(query));
  }
  const auto at_least_half = [&](const KnownError& e) { return 2 * e.nodes >= query.nodes; };
  if (!any(at_least_half)) {
    std::int64_t most = 0;
    for (const KnownError& e : known) {
      if (is_alike(query, e)) most = std::max(most, e.nodes);
    }
    return fmt::format(
        "no published run of more than {} nodes says how its switches are joined, and it is {} "
        "(models/validation.md, Large runs)",
        most, query.nodes);
  }
  return "";
}

/// From the narrowest on.
std::vector<ErrorClass> classes_of(const ErrorQuery& query) {
  const Has alike = [query](const KnownError& e) { return is_alike(query, e); };
  const Has same_size = [query](const KnownError& e) { return size_name(e) == size_name(query); };
  if (is_rdma(query)) {
    return {{rdma_name(query),
             [=](const KnownError& e) { return alike(e) && rdma_name(e) == rdma_name(query); }}};
  }
  const Has same_nodes = [query](const KnownError& e) {
    return nodes_name(e) == nodes_name(query);
  };
  const std::string size(size_name(query));
  const std::string nodes(nodes_name(query));
  std::vector<ErrorClass> out{{query.op + ", " + nodes + ", " + size, [=](const KnownError& e) {
                                 return alike(e) && e.op == query.op && same_nodes(e) &&
                                        same_size(e);
                               }}};
  if (query.nodes > 1) {
    out.push_back({query.op + ", several nodes, " + size, [=](const KnownError& e) {
                     return alike(e) && e.op == query.op && same_size(e);
                   }});
  }
  const std::string any = query.nodes > 1 ? "several nodes" : nodes;
  out.push_back({"all operations, " + any + ", " + size,
                 [=](const KnownError& e) { return alike(e) && same_size(e); }});
  return out;
}

std::vector<const KnownError*> members(const ErrorClass& of_class,
                                       std::span<const KnownError> known) {
  std::vector<const KnownError*> out;
  for (const KnownError& e : known) {
    if (of_class.has(e)) out.push_back(&e);
  }
  return out;
}

std::size_t count_sites(std::span<const KnownError* const> rows) {
  std::set<std::string_view> sites;
  for (const KnownError* const row : rows) sites.insert(row->site);
  return sites.size();
}

/// log_ratio() of each, and its weight: each site's sum is 1.
std::vector<std::pair<double, double>> weighted(std::span<const KnownError* const> rows) {
  std::map<std::string_view, double> points;
  for (const KnownError* const row : rows) ++points[row->site];
  std::vector<std::pair<double, double>> out;
  for (const KnownError* const row : rows) {
    out.emplace_back(row->log_ratio(), 1 / points[row->site]);
  }
  return out;
}

/// With the prediction itself in it, and as multiples.
ErrorInterval multiples(double low, double high) {
  return {std::exp(std::min(low, 0.0)), std::exp(std::max(high, 0.0))};
}

std::string counted(std::size_t sites, std::size_t points) {
  return fmt::format("{} {}, {} {}", sites, sites == 1 ? "site" : "sites", points,
                     points == 1 ? "point" : "points");
}

}  // namespace

std::pair<double, double> log_interval(std::span<const KnownError* const> rows) {
  const std::vector<std::pair<double, double>> values = weighted(rows);
  const double median = weighted_quantile(values, 0.5);
  const double wider = widening(1 - kTail, static_cast<double>(count_sites(rows)));
  return {median + wider * (weighted_quantile(values, kTail) - median),
          median + wider * (weighted_quantile(values, 1 - kTail) - median)};
}

ErrorBand uncovered_band(std::string why, std::span<const KnownError> known) {
  double low = 0;
  double high = 0;
  for (const KnownError& e : known) {
    low = std::min(low, e.log_ratio());
    high = std::max(high, e.log_ratio());
  }
  return {multiples(low, high), false, "not validated: " + std::move(why), 0, 0};
}

namespace {

ErrorBand band_of_like(const ErrorQuery& query, std::span<const KnownError> known) {
  std::string why = obstacle(query, known);
  if (!why.empty()) return uncovered_band(std::move(why), known);
  std::string few;
  double least = 0;  // what the classes that have too few sites show
  double most = 0;
  for (const ErrorClass& of_class : classes_of(query)) {
    const std::vector<const KnownError*> rows = members(of_class, known);
    const std::size_t sites = count_sites(rows);
    const std::string size = of_class.name + ": " + counted(sites, rows.size());
    if (sites < kFewestSites) {
      if (few.empty()) few = size;
      if (rows.empty()) continue;
      const std::vector<std::pair<double, double>> values = weighted(rows);
      least = std::min(least, weighted_quantile(values, kTail));
      most = std::max(most, weighted_quantile(values, 1 - kTail));
      continue;
    }
    const auto [low, high] = log_interval(rows);
    const std::string untried =
        sites == kFewestSites ? "; without one of them too few to be tried" : "";
    return {multiples(std::min(low, least), std::max(high, most)), true,
            (few.empty() ? "validated: " + size : "wider: " + size + " (" + few + ")") + untried,
            sites, rows.size()};
  }
  return uncovered_band(few, known);
}

}  // namespace

ErrorBand error_band(const ErrorQuery& query, std::span<const KnownError> known) {
  ErrorBand out = band_of_like(query, known);
  std::vector<std::string> why;
  if (!query.beside.empty()) why.push_back(query.beside);
  if (query.is_fitted) why.emplace_back("published runs were predicted without fitted values");
  if (why.empty() || !out.is_covered) return out;
  const ErrorClass widest = classes_of(query).back();
  const std::vector<const KnownError*> rows = members(widest, known);
  const auto [low, high] = log_interval(rows);
  out.time.low = std::min(out.time.low, std::exp(low));
  out.time.high = std::max(out.time.high, std::exp(high));
  out.sites = count_sites(rows);
  out.points = rows.size();
  out.basis = fmt::format("wider: {}: {} ({})", widest.name, counted(out.sites, out.points),
                          fmt::join(why, "; "));
  return out;
}

std::string class_name(const KnownError& point) {
  if (is_rdma(point)) return rdma_name(point);
  return fmt::format("{}, {}, {}", point.op, nodes_name(point), size_name(point));
}

ErrorQuery query_of(const KnownError& point) {
  return {point.transport, point.memory_path, point.nodes,    point.ranks, point.op,
          point.bytes,     point.qps,         point.tx_depth, {}};
}

}  // namespace weft
