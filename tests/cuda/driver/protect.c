/* Device memory is out of the host's reach, as it is on a machine with a GPU: its pages may not be touched, but by the
 * piece of work that is executed, for which they are opened when it first touches them, and closed behind it. Whoever
 * else touches them is a finding; the page is then left open, so that the program goes on to where its test fails.
 * XLAC_CUDA_SIM_PROTECT=0 leaves all memory open. */
#define _GNU_SOURCE
#include "sim.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { PAGE = 4096, OPEN_MOST = 4096 };

static struct sigaction before;
static bool enabled;
static _Thread_local bool inside;
static allocation *opened[OPEN_MOST]; /* under sim.executing */
static uint32_t n_opened;

static int set_access(const allocation *a, int access) {
  return mprotect((char *)a->mapping + PAGE, a->mapped - 2 * PAGE, access);
}

/* A fault of the thread itself, in code that holds no lock of ours: what may be called there may be called here. */
static bool open_for(address at) {
  sim_page *page = shadow_page(at);
  allocation *a = page != NULL ? page->owner : NULL;
  if (a == NULL || a->kind != MEMORY_DEVICE || a->freed) return false;
  if (inside && n_opened < OPEN_MOST) {
    opened[n_opened++] = a;
  } else {
    report(ILLEGAL_ADDRESS, "the host touches 0x%llx, byte %lld of the %zu bytes of device memory of allocation %llu",
           (unsigned long long)at, (long long)(at - a->at), a->bytes, (unsigned long long)a->number);
  }
  return set_access(a, PROT_READ | PROT_WRITE) == 0;
}

static void on_fault(int signal_number, siginfo_t *info, void *context) {
  if (open_for((address)(uintptr_t)info->si_addr)) return;
  if ((before.sa_flags & SA_SIGINFO) != 0) {
    before.sa_sigaction(signal_number, info, context);
  } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
    before.sa_handler(signal_number);
  } else { /* it comes again, and is not caught */
    sigaction(SIGSEGV, &before, NULL);
  }
}

void protect_begin(void) {
  enabled = setting("XLAC_CUDA_SIM_PROTECT", 1) != 0;
  if (!enabled) return;
  struct sigaction action = {.sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART};
  action.sa_sigaction = on_fault;
  sigemptyset(&action.sa_mask);
  if (sigaction(SIGSEGV, &action, &before) != 0) enabled = false;
}

void protect_new(const allocation *a) {
  if (enabled && a->kind == MEMORY_DEVICE && set_access(a, PROT_NONE) != 0) abort();
}

void protect_enter(void) {
  inside = true;
}

void protect_leave(void) {
  inside = false;
  for (uint32_t i = 0; i < n_opened; i++)
    if (!opened[i]->freed && set_access(opened[i], PROT_NONE) != 0) abort();
  n_opened = 0;
}
