// The extension: glue between Python and the core. It is one file, because compiling pybind11's headers takes as long
// as most of the rest; the numerics are in cpp/src.
#include "bind_features.hpp"
#include "bind_gradient.hpp"
#include "bind_ratio.hpp"
#include "bind_recursion.hpp"
#include "bind_stream.hpp"

// DRHMM_MODULE and DRHMM_ISA: the name of this variant of the extension, and of its instruction set.
PYBIND11_MODULE(DRHMM_MODULE, module, pybind11::mod_gil_not_used()) {
  module.doc() = "The native core of drhmm: features, ratios, recursions and streams.";
  drhmm::bindings::bind_features(module);
  drhmm::bindings::bind_ratio(module);
  drhmm::bindings::bind_recursion(module);
  drhmm::bindings::bind_gradient(module);
  drhmm::bindings::bind_stream(module);
  module.attr("ISA") = DRHMM_ISA;
  // Pickles name classes by a module that every machine has, not by the variant.
  for (const auto& item : module.attr("__dict__").cast<pybind11::dict>()) {
    if (pybind11::isinstance<pybind11::type>(item.second)) item.second.attr("__module__") = "drhmm._core";
  }
}
