#pragma once

namespace weft {

/// The value that Student's t with so many degrees of freedom (at least 1) stays below with
/// probability `p`, from 0.5 to below 1.
double student_quantile(double p, double degrees);

/// By how much an interval that holds a share of `p - (1 - p)` of what `sites` (at least 2) have
/// shown is widened to hold as much of what one more shows: that of a normal distribution whose
/// mean and variance are estimated from them, t(p, sites - 1) sqrt(1 + 1 / sites) / z(p).
double widening(double p, double sites);

}  // namespace weft
