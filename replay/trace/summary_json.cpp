#include <array>

#include "replay/trace/summary.hpp"
#include "sim/result/fields.hpp"

namespace weft::trace {
namespace {

using Operations = std::map<Opcode, OperationCount>;
using OperationField = JsonField<Operations::value_type>;
constexpr std::array kOperationFields{
    OperationField{{"opcode", "text", "", "as in records: write, send, receive, ..."},
                   [](const Operations::value_type& o) -> Json { return opcode_text(o.first); }},
    OperationField{{"posts", "whole number", "", "without refused ones"},
                   [](const Operations::value_type& o) { return whole(o.second.posts); }},
    OperationField{{"bytes", "whole number", "", "of these posts"},
                   [](const Operations::value_type& o) { return whole(o.second.bytes); }},
    OperationField{{"completions", "whole number", "", "that a poll returned"},
                   [](const Operations::value_type& o) { return whole(o.second.completions); }}};

Json operations_json(const Operations& operations) {
  Json out = Json::array();
  for (const auto& operation : operations) out.push(object_of(operation, kOperationFields));
  return out;
}

using Errors = std::map<std::uint8_t, std::uint64_t>;
using ErrorField = JsonField<Errors::value_type>;
constexpr std::array kErrorFields{
    ErrorField{{"status", "text", "", "as in records: flushed, ..."},
               [](const Errors::value_type& e) -> Json { return status_text(e.first); }},
    ErrorField{{"completions", "whole number", "", "with that status"},
               [](const Errors::value_type& e) { return whole(e.second); }}};

using LossField = JsonField<Loss>;
constexpr std::array kLossFields{
    LossField{{"offset", "whole number", "", "where in the file, bytes"},
              [](const Loss& l) { return whole(l.offset); }},
    LossField{{"bytes", "whole number", "", "passed over"},
              [](const Loss& l) { return whole(l.bytes); }},
    LossField{{"blocks", "whole number", "", "lost; 0: not known"},
              [](const Loss& l) { return whole(l.blocks); }},
    LossField{{"records", "whole number", "", "lost; 0: not known"},
              [](const Loss& l) { return whole(l.records); }},
    LossField{{"what", "text", "", "what is wrong there"},
              [](const Loss& l) -> Json { return l.what; }}};

/// A device or queue pair by its number in the trace.
template <class T>
struct Numbered {
  const TraceSummary& summary;
  std::uint32_t number;
  const T& of;
};

template <class T, std::size_t n>
Json numbered_json(const TraceSummary& summary, const std::map<std::uint32_t, T>& all,
                   const std::array<JsonField<Numbered<T>>, n>& fields) {
  Json out = Json::array();
  for (const auto& [number, of] : all) {
    out.push(object_of(Numbered<T>{summary, number, of}, fields));
  }
  return out;
}

using OfDevice = Numbered<Device>;
using DeviceField = JsonField<OfDevice>;
constexpr std::array kDeviceFields{
    DeviceField{{"device", "whole number", "", "its number in the trace"},
                [](const OfDevice& d) -> Json { return d.number; }},
    DeviceField{{"name", "text", "", "such as mlx5_0"},
                [](const OfDevice& d) -> Json { return named(d.summary.device_names, d.number); }},
    DeviceField{{"host", "text", "", "its host's name"},
                [](const OfDevice& d) -> Json { return named(d.summary.host_names, d.of.host); }},
    DeviceField{{"host_number", "whole number", "", "the host's, as --device takes it, from 0"},
                [](const OfDevice& d) -> Json { return d.summary.host_numbers.at(d.number); }}};

using OfPair = Numbered<PairSummary>;
using PairField = JsonField<OfPair>;
constexpr std::array kPairFields{
    PairField{{"pair", "whole number", "", "its number in the trace, as --pair takes it"},
              [](const OfPair& p) -> Json { return p.number; }},
    PairField{{"device", "text", "", "its device's name"},
              [](const OfPair& p) -> Json { return named(p.summary.device_names, p.of.device); }},
    PairField{{"number", "whole number", "", "the device's for it (qp_num)"},
              [](const OfPair& p) -> Json { return p.of.number; }},
    PairField{{"peer_number", "whole number", "", "likewise the other end's; 0: not connected"},
              [](const OfPair& p) -> Json { return p.of.peer_number; }},
    PairField{{"is_unseen", "true or false", "", "posts go past libibverbs"},
              [](const OfPair& p) -> Json { return p.of.is_unseen; }},
    PairField{{"operations", "list", "", "by opcode"},
              [](const OfPair& p) { return operations_json(p.of.operations); }}};

Json errors_json(const TraceSummary& s) {
  Json out = Json::array();
  for (const auto& error : s.errors) out.push(object_of(error, kErrorFields));
  return out;
}

using SummaryField = JsonField<TraceSummary>;
constexpr std::array kSummaryFields{
    SummaryField{{"schema", "text", "", "the version of this form: weft.trace-info/1"},
                 [](const TraceSummary&) -> Json { return "weft.trace-info/1"; }},
    SummaryField{{"file", "text", "", "the trace's file"},
                 [](const TraceSummary& s) -> Json { return s.file; }},
    SummaryField{{"tool", "text", "", "what recorded it"},
                 [](const TraceSummary& s) -> Json { return s.tool; }},
    SummaryField{{"records", "whole number", "", "of all types that could be read"},
                 [](const TraceSummary& s) { return whole(s.records); }},
    SummaryField{{"span_ns", "whole number", "", "from the first to the last post or completion"},
                 [](const TraceSummary& s) { return whole(s.last_ns - s.first_ns); }},
    SummaryField{
        {"post_ns", "whole number", "", "what recording added to a post, ns; 0: not measured"},
        [](const TraceSummary& s) -> Json { return s.post_ns; }},
    SummaryField{{"poll_ns", "whole number", "", "likewise to a poll"},
                 [](const TraceSummary& s) -> Json { return s.poll_ns; }},
    SummaryField{{"devices", "list", "", "that were opened"},
                 [](const TraceSummary& s) { return numbered_json(s, s.devices, kDeviceFields); }},
    SummaryField{{"operations", "list", "", "of all queue pairs, by opcode"},
                 [](const TraceSummary& s) { return operations_json(s.operations); }},
    SummaryField{{"pairs", "list", "", "queue pairs"},
                 [](const TraceSummary& s) { return numbered_json(s, s.pairs, kPairFields); }},
    SummaryField{{"errors", "list", "", "completions by status, without success"}, errors_json},
    SummaryField{{"refused", "whole number", "", "posts whose call failed"},
                 [](const TraceSummary& s) { return whole(s.refused); }},
    SummaryField{{"waiting", "whole number", "", "signaled posts without their completion"},
                 [](const TraceSummary& s) { return whole(s.waiting); }},
    SummaryField{
        {"unsignaled", "whole number", "", "unsignaled posts that nothing shows to be done"},
        [](const TraceSummary& s) { return whole(s.unsignaled); }},
    SummaryField{{"unmatched", "whole number", "", "completions without their post"},
                 [](const TraceSummary& s) { return whole(s.unmatched); }},
    SummaryField{{"forgotten", "whole number", "",
                  "posts ahead of more than any queue holds: whether they were done is not known"},
                 [](const TraceSummary& s) { return whole(s.forgotten); }},
    SummaryField{{"dropped_records", "whole number", "", "that the recorder dropped, of all types"},
                 [](const TraceSummary& s) { return whole(s.dropped.records); }},
    SummaryField{{"dropped_posts", "whole number", "", "posts of these"},
                 [](const TraceSummary& s) { return whole(s.dropped.posts); }},
    SummaryField{{"dropped_completions", "whole number", "", "completions of these"},
                 [](const TraceSummary& s) { return whole(s.dropped.completions); }},
    SummaryField{
        {"is_ended", "true or false", "", "false: its writer was stopped, or it is cut off"},
        [](const TraceSummary& s) -> Json { return s.is_ended; }},
    SummaryField{{"lost_blocks", "whole number", "", "by their numbers, of all places"},
                 [](const TraceSummary& s) { return whole(s.losses.blocks); }},
    SummaryField{{"lost_bytes", "whole number", "", "likewise"},
                 [](const TraceSummary& s) { return whole(s.losses.bytes); }},
    SummaryField{{"losses", "list", "", "the first places where something could not be read"},
                 [](const TraceSummary& s) { return objects_of(s.losses.first, kLossFields); }}};

}  // namespace

Json summary_json(const TraceSummary& s) { return object_of(s, kSummaryFields); }

std::vector<FormatSection> summary_format() {
  return {{"", "The file.", keys_of(kSummaryFields)},
          {"devices[]", "A device.", keys_of(kDeviceFields)},
          {"pairs[]", "A queue pair.", keys_of(kPairFields)},
          {"operations[], pairs[].operations[]", "Operations of one opcode.",
           keys_of(kOperationFields)},
          {"errors[]", "Completions that failed.", keys_of(kErrorFields)},
          {"losses[]", "A place in the file.", keys_of(kLossFields)}};
}

}  // namespace weft::trace
