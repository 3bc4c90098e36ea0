/* SPDX-License-Identifier: BSD-3-Clause */
/* The attributes that MPI itself defines: MPI 5.0, sections 9.1.2 and 12.2.6. */
#ifndef ADI_CORE_PREDEFINED_ATTRIBUTE_H
#define ADI_CORE_PREDEFINED_ATTRIBUTE_H

#include "adi/core/attribute.h"

bool adi_predefined_attribute_is(int keyval, enum adi_kind of);
/* As adi_attribute_get. */
int adi_predefined_attribute(struct adi_object *object, int keyval, void **value, int *flag);

#endif
