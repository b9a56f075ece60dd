// What stands between a program and its verbs: functions that take the place of a provider's in
// its context, queue pairs and completion queues, call them and record what passed.
//
// A hook changes nothing that the program sees: arguments, results, errno and memory are the
// provider's. Where recording is off, or has no room, it only calls.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include <infiniband/verbs.h>

#include "replay/record/recorder.hpp"
#include "replay/record/table.hpp"

namespace weft::record {

/// An opened device: the functions that it had, and who records it.
struct Context {
  ibv_context* context{nullptr};
  Recorder* recorder{nullptr};
  std::uint32_t device{trace::kNone};
  ibv_context_ops ops{};
  decltype(verbs_context::create_qp_ex) create_qp_ex{nullptr};
  decltype(verbs_context::create_cq_ex) create_cq_ex{nullptr};
  decltype(verbs_context::create_srq_ex) create_srq_ex{nullptr};

  /// False in the child of a fork, for what its parent opened, and once the recording ended.
  bool is_recorded() const { return recorder == &Recorder::get() && recorder->is_on(); }
};

/// An object of a context, by its trace name.
struct Named {
  Context* context{nullptr};
  std::uint32_t name{trace::kNone};
};

/// Objects by address, regions by (device, key), queue pairs by (device, number).
Table& objects_table();
/// Held while one comes or goes, and over a fork.
std::mutex& objects_mutex();

// --- Looked up while posting and polling -------------------------------------------------------

/// The context of `context`; hooks it where nothing is known of it.
Context& context_of(ibv_context* context);
/// Objects that were made where no hook saw it get a name, and a record of what they say of
/// themselves, when they are first used.
Named pair_of(ibv_qp* pair);
Named queue_of(ibv_cq* queue);
Named shared_of(ibv_srq* queue);
Named domain_of(ibv_pd* domain);
/// The name of the queue pair with this number; kNone where there is none.
std::uint32_t pair_numbered(const Context& context, std::uint32_t number);
/// Where a key and an address of it lie.
struct Place {
  std::uint32_t region{trace::kNone};
  std::uint64_t offset{0};
};
Place place_of(const Context& context, std::uint32_t key, std::uint64_t address);

// --- Objects come and go -------------------------------------------------------------------------

/// Hooks a context that was just opened.
void open_context(ibv_context* context);
/// An object's end, in two steps: what is known of it is forgotten before it is destroyed, since
/// its address and number may be used again at once, and known again where that failed.
class Ending {
 public:
  Ending(const void* object, trace::ObjectKind kind);
  /// A second entry of the same object; returns what it said, 0 where there is none.
  std::uint64_t forget(std::uint64_t key);
  /// Of the context that made it; nullptr where it was not known.
  Context* context() const { return context_; }
  void finish(bool is_destroyed);

 private:
  struct Entry {
    std::uint64_t key;
    Table::Value value;
  };

  trace::ObjectKind kind_;
  Context* context_{nullptr};
  std::uint32_t name_{trace::kNone};
  std::vector<Entry> entries_;
};
void add_domain(ibv_pd* domain);

struct RegionFacts {
  std::uint64_t address{0};  ///< as requests name it
  std::uint64_t length{0};
  unsigned access{0};
  const void* memory{nullptr};  ///< where it is mapped; nullptr: nowhere
  bool is_dmabuf{false};
};
void add_region(ibv_mr* region, const RegionFacts& facts);
/// What is known of a region, from its entries of region_key() and extra_key().
RegionFacts kept_facts(const ibv_mr& region, std::uint64_t address, std::uint64_t extra);
void add_queue(ibv_cq* queue, bool is_extended);
void add_shared(ibv_srq* queue, std::uint32_t depth, std::uint32_t segments);
/// `caps`: as they were asked for; nullptr where nobody saw it.
void add_pair(ibv_qp* pair, const ibv_qp_cap* caps, bool signals_all);
/// Its requests will be written past libibverbs.
void set_unseen(ibv_qp* pair);
/// One that exists as a device's command only.
void add_unseen_pair(Context& context, std::uint32_t number);
void add_state(ibv_qp* pair, const ibv_qp_attr& attributes, int mask);

/// Keys of objects_table(): an object's address, what is kept beside it, a region's key, a queue
/// pair's number.
std::uint64_t address_key(const void* object);
std::uint64_t extra_key(const void* object);
std::uint64_t region_key(const Context& context, std::uint32_t key);
std::uint64_t number_key(const Context& context, std::uint32_t number);

// --- The hooks ----------------------------------------------------------------------------------

int hooked_post_send(ibv_qp* pair, ibv_send_wr* list, ibv_send_wr** bad);
int hooked_post_recv(ibv_qp* pair, ibv_recv_wr* list, ibv_recv_wr** bad);
int hooked_post_srq_recv(ibv_srq* queue, ibv_recv_wr* list, ibv_recv_wr** bad);
int hooked_poll_cq(ibv_cq* queue, int count, ibv_wc* completions);
ibv_qp* hooked_create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attributes);
ibv_cq_ex* hooked_create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attributes);
ibv_srq* hooked_create_srq_ex(ibv_context* context, ibv_srq_init_attr_ex* attributes);
/// A queue pair just made by a function that takes these attributes.
void add_extended_pair(ibv_qp* pair, const ibv_qp_init_attr_ex& attributes);
/// Hook the pointers of a queue pair with ibv_wr_*, of an extended completion queue; nothing where
/// it has none.
/// `operations`: the ibv_qp_create_send_ops_flags that it was made with.
void hook_builder(ibv_qp* pair, ibv_qp_ex* extended, std::uint64_t operations);
void hook_extended_queue(ibv_cq_ex* queue);
/// What they keep beside the table's entry with extra_key().
void free_builder(std::uint64_t builder);
void free_extended(std::uint64_t extended);

/// What recording adds to a call, measured where it runs: medians over posts of one request with
/// one segment, and polls that return one completion.
struct Overhead {
  std::uint32_t post_ns{0};
  std::uint32_t poll_ns{0};
};
Overhead measure_overhead(Recorder& recorder);

}  // namespace weft::record
