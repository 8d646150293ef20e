// Which variant of the extension this processor can run; built for any processor, so that asking is safe.
#include <pybind11/pybind11.h>

namespace {

const char* best_isa() {
#if defined(__x86_64__) && defined(__GNUC__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("x86-64-v4")) return "v4";
  if (__builtin_cpu_supports("x86-64-v3")) return "v3";
#endif
  return "baseline";
}

}  // namespace

PYBIND11_MODULE(_processor, module, pybind11::mod_gil_not_used()) {
  module.doc() = "What the processor can do.";
  module.def("best_isa", &best_isa, "The most capable instruction set: baseline, v3 or v4.");
}
