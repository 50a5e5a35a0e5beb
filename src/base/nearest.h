/* "Did you mean ...?": the name that was meant by a wrong one. */
#ifndef SPK_BASE_NEAREST_H
#define SPK_BASE_NEAREST_H

/* The nearest of `count` names to text by edits, NULL where none is near. Of those that are about as near, the one that begins as text does
 * for longest; of equals, the first. */
const char *spk_nearest(const char *text, const char *const *names, int count);

#endif
