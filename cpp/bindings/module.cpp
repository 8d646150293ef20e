#include <pybind11/pybind11.h>

namespace drhmm::bindings {

void bind_features(pybind11::module_& module);
void bind_ratio(pybind11::module_& module);
void bind_recursion(pybind11::module_& module);
void bind_stream(pybind11::module_& module);

}  // namespace drhmm::bindings

PYBIND11_MODULE(_core, module, pybind11::mod_gil_not_used()) {
  module.doc() = "The native core of drhmm: features, ratios, recursions and streams.";
  drhmm::bindings::bind_features(module);
  drhmm::bindings::bind_ratio(module);
  drhmm::bindings::bind_recursion(module);
  drhmm::bindings::bind_stream(module);
}
