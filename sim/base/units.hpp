#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <stdexcept>

namespace weft {

/// Checked int64 sum; throws std::overflow_error. All integer quantities below go through it.
constexpr std::int64_t checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t r{};
  if (__builtin_add_overflow(a, b, &r)) throw std::overflow_error("quantity: sum out of range");
  return r;
}

/// Checked int64 difference; throws std::overflow_error.
constexpr std::int64_t checked_sub(std::int64_t a, std::int64_t b) {
  std::int64_t r{};
  if (__builtin_sub_overflow(a, b, &r)) {
    throw std::overflow_error("quantity: difference out of range");
  }
  return r;
}

/// Checked int64 product; throws std::overflow_error.
constexpr std::int64_t checked_mul(std::int64_t a, std::int64_t b) {
  std::int64_t r{};
  if (__builtin_mul_overflow(a, b, &r)) throw std::overflow_error("quantity: product out of range");
  return r;
}

/// A span of simulated time. Integer picoseconds; range about +/-106 days.
class Duration {
 public:
  constexpr Duration() = default;
  static constexpr Duration ps(std::int64_t n) { return Duration{n}; }
  static constexpr Duration ns(std::int64_t n) { return Duration{checked_mul(n, 1'000)}; }
  static constexpr Duration us(std::int64_t n) { return Duration{checked_mul(n, 1'000'000)}; }
  /// Nearest picosecond; throws std::overflow_error beyond the range or for NaN.
  static constexpr Duration from_ns(double n) {
    const double p = n * 1e3;
    if (!(p > -9.2e18 && p < 9.2e18)) throw std::overflow_error("Duration: out of range");
    return Duration{static_cast<std::int64_t>(p < 0 ? p - 0.5 : p + 0.5)};
  }

  constexpr std::int64_t count_ps() const { return ps_; }
  constexpr double as_ns() const { return static_cast<double>(ps_) / 1e3; }
  constexpr double as_us() const { return static_cast<double>(ps_) / 1e6; }
  constexpr double as_s() const { return static_cast<double>(ps_) / 1e12; }

  friend constexpr Duration operator+(Duration a, Duration b) {
    return Duration{checked_add(a.ps_, b.ps_)};
  }
  friend constexpr Duration operator-(Duration a, Duration b) {
    return Duration{checked_sub(a.ps_, b.ps_)};
  }
  friend constexpr Duration operator*(Duration a, std::int64_t k) {
    return Duration{checked_mul(a.ps_, k)};
  }
  constexpr Duration& operator+=(Duration b) { return *this = *this + b; }
  friend constexpr auto operator<=>(Duration, Duration) = default;

 private:
  explicit constexpr Duration(std::int64_t ps) : ps_{ps} {}
  std::int64_t ps_{0};
};

/// A point on the simulation clock. Point + span = point; points do not add.
class Time {
 public:
  constexpr Time() = default;
  constexpr Duration since_start() const { return d_; }
  friend constexpr Time operator+(Time t, Duration d) { return Time{t.d_ + d}; }
  friend constexpr Duration operator-(Time a, Time b) { return a.d_ - b.d_; }
  friend constexpr auto operator<=>(Time, Time) = default;

 private:
  explicit constexpr Time(Duration d) : d_{d} {}
  Duration d_{};
};

/// An amount of data; integer bytes, never negative by contract of its makers.
class Bytes {
 public:
  constexpr Bytes() = default;
  explicit constexpr Bytes(std::int64_t n) : n_{n} {}
  static constexpr Bytes kib(std::int64_t n) { return Bytes{checked_mul(n, 1LL << 10)}; }
  static constexpr Bytes mib(std::int64_t n) { return Bytes{checked_mul(n, 1LL << 20)}; }
  static constexpr Bytes gib(std::int64_t n) { return Bytes{checked_mul(n, 1LL << 30)}; }

  constexpr std::int64_t count() const { return n_; }
  constexpr double as_double() const { return static_cast<double>(n_); }

  friend constexpr Bytes operator+(Bytes a, Bytes b) { return Bytes{checked_add(a.n_, b.n_)}; }
  friend constexpr Bytes operator-(Bytes a, Bytes b) { return Bytes{checked_sub(a.n_, b.n_)}; }
  friend constexpr Bytes operator*(Bytes a, std::int64_t k) { return Bytes{checked_mul(a.n_, k)}; }
  constexpr Bytes& operator+=(Bytes b) { return *this = *this + b; }
  constexpr Bytes& operator-=(Bytes b) { return *this = *this - b; }
  friend constexpr auto operator<=>(Bytes, Bytes) = default;

 private:
  std::int64_t n_{0};
};

/// Quotient rounded up: how many pieces of `piece` hold `n`. Precondition: piece > 0.
constexpr std::int64_t pieces(Bytes n, Bytes piece) {
  return n.count() / piece.count() + (n.count() % piece.count() != 0 ? 1 : 0);
}

/// A data rate. Built only from a named unit: 1 GB/s = 1e9 bytes/s, 1 Gb/s = 1.25e8 bytes/s.
class Bandwidth {
 public:
  static constexpr Bandwidth bytes_per_s(double v) { return Bandwidth{v}; }
  static constexpr Bandwidth gigabytes_per_s(double v) { return Bandwidth{v * 1e9}; }
  static constexpr Bandwidth gigabits_per_s(double v) { return Bandwidth{v * 1e9 / 8.0}; }

  constexpr double as_bytes_per_s() const { return rate_; }
  constexpr double as_gigabytes_per_s() const { return rate_ / 1e9; }
  constexpr double as_gigabits_per_s() const { return rate_ * 8.0 / 1e9; }

  friend constexpr Bandwidth operator*(Bandwidth b, double k) { return Bandwidth{b.rate_ * k}; }
  friend constexpr auto operator<=>(Bandwidth, Bandwidth) = default;

 private:
  explicit constexpr Bandwidth(double bytes_per_s) : rate_{bytes_per_s} {
    if (!(rate_ > 0.0 && rate_ <= std::numeric_limits<double>::max())) {  // NaN too
      throw std::invalid_argument("Bandwidth must be positive and finite");
    }
  }
  double rate_;
};

/// Time to clock `n` bytes onto a link; rounds up to a picosecond, so no transfer is free. Exact
/// where the answer is a whole number and n < 2^53 / 5^12 = 36 MB. Throws std::overflow_error.
constexpr Duration serialization_time(Bytes n, Bandwidth bw) {
  const double ps = n.as_double() * 1e12 / bw.as_bytes_per_s();  // in this order: one rounding only
  if (!(ps < 9.2e18)) throw std::overflow_error("serialization_time: out of range");
  const auto whole = static_cast<std::int64_t>(ps);
  return Duration::ps(whole + (static_cast<double>(whole) < ps ? 1 : 0));
}
static_assert(serialization_time(Bytes{4096}, Bandwidth::gigabits_per_s(400)) ==
              Duration::ps(81'920));

}  // namespace weft
