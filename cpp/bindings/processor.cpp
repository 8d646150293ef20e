// Checks, before the native core is loaded, whether this interpreter can run it, and which variant the processor can
// run. It is built for any processor and uses only Python's C interface, so it is safe everywhere: pybind11 hangs in a
// second interpreter of Python 3.11.
#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace {

PyObject* best_isa(PyObject*, PyObject*) {
#if defined(DRHMM_KNOWS_LEVELS)  // where the compiler knows the levels of x86-64
  __builtin_cpu_init();
  if (__builtin_cpu_supports("x86-64-v4")) return PyUnicode_FromString("v4");
  if (__builtin_cpu_supports("x86-64-v3")) return PyUnicode_FromString("v3");
#endif
  return PyUnicode_FromString("baseline");
}

int refuse_other_interpreters(PyObject*) {
  if (PyInterpreterState_Get() == PyInterpreterState_Main()) return 0;
  PyErr_SetString(PyExc_ImportError,
                  "drhmm does not support sub-interpreters, as numpy does not; use threads, which share a model "
                  "without locks, or processes");
  return -1;
}

PyMethodDef functions[] = {
    {"best_isa", best_isa, METH_NOARGS, "The most capable instruction set: baseline, v3 or v4."},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef_Slot slots[] = {
    {Py_mod_exec, reinterpret_cast<void*>(&refuse_other_interpreters)},
#if PY_VERSION_HEX >= 0x030C0000
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#endif
#if PY_VERSION_HEX >= 0x030D0000
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, nullptr},
};

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_processor", "Features of the processor.", 0, functions, slots, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__processor() { return PyModuleDef_Init(&definition); }
