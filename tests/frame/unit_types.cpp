// What the unit types must refuse. Compiles as it stands; with REFUSED=<n> it must not
// (tests/frame/CMakeLists.txt compiles each case by itself).
#include "sim/base/id.hpp"
#include "sim/base/units.hpp"

namespace {

using namespace weft;

[[maybe_unused]] constexpr Duration kSpan = Duration::ns(3);
[[maybe_unused]] constexpr Time kPoint = Time{} + kSpan;
[[maybe_unused]] constexpr Bytes kAmount{4096};
[[maybe_unused]] constexpr Bandwidth kRate = Bandwidth::gigabits_per_s(400);
[[maybe_unused]] constexpr DeviceId kDevice{std::size_t{3}};

#ifndef REFUSED
constexpr auto kResult = kPoint + kSpan * 2;
static_assert(kResult - kPoint == Duration::ns(6));
static_assert(kAmount + kAmount == Bytes::kib(8) && kAmount < Bytes{4097});
static_assert(serialization_time(kAmount, kRate) == Duration::ps(81'920));
static_assert(kDevice == DeviceId{std::size_t{3}});
#elif REFUSED == 1   // bytes_plus_duration
constexpr auto kResult = kAmount + kSpan;
#elif REFUSED == 2   // time_plus_time
constexpr auto kResult = kPoint + kPoint;
#elif REFUSED == 3   // duration_from_double
constexpr Duration kResult = 3.0;
#elif REFUSED == 4   // bandwidth_from_double
constexpr Bandwidth kResult{50e9};
#elif REFUSED == 5   // device_from_link
constexpr DeviceId kResult = LinkId{std::size_t{3}};
#elif REFUSED == 6   // bytes_compared_with_int
constexpr bool kResult = kAmount < 4097;
#elif REFUSED == 7   // bytes_from_int
constexpr Bytes kResult = 4096;
#elif REFUSED == 8   // time_from_duration
constexpr Time kResult = kSpan;
#elif REFUSED == 9   // device_compared_with_link
constexpr bool kResult = kDevice == LinkId{std::size_t{3}};
#elif REFUSED == 10  // duration_times_double
constexpr auto kResult = kSpan * 0.5;
#elif REFUSED == 11  // overflow_in_a_constant
constexpr Duration kResult = Duration::ns(INT64_MAX);
#elif REFUSED == 12  // negative_bandwidth_in_a_constant
constexpr Bandwidth kResult = Bandwidth::gigabytes_per_s(-1);
#else
constexpr int kResult = 0;  // an unknown case compiles, so its test fails
#endif

[[maybe_unused]] constexpr auto kUse = kResult;

}  // namespace
