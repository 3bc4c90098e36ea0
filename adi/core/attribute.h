/* SPDX-License-Identifier: BSD-3-Clause */
/* Attributes of communicators, datatypes and windows: MPI 5.0, section 7.7. */
#ifndef ADI_CORE_ATTRIBUTE_H
#define ADI_CORE_ATTRIBUTE_H

#include "adi/core/object.h"

#include <stdbool.h>

/* The attributes of an object. Zero bytes are an empty list. */
struct adi_attributes {
	struct adi_attribute *first; /* the one that was set last */
};

/* Copies the attributes of an object for its duplicate, as the copy callbacks say. Returns an error class or, if a callback
 * failed, its code; then new is empty. */
int adi_attributes_copy(struct adi_object *from, struct adi_attributes *old, struct adi_attributes *new);
/* Calls the delete callbacks, in the reverse order of setting, and empties the list. If a callback fails, its attribute and
 * those that were set before stay, and its code is returned. */
int adi_attributes_delete(struct adi_object *object, struct adi_attributes *attributes);

/* of: ADI_COMM, ADI_TYPE or ADI_WIN. copy and delete are of C's types for that kind; (void (*)(void))0 and 1 are the predefined
 * ones. */
int adi_keyval_create(enum adi_kind of, void (*copy)(void), void (*delete)(void), void *extra_state, int *keyval);
int adi_keyval_free(enum adi_kind of, int *keyval);
/* object: a communicator, datatype or window. */
int adi_attribute_set(struct adi_object *object, int keyval, void *value);
int adi_attribute_get(struct adi_object *object, int keyval, void **value, int *flag);
int adi_attribute_remove(struct adi_object *object, int keyval);

/* Frees the table of keys. */
void adi_attributes_end(void);

#endif
