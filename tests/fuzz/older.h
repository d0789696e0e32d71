/* What xlac.h did not have at 97b1403, for `search.py --tree`: today's generators run on that commit's core. */
#include <stdbool.h>

#define XLAC_OPTIONS(type) 0
#define XLAC_TYPE_OTHER XLAC_TYPE_FUTURE
#define strict documented_forms

/* Nobody is asked while a program is read, verified, changed or compiled. */
typedef struct xlac_interrupt {
  bool (*interrupted)(void *ctx);
  void *ctx;
} xlac_interrupt;

static inline xlac_interrupt xlac_set_interrupt(xlac_interrupt hook) {
  return hook;
}
