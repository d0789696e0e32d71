/* Copies of attributes into another module, where what is shared here is shared there. */
#ifndef XLAC_IR_ATTRS_IMPORT_MEMO_H
#define XLAC_IR_ATTRS_IMPORT_MEMO_H

#include "../ir.h"

/* As ir_mdict_import; `done` has the dictionaries and values that were copied already, pointer to pointer, and gets
 * those that are copied now. NULL when out of memory, or when d is. */
const ir_mdict *ir_mdict_import_once(ir_module *m, const ir_mdict *d, base_map *done);

#endif
