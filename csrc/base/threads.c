#include "threads.h"
