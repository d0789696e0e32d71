/* What xlac.h did not have at 97b1403, for `search.py --tree`: today's generators run on that commit's core. */
#define XLAC_OPTIONS(type) 0
#define XLAC_TYPE_OTHER XLAC_TYPE_FUTURE
#define strict documented_forms
