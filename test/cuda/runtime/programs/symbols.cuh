/* SPDX-License-Identifier: BSD-3-Clause */
/* From symbols_other.cu: the value of its own same_name, read by its own kernel. */
int same_name_of_another_object(void);
