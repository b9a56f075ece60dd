#include "replay/record/true_symbols.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string_view>
#include <unistd.h>

namespace weft::record {
namespace {

/// A loaded object's dynamic symbols.
struct Symbols {
  ElfW(Addr) base{0};
  const ElfW(Sym) * symbols{nullptr};
  const char* names{nullptr};
  const std::uint32_t* hash{nullptr};  // DT_GNU_HASH
};

template <typename T>
const T* pointer(ElfW(Addr) address) {
  return std::bit_cast<const T*>(address);
}

Symbols symbols_of(const dl_phdr_info& object) {
  Symbols out{.base = object.dlpi_addr};
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    if (object.dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    const auto* entry = pointer<ElfW(Dyn)>(object.dlpi_addr + object.dlpi_phdr[i].p_vaddr);
    for (; entry->d_tag != DT_NULL; ++entry) {
      if (entry->d_tag == DT_SYMTAB) out.symbols = pointer<ElfW(Sym)>(entry->d_un.d_ptr);
      if (entry->d_tag == DT_STRTAB) out.names = pointer<char>(entry->d_un.d_ptr);
      if (entry->d_tag == DT_GNU_HASH) out.hash = pointer<std::uint32_t>(entry->d_un.d_ptr);
    }
  }
  return out;
}

// A DT_GNU_HASH table: four words (buckets, the first hashed symbol, words of the filter, shift),
// the filter, the buckets, then a chain of hashes a bucket, whose last has its lowest bit set.
template <typename Visit>
void for_each_hashed(const Symbols& in, Visit visit) {
  const std::uint32_t buckets = in.hash[0];
  const std::uint32_t first = in.hash[1];
  const std::uint32_t* const bucket = in.hash + 4 + in.hash[2] * (sizeof(ElfW(Addr)) / 4);
  const std::uint32_t* const chain = bucket + buckets;
  for (std::uint32_t b = 0; b < buckets; ++b) {
    for (std::uint32_t at = bucket[b]; at >= first; ++at) {
      visit(in.symbols[at]);
      if ((chain[at - first] & 1) != 0) break;
    }
  }
}

// Any look-up by name would find who interposes, so the tables are read where they lie. Before
// glibc 2.34 both functions are libdl's.
int find_in(dl_phdr_info* object, std::size_t, void* out) {
  const std::string_view path = object->dlpi_name;
  if (path.find("/libc.so") == path.npos && path.find("/libdl.so") == path.npos) return 0;
  const Symbols in = symbols_of(*object);
  if (in.symbols == nullptr || in.names == nullptr || in.hash == nullptr) return 0;
  auto& found = *static_cast<DynamicLinker*>(out);
  for_each_hashed(in, [&](const ElfW(Sym) & symbol) {
    if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx == SHN_UNDEF) return;
    const std::string_view name = in.names + symbol.st_name;
    const std::uint64_t address = in.base + symbol.st_value;
    if (name == "dlsym") found.dlsym = std::bit_cast<Dlsym>(address);
    if (name == "dlvsym") found.dlvsym = std::bit_cast<Dlvsym>(address);
  });
  return found.dlsym != nullptr && found.dlvsym != nullptr ? 1 : 0;
}

DynamicLinker found_linker() {
  DynamicLinker found{};
  dl_iterate_phdr(find_in, &found);
  if (found.dlsym == nullptr || found.dlvsym == nullptr) {
    constexpr std::string_view kText = "weft record: no dlsym in this program's libc\n";
    [[maybe_unused]] const ssize_t written = write(2, kText.data(), kText.size());
    _exit(127);  // as the dynamic linker does for a missing symbol
  }
  return found;
}

}  // namespace

const DynamicLinker& dynamic_linker() {
  static const DynamicLinker kLinker = found_linker();
  return kLinker;
}

void* true_symbol(const char* library, const char* name) {
  void* const handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  if (handle != nullptr) return dynamic_linker().dlsym(handle, name);
  dlerror();  // the program must not find an error of ours
  return nullptr;
}

}  // namespace weft::record
