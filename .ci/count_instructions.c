// A plugin of qemu that prints how many instructions a program executed. Debian has no header for it.
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct qemu_plugin_tb;  // a block of translated instructions
enum { ADD = 0 };       // the inline operation at every execution of a block

void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t, void (*)(uint64_t, struct qemu_plugin_tb*));
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb*, int, void*, uint64_t);
void qemu_plugin_register_atexit_cb(uint64_t, void (*)(uint64_t, void*), void*);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb*);

int qemu_plugin_version = 1;

static uint64_t count;

static void translated(uint64_t id, struct qemu_plugin_tb* block) {
  (void)id;
  qemu_plugin_register_vcpu_tb_exec_inline(block, ADD, &count, qemu_plugin_tb_n_insns(block));
}

static void ended(uint64_t id, void* data) {
  (void)id, (void)data;
  fprintf(stderr, "%llu\n", (unsigned long long)count);
}

int qemu_plugin_install(uint64_t id, const void* info, int n_arguments, char** arguments) {
  (void)info, (void)n_arguments, (void)arguments;
  qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
  qemu_plugin_register_atexit_cb(id, ended, NULL);
  return 0;
}
