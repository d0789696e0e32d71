/* By rows of the table of distances between beginnings of the two words, of which one is kept. */
#include "nearest.h"

#include <string.h>

unsigned text_edit_distance(const char *a, size_t n, const char *b, unsigned most) {
  unsigned row[64], m = (unsigned)strlen(b);
  if (n >= 48 || m >= 48 || (n > m ? n - m : m - n) > most) return most + 1;
  for (unsigned j = 0; j <= m; j++) row[j] = j;
  for (unsigned i = 1; i <= n; i++) {
    unsigned diagonal = row[0];
    row[0] = i;
    for (unsigned j = 1; j <= m; j++) {
      unsigned change = diagonal + (a[i - 1] != b[j - 1]), least = change;
      if (row[j] + 1 < least) least = row[j] + 1;
      if (row[j - 1] + 1 < least) least = row[j - 1] + 1;
      diagonal = row[j];
      row[j] = least;
    }
  }
  return row[m];
}
